package exec

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// refused is what is said of the answer of server.
const refused = "error: unable to upgrade connection: not today\n"

// server has the pods "one", "two" with the containers x and y, and "done", which has ended. It lets nobody in, and tells what
// was asked of it.
func server(t *testing.T) (string, func() string) {
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

// TestExec: what is refused before anything is run, in the words of Kubernetes' kubectl 1.36, and what is asked of the server
// otherwise.
func TestExec(t *testing.T) {
	t.Parallel()
	const noTTY = "Unable to use a TTY - input is not a terminal or the right kind of file\n"
	for _, c := range []struct{ args, asked, want string }{
		{"exec", "", "error: pod, type/name or --filename must be specified\n"},
		{"exec -- ls", "", "error: pod, type/name or --filename must be specified\n"},
		{"exec one", "", "error: you must specify at least one command for the container\n"},
		{"exec one --", "", "error: you must specify at least one command for the container\n"},
		{"exec one ls", "", "error: exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\nSee 'kubectl exec -h' for help and examples\n"},
		{"exec done -- ls", "", "error: cannot exec into a container in a completed pod; current phase is Succeeded\n"},
		{"exec two -c zz -- ls", "", "error: container zz is not valid for pod two out of: x, y\n"},
		{"exec nosuch -- ls", "", "Error from server (NotFound): pods \"nosuch\" not found\n"},
		{"exec one -- ls -l /", "one/exec?command=ls&command=-l&command=%2F&container=main&stderr=true&stdout=true", ""},
		{"exec two -- ls", "two/exec?command=ls&container=x&stderr=true&stdout=true", "Defaulted container \"x\" out of: x, y\n"},
		{"exec two -q -- ls", "two/exec?command=ls&container=x&stderr=true&stdout=true", ""},
		{"exec -i two -c y -- cat", "two/exec?command=cat&container=y&stderr=true&stdin=true&stdout=true", ""},
		{"exec -it one -- sh", "one/exec?command=sh&container=main&stderr=true&stdin=true&stdout=true", noTTY},
		{"exec -itq one -- sh", "one/exec?command=sh&container=main&stderr=true&stdin=true&stdout=true", ""},
		{"exec -t one -- sh", "one/exec?command=sh&container=main&stderr=true&stdout=true", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			at, asked := server(t)
			got, code := writetest.Run(t, NewCommand, at, "", strings.Fields(c.args)...)
			if asked() != c.asked || code != 1 {
				t.Errorf("asked %q, code %d, want %q", asked(), code, c.asked)
			}
			want := c.want
			if c.asked != "" {
				want += refused
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
