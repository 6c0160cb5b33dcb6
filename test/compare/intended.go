package main

import (
	"fmt"
	"regexp"
	"strings"
)

// intended is a difference that is as it should be, of which docs/architecture.md tells.
type intended struct {
	reason string
	// real and our match what the two servers answer: the code, a space and the document as JSON, one way each; request
	// the request, and where the lines that tell of the difference. Nil matches everything.
	real, our, request, where *regexp.Regexp
}

// customResourcePath begins requests of custom resources, whose groups have a dot, as have some of Kubernetes' own.
const customResourcePath = `^\S+ /apis/[\w-]+\.[\w.-]+/`

var allIntended = func() []intended {
	re := regexp.MustCompile
	return []intended{
		{reason: "a bad resourceVersion is the client's fault", real: re(`^500 .*strconv\.ParseUint`),
			our: re(`^(400|409) `)},
		{reason: "metadata of a list asked of one object is refused at once",
			request: re(`as=PartialObjectMetadataList`), our: re(`^406 .*the requested object is not a list`)},
		{reason: "server-side apply of a Scale of a custom resource works", request: re(`^PATCH \S+/scale`),
			real: re(`^500 .*invalid group/version: autoscaling/v1`)},
		{reason: "and so its managers differ after it", request: re(`^PATCH \S+/scale.*apply-patch`),
			our: re(`before-first-apply`)},
		{reason: "a body that is no Scale is told as such", request: re(`^\S+ \S+/scale`),
			real: re(`no kind is registered for the type v1\.Scale`), our: re(`^400 `)},
		{reason: "of several faults in a typed patch others may be named", request: re(`^PATCH .*apply-patch`),
			real: re(`failed to create typed patch object`),
			our:  re(`failed to create typed patch object|error strict decoding patch`)},
		{reason: "a key twice in a configuration is told before a conflict", request: re(`^PATCH .*apply-patch`),
			real: re(`Apply failed with`), our: re(`error strict decoding patch`)},
		{reason: "an empty list is [] for custom and other kinds alike",
			where: re(`\.(rows|items)\n    real null\n    our  \[\]`)},
		{reason: "errors show objects as JSON has them", real: re(`value: \[?\{\\"[A-Z]\w*\\":|OpenAPIV3Schema\\":`)},
		{reason: "errors name no line of Kubernetes' source", real: re(`in scheme \\"pkg/runtime/scheme\.go:`),
			our: re(`no kind \\?".*is registered for version`)},
		{reason: "a PodDisruptionBudget's metadata is checked beside its spec",
			request: re(`^POST \S+/poddisruptionbudgets`), our: re(`"field":"metadata\.`)},
		{reason: "a patch that makes apiVersion or kind no text is told as another kind",
			real: re(`couldn't get version/kind; json parse error`)},
		{reason: "a body of another version of a custom resource is told as such",
			our: re(`does not match the expected API version`)},
		{reason: "Scales and statuses have the tables and forms of all kinds",
			request: re(`^GET \S+/(scale|status)\S* \(.*→ application/(json;as=|cbor)`)},
		{reason: "a body of another kind for a custom resource is told so whatever its metadata is, or else is wrong with it", request: re(customResourcePath), our: re(`unknown conversion|the object provided is unrecognized|cannot be handled as a \w+: no kind|kind: Invalid value: .*: must be \w+`)},
		{reason: "an API server that is bound to loopback says so, and not the host's own address",
			request: re(`^GET /api `), where: re(`serverAddress\n`)},
		{reason: "groups of definitions are told in the order of their names", request: re(`^GET /apis `),
			where: re(`^  body\.groups\[`)},
		{reason: "conditions of a definition stand in the order in which they came",
			request: re(`^GET ` + definitionsPath), where: re(`^  body\.status\.conditions\[`)},
		{reason: "the storage keys of custom resources", real: re(`StorageError: invalid object`),
			our: re(`StorageError: invalid object`)},
		{reason: "tables have the annotations of DaemonSets", request: re(`^GET \S+/daemonsets\S* \(.*as=Table`),
			our: re(`deprecated\.daemonset\.template\.generation`)},
		{reason: "while a conversion webhook fails, what else is wrong is not told",
			our: re(`conversion webhook for .* failed`)},
		{reason: "text after a patch is told as that", our: re(`error decoding patch: .*after top-level value`)},
		{reason: "a webhook's Service is told of what it lacks", real: re(`(?i)clientConfig\.service\.name`),
			our: re(`(?i)clientConfig\.service\.namespace`)},
		{reason: "and of the other", real: re(`(?i)clientConfig\.service\.namespace`),
			our: re(`(?i)clientConfig\.service\.name\b`)},
		{reason: "the keys of a policy without a name are looked at",
			request: re(`^\S+ /apis/admissionregistration\.k8s\.io/v1/\w+policies`),
			real:    re(`requires metadata\.name be non-empty`)},
		{reason: "a status with a spec that does not fit keeps managedFields", request: re(`^\S+ \S+/status`),
			where: re(`managedFields\n    real null`)},
		{reason: "the default of a schema with an unknown type is not looked at",
			request: re(`^\S+ ` + definitionsPath), real: re(`in body must be of type .*: \\"`)},
		{reason: "an object of which a patch takes the apiVersion is read as if it had it",
			request: re(`^PATCH [\s\S]*apiVersion`),
			real:    re(`strict decoding error: unknown field|name must be provided|internal version of group|Object 'apiVersion' is missing`)},
		{reason: "a patch that cannot be applied is answered", real: re(`^0 .*no answer`),
			our: re(`^500 .*unable to apply the patch`)},
		{reason: "metadata of an embedded resource that a version does not check is stored",
			request: re(customResourcePath),
			real:    re(`^500 .*metadata: Invalid value: .*cannot unmarshal \w+ into Go (struct field ObjectMeta|value of type v1\.ObjectMeta)`), our: re(`^(20[01]|409) `)},
		{reason: "fields of a body of another kind are not read", request: re(`^\S+ /apis/apps/`),
			real: re(`^400 .*cannot be handled as a Deployment: json: cannot unmarshal \w+ into Go struct field`),
			our:  re(`^400 .*unknown conversion`)},
		{reason: "what an update may not change is shown in the API's words",
			real: re(`Forbidden: (pod updates may not change fields|spec.persistentvolumesource is immutable|spec is immutable after creation)`), where: re(`\A  body\.(message|details\.causes)\S*\n.*@@ .*\n.*@@ .*(\n  body\.(message|details\.causes)\S*\n.*@@ .*\n.*@@ .*)*\z`)},
		{reason: "a dry run tells that an address or a node port cannot be had",
			request: re(`^\S+ \S+/services\S*dryRun=All`),
			our:     re(`provided IP is already allocated|provided port is not in the valid range`)},
		{reason: "a CA bundle that is written as an empty text is none", request: re(`webhookconfigurations`),
			where: re(`\A  body\.metadata\.generation\n[^\n]*\n[^\n]*\z`)},
		{reason: "the column of a RuntimeClass's handler is described", request: re(`^GET \S+/runtimeclasses`),
			where: re(`\A  body\.columnDefinitions\[1\]\.description\n`)},
		{reason: "who tells that a FlowSchema dangles", request: re(`^\S+ \S+/flowschemas`),
			real: re(`api-priority-and-fairness-config-consumer-v1`), where: re(`managedFields`)},
		{reason: "the condition of an APIService comes when its server has been asked",
			request: re(`^\S+ \S+/apiservices`),
			where:   re(`\A  body\.(rows\[0\]\.cells\[2\]|\S*managedFields|status)`)},
		{reason: "the servers' own Service", request: re(`^GET /api/v1/namespaces/default/services\S* `),
			where: re(`^  body\.(items|rows)\[0\]`)},
	}
}()

// intendedReason says why two answers differ as they should; "" if they should not.
func intendedReason(r request, answers [2]answer, lines []string) string {
	is := func(e *regexp.Regexp, s string) bool { return e == nil || e.MatchString(s) }
	said := func(a answer) string { return fmt.Sprintf("%d %s", a.Code, text(a.Body)) }
	for _, i := range allIntended {
		if is(i.request, r.String()) && is(i.real, said(answers[0])) && is(i.our, said(answers[1])) &&
			is(i.where, strings.Join(lines, "\n")) {
			return i.reason
		}
	}
	return ""
}
