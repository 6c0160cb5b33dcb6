package registry

import (
	"bytes"
	_ "embed"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/storage"
)

// written is what a kube-apiserver v1.37.2 stored of a ClusterTrustBundle.
//
//go:embed testdata/clustertrustbundle.pb
var written []byte

// TestStorageVersion: objects are stored as an earlier version, as Kubernetes stores them, and answered as their own.
func TestStorageVersion(t *testing.T) {
	t.Parallel()
	codec := NewCodec(&resources.Row{GVK: certificatesv1.SchemeGroupVersion.WithKind("ClusterTrustBundle"),
		New: resources.Make[certificatesv1.ClusterTrustBundle], StorageVersion: "v1beta1"})
	bundle := &certificatesv1.ClusterTrustBundle{}
	bundle.Name, bundle.Spec.TrustBundle = "a", "x"
	draft, err := codec.Draft(bundle)
	if err != nil {
		t.Fatal(err)
	}
	head := func(version string) []byte {
		return EnvelopeHead(schema.GroupVersionKind{Group: "certificates.k8s.io", Version: version,
			Kind: "ClusterTrustBundle"})
	}
	if !bytes.HasPrefix(draft.Value, head("v1beta1")) {
		t.Errorf("stored as %q", draft.Value)
	}
	later, err := Envelop(head("v1"), bundle)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string][]byte{"ours": draft.Value, "Kubernetes'": written,
		"of a later release": later} {
		obj, err := codec.Decode(value, 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := obj.(*certificatesv1.ClusterTrustBundle)
		if got.APIVersion != "certificates.k8s.io/v1" || got.Name == "" || got.Spec.TrustBundle == "" {
			t.Errorf("%s: %+v", name, got)
		}
		item := storage.NewItem("/a", value, 1, storage.Facts{})
		if doc, err := codec.AppendJSON(nil, item); err != nil ||
			!bytes.Contains(doc, []byte(`"apiVersion":"certificates.k8s.io/v1"`)) {
			t.Errorf("%s: %s, %v", name, doc, err)
		}
		if doc, err := AppendDocument(codec.Messages(), nil, item); err != nil || !bytes.HasPrefix(doc, head("v1")) {
			t.Errorf("%s: %q, %v", name, doc, err)
		}
	}
	alpha, err := Envelop(head("v1alpha1"), bundle)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := codec.Decode(alpha, 1); err == nil {
		t.Error("a version that is not known is read")
	}
}
