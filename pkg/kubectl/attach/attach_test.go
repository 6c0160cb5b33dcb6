package attach

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

const recorded = "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.\n" +
	"If you don't see a command prompt, try pressing enter.\n"

// TestAttach: what is refused before, in the words of Kubernetes' kubectl 1.36, and what is asked of the server otherwise.
func TestAttach(t *testing.T) {
	t.Parallel()
	const noTTY = "error: Unable to use a TTY - container main did not allocate one\n"
	for _, c := range []struct{ args, asked, want string }{
		{"attach", "", "error: at least 1 argument is required for attach\n"},
		{"attach a b c", "", "error: expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw 3: [a b c]\n"},
		{"attach done", "", "error: cannot attach a container in a completed pod; current phase is Succeeded\n"},
		{"attach nosuch", "", "Error from server (NotFound): pods \"nosuch\" not found\n"},
		{"attach one", "one/attach?container=main&stderr=true&stdout=true", recorded},
		{"attach one -q", "one/attach?container=main&stderr=true&stdout=true", ""},
		{"attach two -i", "two/attach?container=x&stderr=true&stdin=true&stdout=true", "Defaulted container \"x\" out of: x, y\n" + recorded},
		{"attach -it one", "one/attach?container=main&stderr=true&stdin=true&stdout=true", noTTY + recorded},
		{"attach -itq one", "one/attach?container=main&stderr=true&stdin=true&stdout=true", ""},
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
