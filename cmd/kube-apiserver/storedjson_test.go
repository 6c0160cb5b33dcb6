package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcdtest"
)

// TestJSONOfEveryKind: what is stored as JSON is read as protobuf, of every kind that is stored as protobuf here, in
// each version whose protobuf is read. Of another kind it is refused.
func TestJSONOfEveryKind(t *testing.T) {
	t.Parallel()
	all := rows.All()
	transform, err := withStoredJSON(nil, all)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i := range all {
		row := &all[i]
		codec, ok := registry.NewCodec(row).(*registry.ProtobufCodec)
		if !ok || row.NotStored || row.Stored != nil {
			continue
		}
		tried++
		for _, gvk := range []schema.GroupVersionKind{row.GVK, row.StorageGVK()} {
			apiVersion, kind := gvk.ToAPIVersionAndKind()
			document := fmt.Sprintf(` {"kind":%q,"apiVersion":%q,"metadata":{"name":"a"}}`+"\n", kind, apiVersion)
			key := registry.Prefix(row) + "a"
			opener := transform(key)
			if opener == nil {
				t.Errorf("%s: nobody reads the JSON of %s", key, gvk)
				continue
			}
			value, stale, err := opener.Open(t.Context(), []byte(key), []byte(document))
			if err != nil || !stale {
				t.Errorf("%s: %s is read with %v, stale: %t", key, gvk, err, stale)
				continue
			}
			obj, err := codec.Decode(value, 0)
			if err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			if m, err := meta.Accessor(obj); err != nil || m.GetName() != "a" ||
				obj.GetObjectKind().GroupVersionKind() != row.GVK {
				t.Errorf("%s: %s is read as %+v, %v", key, gvk, obj, err)
			}
			other := strings.Replace(document, `"kind":"`, `"kind":"Other`, 1)
			if _, _, err := opener.Open(t.Context(), []byte(key), []byte(other)); err == nil {
				t.Errorf("%s: another kind is read", key)
			}
		}
	}
	if tried < 50 {
		t.Errorf("%d kinds are stored", tried)
	}
	for _, key := range []string{"/registry/example.org/widgets/default/a", "/registry/", "/registry", "other", ""} {
		if got := transform(key); got != nil {
			t.Errorf("%s is read by %T", key, got)
		}
	}
}

// storedAsJSON returns objects as another tool, or a kube-apiserver with --storage-media-type=application/json, stores
// them.
func storedAsJSON(t *testing.T) []storedDocument {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(nil, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST",
		Bytes: request}))
	return []storedDocument{
		{"/registry/certificatesigningrequests/a", "/apis/certificates.k8s.io/v1/certificatesigningrequests/a",
			fmt.Sprintf(`{"kind": "CertificateSigningRequest", "apiVersion": "certificates.k8s.io/v1",
			"metadata": {"name": "a", "uid": "1", "creationTimestamp": "2026-01-02T03:04:05Z"}, "spec": {"request": %q,
			"signerName": "example.org/a", "usages": ["client auth"]}, "status": {}}`, encoded)},
		{"/registry/configmaps/default/a", "/api/v1/namespaces/default/configmaps/a",
			`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"2",` +
				`"creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"k":"v"}}` + "\n"},
	}
}

// storedDocument is a value of etcd, and where the server shows it.
type storedDocument struct{ key, path, value string }

// TestReadsJSON: objects that are JSON in etcd are read, listed, watched and changed, whether they are there when the
// server starts or come while it runs. Their next write makes them protobuf.
func TestReadsJSON(t *testing.T) {
	t.Parallel()
	store := etcdtest.Start(t)
	raw := bare(t, store.Endpoint)
	objects := storedAsJSON(t)
	put := func(name string) {
		for _, o := range objects {
			value := strings.Replace(o.value, `"a"`, fmt.Sprintf("%q", name), 1)
			if _, err := raw.Create(t.Context(), named(o.key, name), storage.Draft{Value: []byte(value)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("before")
	s := startOurs(t, "--etcd-servers="+store.Endpoint)
	for _, name := range []string{"before", "meanwhile"} {
		if name == "meanwhile" {
			put(name)
		}
		for _, o := range objects {
			path := named(o.path, name)
			var got struct {
				Kind     string
				Metadata struct{ Name, ResourceVersion, CreationTimestamp string }
			}
			if err := json.Unmarshal([]byte(s.ask(t, http.MethodGet, path, "")), &got); err != nil {
				t.Fatal(err)
			}
			if m := got.Metadata; m.Name != name || m.ResourceVersion == "" || m.CreationTimestamp == "" {
				t.Errorf("%s is %+v", path, got)
			}
			list := strings.TrimSuffix(path, "/"+name)
			if text := s.ask(t, http.MethodGet, list, ""); !strings.Contains(text, fmt.Sprintf("%q", name)) {
				t.Errorf("%s is not in the list %s", name, text)
			}
			seen := s.ask(t, http.MethodGet, list+"?watch=1&timeoutSeconds=1", "")
			if !strings.Contains(seen, fmt.Sprintf("%q", name)) {
				t.Errorf("%s is not in the watch %s", name, seen)
			}
			s.ask(t, http.MethodPatch, path, `{"metadata": {"labels": {"changed": "yes"}}}`)
			if value := stored(t, raw, named(o.key, name)); !strings.HasPrefix(string(value), "k8s\x00") ||
				!strings.Contains(string(value), "changed") {
				t.Errorf("%s is stored as %q after a write", path, value)
			}
		}
	}
}

// named returns a path for the object with this name.
func named(path, name string) string { return strings.TrimSuffix(path, "a") + name }

// TestReadsReferenceJSON: ours reads everything that a real kube-apiserver stores as JSON, also its node ports and the
// addresses of servers, and the real one what ours makes of it.
func TestReadsReferenceJSON(t *testing.T) {
	t.Parallel()
	if os.Getenv("REFERENCE_KUBE_APISERVER") == "" {
		t.Skip("SKIPPED: Kubernetes' own kube-apiserver was NOT tried with JSON as its storage's format (REFERENCE_KUBE_APISERVER names none)")
	}
	store := etcdtest.Start(t)
	etcd := "--etcd-servers=" + store.Endpoint
	real := startReference(t, etcd, "--storage-media-type=application/json")
	service := `{"metadata": {"name": %q}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}`
	const services = "/api/v1/namespaces/default/services"
	real.ask(t, http.MethodPost, services, fmt.Sprintf(service, "theirs"))
	raw := bare(t, store.Endpoint)
	if got := stored(t, raw, "/registry/ranges/servicenodeports"); !strings.HasPrefix(string(got), "{") {
		t.Errorf("the real one stores node ports as %.40q", got)
	}
	before := real.names(t, "/apis/rbac.authorization.k8s.io/v1/clusterroles", 0)
	ours := startOurs(t, etcd)
	if got := ours.names(t, "/apis/rbac.authorization.k8s.io/v1/clusterroles", 0); len(got) < len(before) {
		t.Errorf("ours has %d cluster roles, the real one %d", len(got), len(before))
	}
	ours.ask(t, http.MethodPost, services, fmt.Sprintf(service, "ours"))
	ours.ask(t, http.MethodPatch, services+"/theirs", `{"metadata": {"labels": {"changed": "yes"}}}`)
	real.ask(t, http.MethodPost, services, fmt.Sprintf(service, "theirs-again"))
	if got := real.names(t, services, 0); len(got) < 3 {
		t.Errorf("the real one has the services %v", got)
	}
	if text := ours.log.String(); strings.Contains(text, "no JSON") || strings.Contains(text, "cannot be read") {
		t.Errorf("ours logs %s", text)
	}
}
