package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/storage/encryption/kmstest"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/etcdtest"
)

// encryptedResources are two kinds that are stored as protobuf, and a custom one that is stored as JSON.
var encryptedResources = []struct{ path, key, object string }{
	{"/api/v1/namespaces/default/secrets", "/registry/secrets/default/",
		`{"metadata": {"name": %q}, "stringData": {"value": "plain text"}}`},
	{"/api/v1/namespaces/default/configmaps", "/registry/configmaps/default/",
		`{"metadata": {"name": %q}, "data": {"value": "plain text"}}`},
	{"/apis/example.org/v1/namespaces/default/widgets", "/registry/example.org/widgets/default/",
		`{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": %q}, "value": "plain text"}`},
}

const widgets = `{"metadata": {"name": "widgets.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
"names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true,
"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`

// TestEncryptedReference: a real kube-apiserver and ours on one etcd, with one file of every provider that encrypts:
// what one writes the other reads, lists, watches and changes. With a new key, each rotates what the other has written,
// and the old key can go.
func TestEncryptedReference(t *testing.T) {
	t.Parallel()
	if os.Getenv("REFERENCE_KUBE_APISERVER") == "" {
		t.Skip("SKIPPED: Kubernetes' own kube-apiserver was NOT tried beside ours on encrypted objects (REFERENCE_KUBE_APISERVER names none)")
	}
	plugin := kmstest.New(t, "a").Start(t)
	for name, r := range map[string]rotation{
		"aescbc": keyed("aescbc"), "aesgcm": keyed("aesgcm"), "secretbox": keyed("secretbox"), "kms": service(plugin),
	} {
		t.Run(name, func(t *testing.T) { testEncrypted(t, r) })
	}
}

// rotation is the providers before, while and after a key takes another one's place, and how values begin by each key.
type rotation struct {
	before, meanwhile, after string
	prefix, newPrefix        string
}

// keyed is the change of a key in the file.
func keyed(provider string) rotation {
	keys := func(names ...string) string {
		var list []string
		for _, name := range names {
			list = append(list, fmt.Sprintf("{name: %s, secret: %s}", name, strings.Repeat(name, 43)+"="))
		}
		return fmt.Sprintf("%s: {keys: [%s]}", provider, strings.Join(list, ", "))
	}
	return rotation{before: keys("A"), meanwhile: keys("I", "A"), after: keys("I"),
		prefix: "k8s:enc:" + provider + ":v1:A:", newPrefix: "k8s:enc:" + provider + ":v1:I:"}
}

// service is the change of a KMS v2 provider.
func service(plugin *kmstest.Plugin) rotation {
	kms := func(name string) string {
		return fmt.Sprintf("kms: {apiVersion: v2, name: %s, endpoint: %q}", name, plugin.Endpoint)
	}
	return rotation{before: kms("one"), meanwhile: kms("two") + "\n  - " + kms("one"), after: kms("two"),
		prefix: "k8s:enc:kms:v2:one:", newPrefix: "k8s:enc:kms:v2:two:"}
}

// testEncrypted runs both servers through a rotation.
func testEncrypted(t *testing.T, r rotation) {
	t.Helper()
	store := etcdtest.Start(t)
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	write := func(providers string) {
		replaceFile(t, file, "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"+
			"- resources: [secrets, configmaps, widgets.example.org]\n  providers:\n  - "+providers+"\n")
	}
	write(r.before)
	flags := []string{"--etcd-servers=" + store.Endpoint, "--encryption-provider-config=" + file}
	both := []*server{startReference(t, flags...), startOurs(t, flags...)}
	both[0].ask(t, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
	raw := bare(t, store.Endpoint)
	for _, s := range both {
		s.await(t, "/apis/example.org/v1/widgets")
	}
	for i, writer := range both {
		exchange(t, writer, both[1-i], raw, fmt.Sprintf("from-%d", i), r.prefix)
	}
	write(r.meanwhile)
	restart := func() {
		t.Helper()
		for i, start := range []func(*testing.T, ...string) *server{startReference, startOurs} {
			both[i].stop()
			both[i] = start(t, flags...)
		}
	}
	restart()
	for i, s := range both {
		for _, kind := range encryptedResources {
			// What the other has written, by an update that changes nothing.
			name := fmt.Sprintf("from-%d", 1-i)
			s.ask(t, http.MethodPut, kind.path+"/"+name, s.ask(t, http.MethodGet, kind.path+"/"+name, ""))
			if value := stored(t, raw, kind.key+name); !strings.HasPrefix(string(value), r.newPrefix) {
				t.Errorf("%s rotates %s%s to %.40q, want %s", s.name, kind.key, name, value, r.newPrefix)
			}
		}
	}
	// The servers' own ConfigMaps, too.
	const system = "/api/v1/namespaces/kube-system/configmaps"
	for i, name := range both[1].names(t, system, 0) {
		both[i%2].ask(t, http.MethodPatch, system+"/"+name, "{}")
	}
	// The new key alone.
	write(r.after)
	restart()
	for i, writer := range both {
		for _, kind := range encryptedResources {
			if names := writer.names(t, kind.path, 1); !strings.Contains(strings.Join(names, " "), "from-0 from-1") {
				t.Errorf("%s lists %v at %s", writer.name, names, kind.path)
			}
		}
		exchange(t, writer, both[1-i], raw, fmt.Sprintf("again-%d", i), r.newPrefix)
	}
}

// exchange has one server write, and the other read, list, watch, change and remove.
func exchange(t *testing.T, writer, reader *server, raw *etcd.Store, name, prefix string) {
	t.Helper()
	for _, r := range encryptedResources {
		var list struct {
			Metadata struct{ ResourceVersion string }
		}
		if err := json.Unmarshal([]byte(reader.ask(t, http.MethodGet, r.path, "")), &list); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			reader.url+r.path+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+adminToken)
		resp, err := reader.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		changes := bufio.NewReader(resp.Body)
		next := func(want ...string) {
			t.Helper()
			line, err := changes.ReadString('\n')
			for _, part := range want {
				if !strings.Contains(line, part) {
					t.Errorf("%s watches %s and sees %s %v, want %q", reader.name, r.path, line, err, want)
				}
			}
		}
		writer.ask(t, http.MethodPost, r.path, fmt.Sprintf(r.object, name))
		next("ADDED", name)
		value := stored(t, raw, r.key+name)
		if !strings.HasPrefix(string(value), prefix) || strings.Contains(string(value), "plain text") {
			t.Errorf("%s stores %s%s as %.40q, want %s", writer.name, r.key, name, value, prefix)
		}
		same := reader.ask(t, http.MethodGet, r.path+"/"+name, "")
		if want := writer.ask(t, http.MethodGet, r.path+"/"+name, ""); !equalJSON(t, same, want) {
			t.Errorf("%s reads %s, and %s has written %s", reader.name, same, writer.name, want)
		}
		if names := reader.names(t, r.path, 1); !strings.Contains(strings.Join(names, " "), name) {
			t.Errorf("%s lists %v at %s", reader.name, names, r.path)
		}
		reader.ask(t, http.MethodPatch, r.path+"/"+name, `{"metadata": {"labels": {"changed": "yes"}}}`)
		next("MODIFIED", `"changed":"yes"`)
		if text := writer.ask(t, http.MethodGet, r.path+"?labelSelector=changed", ""); !strings.Contains(text, name) {
			t.Errorf("%s does not find what %s has changed: %s", writer.name, reader.name, text)
		}
		reader.ask(t, http.MethodPost, r.path, fmt.Sprintf(r.object, name+"-gone"))
		next("ADDED", name+"-gone")
		writer.ask(t, http.MethodDelete, r.path+"/"+name+"-gone", "")
		next("DELETED", name+"-gone")
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s wrote %s%s as %s…, and %s read, listed, watched, changed and removed", writer.name, r.key, name,
			prefix, reader.name)
	}
}

// equalJSON reports whether two documents say the same.
func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var one, other any
	if err := json.Unmarshal([]byte(a), &one); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &other); err != nil {
		t.Fatal(err)
	}
	x, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}
