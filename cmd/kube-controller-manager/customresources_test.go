package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// ask makes a request with JSON and returns the code and what was answered.
func (w *world) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.Config().Host+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type",
		map[bool]string{false: "application/json", true: "application/merge-patch+json"}[method == http.MethodPatch])
	res, err := w.HTTP().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

// must makes a request that succeeds, and returns the UID in the answer.
func (w *world) must(t *testing.T, method, path, body string) types.UID {
	t.Helper()
	code, answer := w.ask(t, method, path, body)
	if code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(answer), &o); err != nil {
		t.Fatal(err)
	}
	return o.UID
}

// goes waits until there is no object at a path.
func (w *world) goes(t *testing.T, path string) {
	t.Helper()
	controllertest.Eventually(t, path+" to go", func() string {
		if code, answer := w.ask(t, http.MethodGet, path, ""); code != http.StatusNotFound {
			return answer
		}
		return ""
	})
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define makes a kind Foo of a group, in the scope "Namespaced" or "Cluster", and returns where its objects are.
func (w *world) define(t *testing.T, group, scope, ns string) string {
	t.Helper()
	w.must(t, http.MethodPost, definitions,
		fmt.Sprintf(`{"metadata":{"name":"foos.%[1]s"},"spec":{"group":%[1]q,"scope":%[2]q,"names":{"plural":"foos","singular":"foo","kind":"Foo"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, group, scope))
	at := "/apis/" + group + "/v1/foos"
	if scope == "Namespaced" {
		at = "/apis/" + group + "/v1/namespaces/" + ns + "/foos"
	}
	controllertest.Eventually(t, group+" to be served", func() string {
		if code, answer := w.ask(t, http.MethodGet, at, ""); code != http.StatusOK {
			return answer
		}
		return ""
	})
	return at
}

// foo makes a custom resource with more metadata.
func (w *world) foo(t *testing.T, at, name, metadata string) types.UID {
	t.Helper()
	return w.must(t, http.MethodPost, at,
		fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Foo","metadata":{"name":%q%s}}`, strings.Split(at, "/")[2], name,
			metadata))
}

// owned is metadata that names an owner.
func owned(apiVersion, kind, name string, uid types.UID) string {
	return fmt.Sprintf(`,"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":true}]`,
		apiVersion, kind, name, uid)
}

// customResources: they own, are owned, and have finalizers as other objects do; with their definition goes what they
// own.
func (w *world) customResources(t *testing.T) {
	ns := w.makeNamespace(t, "t-custom")
	maps := "/api/v1/namespaces/" + ns + "/configmaps"
	configMap := func(name, metadata string) types.UID {
		return w.must(t, http.MethodPost, maps, fmt.Sprintf(`{"metadata":{"name":%q%s}}`, name, metadata))
	}
	foos := w.define(t, "own.example.com", "Namespaced", ns)
	clustered := w.define(t, "wide.example.com", "Cluster", ns)
	const v1, v2, wide = "own.example.com/v1", "own.example.com/v2", "wide.example.com/v1"

	for _, policy := range []string{"Background", "Foreground", "Orphan"} {
		name := strings.ToLower(policy)
		uid := w.foo(t, foos, name, "")
		configMap(name, owned(v1, "Foo", name, uid))
		configMap(name+"2", owned(v2, "Foo", name, uid)) // by another version
		w.must(t, http.MethodDelete, foos+"/"+name, `{"propagationPolicy":"`+policy+`"}`)
		w.goes(t, foos+"/"+name)
		for _, path := range []string{maps + "/" + name, maps + "/" + name + "2"} {
			if policy != "Orphan" {
				w.goes(t, path)
			} else if code, answer := w.ask(t, http.MethodGet, path, ""); code != http.StatusOK ||
				strings.Contains(answer, "ownerReferences") {
				t.Errorf("orphaned: %d %s", code, answer)
			}
		}
	}

	w.foo(t, foos, "of-map", owned("v1", "ConfigMap", "owner", configMap("owner", "")))
	uid := w.foo(t, clustered, "root", "")
	configMap("of-root", owned(wide, "Foo", "root", uid))
	w.foo(t, foos, "foo-of-root", owned(wide, "Foo", "root", uid))
	w.must(t, http.MethodDelete, maps+"/owner", "")
	w.must(t, http.MethodDelete, clustered+"/root", "")
	for _, path := range []string{foos + "/of-map", maps + "/of-root", foos + "/foo-of-root"} {
		w.goes(t, path)
	}

	held := w.foo(t, foos, "held", `,"finalizers":["example.com/hold"]`)
	configMap("of-held", owned(v1, "Foo", "held", held))
	w.must(t, http.MethodDelete, foos+"/held", `{"propagationPolicy":"Foreground"}`)
	w.goes(t, maps+"/of-held")
	controllertest.Eventually(t, "the last finalizer to be the foreign one", func() string {
		if code, answer := w.ask(t, http.MethodGet, foos+"/held", ""); code != http.StatusOK ||
			!strings.Contains(answer, `"finalizers":["example.com/hold"]`) {
			return answer
		}
		return ""
	})
	w.must(t, http.MethodPatch, foos+"/held", `{"metadata":{"finalizers":null}}`)
	w.goes(t, foos+"/held")

	for i := range 50 {
		name := fmt.Sprint("last-", i)
		configMap(name, owned(v2, "Foo", name, w.foo(t, foos, name, "")))
	}
	w.must(t, http.MethodDelete, definitions+"/foos.own.example.com", "")
	for i := range 50 {
		w.goes(t, maps+fmt.Sprint("/last-", i))
	}
}

// namespaceBesideDead: a namespace is emptied of built-in and custom resources although an aggregated server is dead,
// says that it cannot know of that one's, and goes when that has gone (kubernetes#60807).
func (w *world) namespaceBesideDead(t *testing.T) {
	ns := w.makeNamespace(t, "t-dead")
	foos := w.define(t, "kept.example.com", "Namespaced", ns)
	const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices"
	w.must(t, http.MethodPost, apiServices,
		`{"metadata":{"name":"v1.dead.example.com"},"spec":{"group":"dead.example.com","version":"v1","groupPriorityMinimum":1000,"versionPriority":10,
		"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"nobody"}}}`)
	controllertest.Eventually(t, "the aggregated server to be known as dead", func() string {
		if _, answer := w.ask(t, http.MethodGet, apiServices+"/v1.dead.example.com",
			""); !strings.Contains(answer, `"reason":"ServiceNotFound"`) {
			return answer
		}
		return ""
	})
	w.foo(t, foos, "free", "")
	w.foo(t, foos, "held", `,"finalizers":["example.com/hold"]`)
	owner := w.foo(t, foos, "owner", "")
	w.must(t, http.MethodPost, "/api/v1/namespaces/"+ns+"/configmaps",
		fmt.Sprintf(`{"metadata":{"name":"child"%s}}`, owned("kept.example.com/v1", "Foo", "owner", owner)))
	// Garbage is collected beside it.
	w.must(t, http.MethodDelete, foos+"/owner", "")
	w.goes(t, "/api/v1/namespaces/"+ns+"/configmaps/child")

	says := func(wants ...string) {
		t.Helper()
		controllertest.Eventually(t, strings.Join(wants, "; "), func() string {
			n, err := core.Namespaces(w.Client).Get(t.Context(), "", ns)
			if err != nil {
				return err.Error()
			}
			all := ""
			for _, c := range n.Status.Conditions {
				all += fmt.Sprintf("%s %s %s: %s; ", c.Type, c.Status, c.Reason, c.Message)
			}
			for _, want := range wants {
				if !strings.Contains(all, want) {
					return all
				}
			}
			return ""
		})
	}
	if err := core.Namespaces(w.Client).Delete(t.Context(), "", ns, ""); err != nil {
		t.Fatal(err)
	}
	says("NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: foos.kept.example.com has 1 resource instances",
		"NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
		"NamespaceDeletionDiscoveryFailure True DiscoveryFailed: Discovery failed for some groups, 1 failing:",
		"dead.example.com/v1: stale GroupVersion discovery")
	w.goes(t, foos+"/free")
	w.goes(t, "/api/v1/namespaces/"+ns+"/configmaps/kube-root-ca.crt")
	w.must(t, http.MethodPatch, foos+"/held", `{"metadata":{"finalizers":null}}`)
	w.goes(t, foos+"/held")
	says("NamespaceContentRemaining False ContentRemoved")
	if n, err := core.Namespaces(w.Client).Get(t.Context(), "", ns); err != nil ||
		n.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("what a dead server has of a namespace is not known to be gone: %v %v", n, err)
	}
	w.must(t, http.MethodDelete, apiServices+"/v1.dead.example.com", "")
	controllertest.Eventually(t, "the namespace to go", func() string {
		_, err := core.Namespaces(w.Client).Get(t.Context(), "", ns)
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprint("still there: ", err)
	})
	w.must(t, http.MethodDelete, definitions+"/foos.kept.example.com", "")
}
