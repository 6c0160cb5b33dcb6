package resource

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestAhead: each object is answered in its turn as if it were asked for then, however early it is: what is refused
// early is asked for again, and so is an object that comes twice.
func TestAhead(t *testing.T) {
	t.Parallel()
	const count = 3 * window
	var mu sync.Mutex
	asked := map[string]int{}
	allowed := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		mu.Lock()
		asked[name]++
		refused := name == "forbidden" && !allowed
		mu.Unlock()
		w.Header().Set("Content-Type", JSON)
		switch {
		case refused:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		case name == "missing":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		default:
			fmt.Fprintf(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q}}`, name)
		}
	}))
	defer s.Close()
	c, err := NewClient(&rest.Config{Host: s.URL}, nil, nil, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	m := &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Scope: meta.RESTScopeNamespace}
	var infos []*Info
	for n := range count {
		infos = append(infos, &Info{Mapping: m, Namespace: "default", Name: fmt.Sprint("c", n), client: c})
	}
	infos[2].Name, infos[3].Name, infos[4].Name = "forbidden", "missing", "c1"
	a := NewAhead(infos)
	for n, i := range infos {
		mu.Lock()
		allowed = n >= 2
		before := len(asked)
		mu.Unlock()
		early, err := a.Get(t.Context(), i)
		name := i.Name
		switch {
		case name == "missing":
			if !apierrors.IsNotFound(err) || !early {
				t.Errorf("missing: early %v, %v", early, err)
			}
		case err != nil || i.Object.GetName() != name:
			t.Errorf("%s: %v, %v", name, i.Object, err)
		case early != (n > 0 && n != 4 && name != "forbidden"):
			if name != "forbidden" { // it may have been asked for in time
				t.Errorf("%d, %s: early is %v", n, name, early)
			}
		}
		if before > n+window+1 {
			t.Errorf("in turn %d %d were asked for", n, before)
		}
	}
	for name, times := range asked {
		if want := 1; times != want && name != "c1" && name != "forbidden" || name == "c1" && times != 2 {
			t.Errorf("%s was asked for %d times", name, times)
		}
	}
}
