package customresource

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// certificate is a definition as operators have them: some two hundred schemas, nested, with descriptions, defaults,
// enumerations, list maps, conditions and a pod template's worth of affinity-like terms; and one of its objects.
func certificate(t testing.TB, rules bool) (*apiextensionsv1.CustomResourceDefinition, []byte) {
	t.Helper()
	text := map[string]any{"type": "string",
		"description": "A text that says at some length what the field is for, and what happens when it is left out."}
	object := func(properties map[string]any, required ...string) map[string]any {
		return map[string]any{"type": "object", "description": "What belongs together.", "properties": properties,
			"required": required}
	}
	list := func(items map[string]any) map[string]any {
		return map[string]any{"type": "array", "items": items, "x-kubernetes-list-type": "atomic", "maxItems": 100}
	}
	listMap := func(items map[string]any, key string) map[string]any {
		return map[string]any{"type": "array", "items": items, "x-kubernetes-list-type": "map",
			"x-kubernetes-list-map-keys": []string{key}}
	}
	texts := map[string]any{"type": "object", "additionalProperties": text}
	secret := func() map[string]any { return object(map[string]any{"name": text, "key": text}, "name") }
	term := func() map[string]any {
		return object(map[string]any{"key": text,
			"operator": map[string]any{"type": "string", "enum": []string{"In", "NotIn", "Exists", "DoesNotExist"}},
			"values":   list(text)}, "key", "operator")
	}
	affinity := func() map[string]any {
		return list(object(map[string]any{
			"weight":     map[string]any{"type": "integer", "format": "int32", "minimum": 1, "maximum": 100},
			"preference": object(map[string]any{"matchExpressions": list(term()), "matchFields": list(term())}),
			"namespaces": list(text), "topologyKey": text}, "weight"))
	}
	keystore := func() map[string]any {
		return object(map[string]any{"create": map[string]any{"type": "boolean"}, "alias": text,
			"passwordSecretRef": secret(),
			"profile": map[string]any{"type": "string",
				"enum": []string{"LegacyRC2", "LegacyDES", "Modern2023"}}},
			"create")
	}
	solver := func() map[string]any {
		return object(map[string]any{"selector": object(map[string]any{"matchLabels": texts, "dnsNames": list(text)}),
			"serviceType": text, "ingressClassName": text,
			"template": object(map[string]any{"metadata": object(map[string]any{"annotations": texts, "labels": texts}),
				"affinity": affinity(), "antiAffinity": affinity(), "nodeSelector": texts,
				"tolerations": list(object(
					map[string]any{"key": text, "operator": text, "value": text, "effect": text,
						"tolerationSeconds": map[string]any{"type": "integer", "format": "int64"}}))}),
			"clientSecret": secret(), "accessKey": secret(), "token": secret()})
	}
	spec := object(map[string]any{
		"commonName": map[string]any{"type": "string", "maxLength": 64}, "dnsNames": list(text),
		"ipAddresses": list(text), "uris": list(text), "emailAddresses": list(text),
		"duration": map[string]any{"type": "string", "default": "2160h"}, "renewBefore": text,
		"isCA": map[string]any{"type": "boolean", "default": false},
		"secretName": map[string]any{"type": "string", "minLength": 1, "maxLength": 253,
			"pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
		"secretTemplate": object(map[string]any{"annotations": texts, "labels": texts}),
		"issuerRef": object(map[string]any{"name": text, "kind": map[string]any{"type": "string", "default": "Issuer"},
			"group": map[string]any{"type": "string", "default": "cert-manager.io"}}, "name"),
		"privateKey": object(map[string]any{
			"algorithm": map[string]any{"type": "string", "enum": []string{"RSA", "ECDSA", "Ed25519"},
				"default": "RSA"}, "size": map[string]any{"type": "integer", "minimum": 0, "default": 2048},
			"rotationPolicy": text}),
		"keystores": object(map[string]any{"jks": keystore(), "pkcs12": keystore()}),
		"usages": list(map[string]any{"type": "string",
			"enum": []string{"signing", "digital signature", "client auth", "server auth"}}),
		"subject": object(map[string]any{"organizations": list(text), "countries": list(text), "localities": list(text),
			"serialNumber": text}),
		"solvers": list(solver()), "fallback": solver(),
		"additionalOutputFormats": listMap(object(map[string]any{"type": text}, "type"), "type"),
		"replicas":                map[string]any{"x-kubernetes-int-or-string": true},
	}, "secretName", "issuerRef")
	condition := object(map[string]any{"type": text,
		"status": map[string]any{"type": "string", "enum": []string{"True", "False", "Unknown"}}, "reason": text,
		"message":            text,
		"lastTransitionTime": map[string]any{"type": "string", "format": "date-time"},
		"observedGeneration": map[string]any{"type": "integer", "format": "int64"}}, "type", "status")
	status := object(map[string]any{"conditions": listMap(condition, "type"),
		"notAfter": map[string]any{"type": "string", "format": "date-time"},
		"revision": map[string]any{"type": "integer"}})
	if rules {
		spec["x-kubernetes-validations"] = []map[string]any{
			{"rule": "!has(self.isCA) || !self.isCA || has(self.commonName)"},
			{"rule": "self.secretName != self.issuerRef.name", "message": "no loops"}}
	}
	raw, err := json.Marshal(
		object(map[string]any{"apiVersion": text, "kind": text, "metadata": map[string]any{"type": "object"},
			"spec": spec, "status": status}))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "certificates.example.com"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}}}
	if err := json.Unmarshal(raw, crd.Spec.Versions[0].Schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	obj := `{"apiVersion": "example.com/v1", "kind": "Certificate", "metadata": {"name": "a", "namespace": "b", "labels": {"app": "web"}}, "spec": {
		"commonName": "web.example.com", "dnsNames": ["web.example.com", "www.example.com", "api.example.com"], "secretName": "web-tls", "issuerRef": {"name": "ca", "kind": "ClusterIssuer"},
		"privateKey": {"algorithm": "ECDSA", "size": 256}, "usages": ["server auth", "client auth"], "keystores": {"jks": {"create": true, "passwordSecretRef": {"name": "jks", "key": "password"}}},
		"subject": {"organizations": ["Example"], "countries": ["SE"]}, "replicas": "50%",
		"solvers": [{"selector": {"matchLabels": {"a": "b"}}, "serviceType": "ClusterIP", "template": {"metadata": {"labels": {"a": "b"}}, "nodeSelector": {"kubernetes.io/os": "linux"},
			"affinity": [{"weight": 10, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}}], "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]}}]}}`
	return crd, []byte(obj)
}

// BenchmarkCreate is what a schema adds to the creation of an object: pruning, defaults and validation.
func BenchmarkCreate(b *testing.B) {
	for _, rules := range []bool{false, true} {
		b.Run(fmt.Sprintf("rules=%t", rules), func(b *testing.B) {
			crd, raw := certificate(b, rules)
			kind, err := compile(crd, "v1")
			if err != nil {
				b.Fatal(err)
			}
			var u unstructured.Unstructured
			if err := u.UnmarshalJSON(raw); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				obj := u.DeepCopy()
				b.StartTimer()
				if lost, err := kind.Prune(obj); err != nil || len(lost) > 0 {
					b.Fatal(lost, err)
				}
				kind.Default(obj)
				if errs := kind.Validate(b.Context(), obj); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkCompile is what the first request for a version costs.
func BenchmarkCompile(b *testing.B) {
	crd, _ := certificate(b, false)
	for b.Loop() {
		if _, err := compile(crd, "v1"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestTypeIsSmall: what a version keeps while it is used is below what a definition may cost at all.
func TestTypeIsSmall(t *testing.T) {
	crd, _ := certificate(t, false)
	const n = 20
	types := make([]*Type, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range types {
		var err error
		if types[i], err = compile(crd, "v1"); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / n
	t.Logf("a compiled version takes %d KB", each>>10)
	if each > 300<<10 {
		t.Errorf("a compiled version takes %d bytes", each)
	}
	runtime.KeepAlive(types)
}
