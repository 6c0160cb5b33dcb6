package resource

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestListPages: a collection is read page by page, of the size that was asked for, and comes back whole.
func TestListPages(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		w.Header().Set("Content-Type", JSON)
		name, next := "a", `"continue":"more"`
		if r.URL.Query().Get("continue") == "more" {
			name, next = "b", `"resourceVersion":"7"`
		}
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{%s},"items":[{"metadata":{"name":%q}}]}`, next,
			name)
	}))
	defer s.Close()
	c, err := NewClient(&rest.Config{Host: s.URL}, nil, nil, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	m := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Scope: meta.RESTScopeNamespace}
	list, err := c.List(t.Context(), m, "ns", metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) != 2 || list.Items[1].GetName() != "b" || list.GetResourceVersion() != "7" {
		t.Errorf("got %v, %v", list, err)
	}
	if got := strings.Join(asked, " "); got != "limit=1 continue=more&limit=1" {
		t.Errorf("asked %s", got)
	}
}

// TestMissing: an object that is not there is not found, and of its namespace it is asked once as long as that is
// there.
func TestMissing(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		w.Header().Set("Content-Type", JSON)
		if r.URL.Path == "/api/v1/namespaces/here" {
			fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1"}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"no %s"}`, r.URL.Path)
	}))
	defer s.Close()
	c, err := NewClient(&rest.Config{Host: s.URL}, nil, nil, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	m := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Scope: meta.RESTScopeNamespace}
	for _, name := range []string{"here/a", "here/b", "gone/a", "gone/b", "default/a"} {
		ns, pod, _ := strings.Cut(name, "/")
		want := "no /api/v1/namespaces/" + ns + "/pods/" + pod
		if ns == "gone" {
			want = "no /api/v1/namespaces/gone"
		}
		if _, err := c.Get(t.Context(), m, ns, pod, ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	want := "/api/v1/namespaces/here/pods/a /api/v1/namespaces/here /api/v1/namespaces/here/pods/b /api/v1/namespaces/gone/pods/a /api/v1/namespaces/gone /api/v1/namespaces/gone/pods/b /api/v1/namespaces/gone /api/v1/namespaces/default/pods/a"
	if got := strings.Join(asked, " "); got != want {
		t.Errorf("asked %s", got)
	}
}
