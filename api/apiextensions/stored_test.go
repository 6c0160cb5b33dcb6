package apiextensions_test

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"bonsai/api/apiextensions"
)

// TestStoredReader: a definition as a real kube-apiserver v1.36.3 stored it (the value of its key in etcd) is one of
// v1. What is none shows nothing of itself.
func TestStoredReader(t *testing.T) {
	t.Parallel()
	read, err := apiextensions.NewStoredReader()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/stored-v1beta1.json")
	if err != nil {
		t.Fatal(err)
	}
	obj, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || d.APIVersion != "apiextensions.k8s.io/v1" || d.Name != "bars.foo.io" || len(d.Spec.Versions) != 1 ||
		d.Spec.Versions[0].Schema == nil || d.Spec.Versions[0].Schema.OpenAPIV3Schema.Type != "object" ||
		d.Spec.PreserveUnknownFields || len(d.Status.StoredVersions) != 1 || d.UID == "" {
		t.Errorf("%+v", obj)
	}
	for _, bad := range []string{"{", "secret", `{"apiVersion":"apiextensions.k8s.io/v1beta2"}`,
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"Other"}`,
		strings.Replace(string(text), `"spec":{`, `"spec":{"versions":"secret",`, 1)} {
		if got, err := read([]byte(bad)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", bad, got, err)
		}
	}
}
