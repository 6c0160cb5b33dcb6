package writetest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Refused is what exec and attach say when ClosedPods lets them not in.
const Refused = "error: unable to upgrade connection: not today\n"

// ClosedPods starts a server that has the pods "one", "two" with the containers x and y, and "done", which has ended.
// It lets nobody in. Beside its address it returns what tells what was asked of it.
func ClosedPods(t *testing.T) (string, func() string) {
	t.Helper()
	var mu sync.Mutex
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name := strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/default/pods/")
		answer := func(containers, phase string) {
			fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"spec":{"containers":[%s]},"status":{"phase":%q}}`, name, containers, phase)
		}
		switch name {
		case "one":
			answer(`{"name":"main"}`, "Running")
		case "two":
			answer(`{"name":"x"},{"name":"y"}`, "Running")
		case "done":
			answer(`{"name":"main"}`, "Succeeded")
		case "nosuch":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"nosuch\" not found","reason":"NotFound","code":404}`)
		default:
			mu.Lock()
			asked = name + "?" + r.URL.Query().Encode()
			mu.Unlock()
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not today","reason":"Forbidden","code":403}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}
