package why

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// serviceOf finds the Service that an API server calls in the URL of a message.
var serviceOf = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?::\d+)?/`)

// CalledService returns the Service that an API server could not call, by its message.
func CalledService(message string) (service Object, ok bool) {
	m := serviceOf.FindStringSubmatch(message)
	if m == nil {
		return Object{}, false
	}
	return Object{Kind: "Service", Namespace: m[2], Name: m[1]}, true
}

// callFailures are what API servers say about a server that they call, apart from its Service.
var callFailures = []struct{ words, code, text, fix string }{
	{"x509:", "WebhookCertificate", "The certificate of its server is not one that the configuration's caBundle trusts.",
		"Put the authority of the server's certificate into caBundle, or renew the certificate."},
	{"deadline exceeded", "WebhookTimeout", "Its server did not answer within timeoutSeconds.",
		"Look at its server's load and logs, or at policies that keep the API server from it."},
	{"the server could not find the requested resource", "WebhookPath", "Its server does not know the path of the call.",
		"Compare clientConfig.service.path with what the server serves."},
}

// unreachable explains a webhook that does not answer: its Service, its certificate, or that the very pods that serve
// it must be admitted by it first.
func unreachable(ctx context.Context, c *Case, webhook, said string, cause Cause) Cause {
	cause.Code = "WebhookDown"
	cause.Text = fmt.Sprintf("The admission webhook %s does not answer, and its failurePolicy is Fail: %s.", webhook,
		Quote(said))
	service, ok := CalledService(said)
	var itself *Object
	if ok {
		itself = servedBy(ctx, c, service)
		cause.Because, _ = c.Causes(ctx, service)
	}
	for _, f := range callFailures {
		if strings.Contains(said, f.words) {
			cause.Because = append(cause.Because, Cause{Code: f.code, Text: f.text, Fixes: []Fix{{Text: f.fix}}})
			break
		}
	}
	kind, name, index := webhookConfiguration(ctx, c, webhook)
	o := Object{Group: admissionregistrationv1.GroupName, Kind: kind, Name: name}
	if name != "" {
		cause.Evidence = append(cause.Evidence, See(o, `.webhooks[?(@.name=="`+webhook+`")].failurePolicy`, "Fail"))
	}
	if itself != nil {
		cause.Code = "WebhookBlocksItself"
		cause.Text = fmt.Sprintf("The admission webhook %s is served by the pods of %s, which it must admit first: it is "+
			"asked about its own pods, and nothing is there to answer (%s).", webhook, itself, Quote(said))
		if name != "" {
			cause.Fixes = []Fix{{Text: "Leave its own pods out of the webhook's rules, by a namespaceSelector or an " +
				"objectSelector.", Command: Command("kubectl edit %s %s", strings.ToLower(kind), name)},
				{Text: "Let requests pass while it does not answer, and set the policy back when it runs.",
					Command: Command("kubectl patch %s %s --type=json -p %s", strings.ToLower(kind), name, fmt.Sprintf(
						`[{"op":"replace","path":"/webhooks/%d/failurePolicy","value":"Ignore"}]`, index))}}
		}
	} else {
		cause.Fixes = []Fix{{Text: "Bring the webhook's server back."}}
	}
	if name != "" {
		cause.Fixes = append(cause.Fixes, Fix{Text: "If the software behind it is gone for good, remove its " +
			"configuration.", Command: Command("kubectl delete %s %s", strings.ToLower(kind), name)})
	}
	return cause
}

// servedBy returns the workload of the question that makes the pods of a Service, nil if none of those that are asked
// about does.
func servedBy(ctx context.Context, c *Case, service Object) *Object {
	s, _ := Get[corev1.Service](ctx, c.World, service.Namespace, service.Name)
	if s == nil || len(s.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.Set(s.Spec.Selector).AsSelector()
	for _, o := range c.asked {
		if o.Namespace != service.Namespace {
			continue
		}
		u, _ := c.ByKind(ctx, o.Group, o.Kind, o.Namespace, o.Name)
		if u == nil {
			continue
		}
		template, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
		if len(template) > 0 && selector.Matches(labels.Set(template)) {
			return &o
		}
	}
	return nil
}

// webhookConfiguration returns the kind and the name of the object that registers a webhook, and where in it; the name
// is "" if none was found.
func webhookConfiguration(ctx context.Context, c *Case, webhook string) (kind, name string, index int) {
	validating, _ := List[admissionregistrationv1.ValidatingWebhookConfiguration](ctx, c.World, "", nil)
	for _, w := range validating {
		for i := range w.Webhooks {
			if w.Webhooks[i].Name == webhook {
				return "ValidatingWebhookConfiguration", w.Name, i
			}
		}
	}
	mutating, _ := List[admissionregistrationv1.MutatingWebhookConfiguration](ctx, c.World, "", nil)
	for _, w := range mutating {
		for i := range w.Webhooks {
			if w.Webhooks[i].Name == webhook {
				return "MutatingWebhookConfiguration", w.Name, i
			}
		}
	}
	return "", "", 0
}
