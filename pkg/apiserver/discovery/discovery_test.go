package discovery_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/apiregistration"
	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/discovery"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

const (
	v2   = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

func get(t *testing.T, d *discovery.Discovery, path, accept string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if own, err := d.Serve(w, r); !own || err != nil {
		t.Fatalf("%s: served %v, %v", path, own, err)
	}
	return w
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLegacy(t *testing.T) {
	t.Parallel()
	d := discovery.New(discovery.Config{Catalog: assembletest.Catalog(t, rows.All()), ServerAddress: "192.0.2.1:6443"})
	if v := decode[metav1.APIVersions](t, get(t, d, "/api", "")); v.Kind != "APIVersions" ||
		!slices.Equal(v.Versions, []string{"v1"}) || v.ServerAddressByClientCIDRs[0].ServerAddress != "192.0.2.1:6443" {
		t.Errorf("/api: %+v", v)
	}
	groups := decode[metav1.APIGroupList](t, get(t, d, "/apis", "")).Groups
	if groups[0].Name != "apiregistration.k8s.io" || groups[1].PreferredVersion.GroupVersion != "apps/v1" {
		t.Errorf("/apis begins with %+v", groups[0])
	}
	core := decode[metav1.APIResourceList](t, get(t, d, "/api/v1/", ""))
	byName := map[string]metav1.APIResource{}
	var names []string
	for _, r := range core.APIResources {
		byName[r.Name] = r
		names = append(names, r.Name)
	}
	if !slices.IsSorted(names) || core.GroupVersion != "v1" || core.Kind != "APIResourceList" {
		t.Errorf("/api/v1: %v", names)
	}
	pods := byName["pods"]
	want := metav1.APIResource{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod",
		ShortNames: []string{"po"}, Categories: []string{"all"},
		Verbs:              []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		StorageVersionHash: pods.StorageVersionHash}
	if diff := cmp.Diff(want, pods); diff != "" || pods.StorageVersionHash == "" {
		t.Error(diff)
	}
	evict := byName["pods/eviction"]
	if evict.Group != "policy" || evict.Version != "v1" || evict.Kind != "Eviction" ||
		!slices.Equal(evict.Verbs, []string{"create"}) {
		t.Errorf("pods/eviction: %+v", evict)
	}
	if slices.Contains(byName["namespaces"].Verbs, "deletecollection") {
		t.Error("namespaces can be deleted all at once")
	}
}

func TestAggregated(t *testing.T) {
	t.Parallel()
	d := discovery.New(discovery.Config{Catalog: assembletest.Catalog(t, rows.All())})
	w := get(t, d, "/apis", v2+",application/json")
	if got := w.Header().Get("Content-Type"); got != v2 {
		t.Errorf("Content-Type %q", got)
	}
	list := decode[apidiscoveryv2.APIGroupDiscoveryList](t, w)
	if list.APIVersion != "apidiscovery.k8s.io/v2" || list.Items[1].Name != "apps" ||
		list.Items[1].Versions[0].Resources[0].Resource != "controllerrevisions" {
		t.Errorf("%s, groups %+v", list.APIVersion, list.Items[:2])
	}
	if again := get(t, d, "/apis", v2, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified ||
		again.Body.Len() != 0 {
		t.Errorf("If-None-Match: %d", again.Code)
	}
	core := decode[apidiscoveryv2.APIGroupDiscoveryList](t, get(t, d, "/api", v2))
	if len(core.Items) != 1 || core.Items[0].Name != "" {
		t.Errorf("/api: %d groups", len(core.Items))
	}
	var kinds []metav1.GroupVersionKind // what is of the group and version itself does not say so
	for _, r := range core.Items[0].Versions[0].Resources {
		if r.Resource == "replicationcontrollers" {
			kinds = append(kinds, *r.ResponseKind, *r.Subresources[0].ResponseKind, *r.Subresources[1].ResponseKind)
		}
	}
	want := []metav1.GroupVersionKind{{Kind: "ReplicationController"},
		{Group: "autoscaling", Version: "v1", Kind: "Scale"}, {Kind: "ReplicationController"}}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	if w := get(t, d, "/apis", "application/vnd.kubernetes.protobuf"); string(w.Body.Bytes()[:4]) != "k8s\x00" {
		t.Errorf("protobuf begins with %q", w.Body.Bytes()[:4])
	}
	if w := get(t, d, "/apis", "application/yaml"); !strings.HasPrefix(w.Body.String(), "apiVersion: v1\ngroups:\n") {
		t.Errorf("YAML begins with %q", w.Body.String()[:20])
	}
	for _, accept := range []string{beta + ",application/json", v2 + ";q=0,*/*"} {
		if got := get(t, d, "/apis", accept).Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: %q", accept, got)
		}
	}
	if got := get(t, d, "/apis/apps", v2+",application/json").Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("below the root: %q", got)
	}
}

// Upstream serves v2beta1 no longer, and aggregated documents at the roots only.
func TestNotAcceptable(t *testing.T) {
	t.Parallel()
	d := discovery.New(discovery.Config{Catalog: assembletest.Catalog(t, rows.All())})
	for path, accept := range map[string]string{"/apis": beta, "/apis/apps": v2, "/api": "text/html"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", accept)
		_, err := d.Serve(httptest.NewRecorder(), r)
		if apierrors.ReasonForError(err) != metav1.StatusReasonNotAcceptable ||
			!strings.HasSuffix(err.Error(), "application/json, application/yaml, application/vnd.kubernetes.protobuf") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What others serve stands among what this server serves, by the priorities of all, and a version that another serves
// is that one's alone.
func TestRegistered(t *testing.T) {
	t.Parallel()
	widgets := []apidiscoveryv2.APIResourceDiscovery{{Resource: "widgets"}}
	of := func(group, version string, g, v int32) discovery.Registered {
		return discovery.Registered{GroupVersion: schema.GroupVersion{Group: group, Version: version},
			Priority: apiregistration.Priority{Group: g, Version: v}}
	}
	remote := func(r discovery.Registered, stale bool) discovery.Registered {
		r.Remote, r.Stale = true, stale
		if !stale {
			r.Resources = widgets
		}
		return r
	}
	all := []discovery.Registered{of("apps", "v1", 500, 15), remote(of("ext", "v1", 17760, 1), false),
		remote(of("ext", "v2", 10, 2), true),
		remote(of("scheduling.k8s.io", "v1", 16600, 15), false), of("gone", "v1", 17770, 1)}
	generation := uint64(1)
	d := discovery.New(discovery.Config{Catalog: assembletest.Catalog(t, rows.All()),
		Registered: func() (uint64, func() []discovery.Registered) {
			return generation, func() []discovery.Registered { return all }
		}})
	w := get(t, d, "/apis", v2)
	list := decode[apidiscoveryv2.APIGroupDiscoveryList](t, w)
	var names []string
	for _, g := range list.Items {
		names = append(names, g.Name)
		switch g.Name {
		case "ext":
			want := []apidiscoveryv2.APIVersionDiscovery{
				{Version: "v2", Freshness: apidiscoveryv2.DiscoveryFreshnessStale},
				{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, Resources: widgets}}
			if diff := cmp.Diff(want, g.Versions); diff != "" {
				t.Error(diff)
			}
		case "scheduling.k8s.io":
			if g.Versions[0].Resources[0].Resource != "widgets" {
				t.Errorf("of a version that another serves: %+v", g.Versions)
			}
		}
	}
	if names[0] != "apiregistration.k8s.io" || names[1] != "ext" || names[2] != "events.k8s.io" ||
		names[len(names)-1] != "apps" || slices.Contains(names, "gone") {
		t.Errorf("groups: %v", names)
	}
	if g := decode[metav1.APIGroup](t, get(t, d, "/apis/ext", "")); g.PreferredVersion.Version != "v2" ||
		len(g.Versions) != 2 {
		t.Errorf("%+v", g)
	}
	if own, _ := d.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/apis/ext/v1", nil)); own {
		t.Error("the list of a version that another serves is told here")
	}
	all, generation = all[:1], 2
	if again := get(t, d, "/apis", v2, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusOK {
		t.Errorf("after a change: %d", again.Code)
	}
}

func TestGroupsComeAndGo(t *testing.T) {
	t.Parallel()
	c := assembletest.Catalog(t, rows.All())
	d := discovery.New(discovery.Config{Catalog: c})
	etag := get(t, d, "/apis", v2).Header().Get("ETag")
	row := resources.Row{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		Resource: "things", StoragePath: "example.com/things",
		New: resources.Make[corev1.ConfigMap],
		Subresources: []resources.Subresource{resources.Status(resources.Strategy{}),
			resources.Action("bow", schema.GroupVersionKind{Version: "v1", Kind: "Bow"}, "create")}}
	if err := c.Add(assembletest.Entries(t, memory.New(&storage.FactsTable{}), []resources.Row{row})...); err != nil {
		t.Fatal(err)
	}
	w := get(t, d, "/apis", v2)
	list := decode[apidiscoveryv2.APIGroupDiscoveryList](t, w)
	if last := list.Items[len(list.Items)-1].Name; last != "example.com" || w.Header().Get("ETag") == etag {
		t.Errorf("last group %s, ETag %s", last, w.Header().Get("ETag"))
	}
	// A custom resource's subresources stand in the order of its row: upstream has status before scale.
	if subs := list.Items[len(list.Items)-1].Versions[0].Resources[0].Subresources; len(subs) != 2 ||
		subs[0].Subresource != "status" || subs[1].Subresource != "bow" {
		t.Errorf("subresources: %+v", subs)
	}
	if old := decode[metav1.APIResourceList](t, get(t, d, "/apis/example.com/v1", "")).APIResources; len(old) != 3 ||
		old[1].Name != "things/status" || old[2].Name != "things/bow" {
		t.Errorf("the old list: %+v", old)
	}
	if err := c.Remove(row.GroupResource()); err != nil {
		t.Fatal(err)
	}
	if got := get(t, d, "/apis", v2).Header().Get("ETag"); got != etag {
		t.Error("the documents are not what they were")
	}
	if own, _ := d.Serve(httptest.NewRecorder(),
		httptest.NewRequest(http.MethodGet, "/apis/example.com/v1", nil)); own {
		t.Error("the group is still served")
	}
}
