package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/authz"
)

// A patch cannot make another kind of an object; a strategic one does not speak of kinds.
func TestPatchOfKind(t *testing.T) {
	t.Parallel()
	maps := start(t, nil) + "/api/v1/namespaces/ns/configmaps"
	if code, _, body := call(t, "POST", maps, `{"metadata":{"name":"a"}}`, "Content-Type",
		"application/json"); code != 201 {
		t.Fatal(code, body)
	}
	for _, c := range []struct {
		media, body string
		code        int
		message     string
	}{
		{"merge", `{"kind":"Pod"}`, 422, "converting (v1.Pod) to (core.ConfigMap): unknown conversion"},
		{"merge", `{"kind":"Nope"}`, 422, `no kind \"Nope\" is registered for version \"v1\"`},
		{"merge", `{"kind":{}}`, 422,
			"couldn't get version/kind; json parse error: json: cannot unmarshal object into Go struct field .kind of type string"},
		{"merge", `{"apiVersion":"v1/b/c"}`, 422, "unexpected GroupVersion string: v1/b/c"},
		{"merge", `{"apiVersion":"v2"}`, 422, `no kind \"ConfigMap\" is registered for version \"v2\"`},
		{"json", `[{"op":"remove","path":"/kind"}]`, 200, `"kind":"ConfigMap"`},
		{"strategic-merge", `{"kind":"Foo"}`, 200, `"kind":"ConfigMap"`},
		{"strategic-merge", `{"data":[1]}`, 422, `Invalid value: \"map[data:[1]]\": cannot restore map from slice`},
		{"strategic-merge", `{"data":{"k":1}}`, 422, "cannot convert int64 to string"},
		{"strategic-merge", `{"data":{"k":{}}}`, 422, "unrecognized type: string"},
		{"strategic-merge", `{"metadata":"x"}`, 422, "cannot restore struct from: string"},
		{"strategic-merge", `{"metadata":{"ownerReferences":{"a":1}}}`, 422, "cannot restore slice from map"},
	} {
		code, _, body := call(t, "PATCH", maps+"/a", c.body, "Content-Type", "application/"+c.media+"-patch+json")
		if code != c.code || !strings.Contains(body, c.message) {
			t.Errorf("%s %s: %d %s", c.media, c.body, code, body)
		}
	}
}

// Owner references that are there twice are stored once, by POST, PUT and PATCH, and told in a warning of bounded
// length.
func TestOwnersThatAreThereTwice(t *testing.T) {
	t.Parallel()
	maps := start(t, nil) + "/api/v1/namespaces/ns/configmaps"
	const owner = `{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"11111111-1111-4111-8111-111111111111"}`
	body := func(n int) string {
		return `{"metadata":{"name":"a","ownerReferences":[` + strings.TrimSuffix(strings.Repeat(owner+",", n), ",") +
			`]}}`
	}
	for _, c := range []struct {
		method, url, media string
		times, code        int
		warning            string
	}{
		{"POST", maps, "", 2, 201, `contains duplicate entries; `},
		{"PUT", maps + "/a", "", 500, 200, `contains duplicate entries; `},
		{"PATCH", maps + "/a", "merge-patch+", 2, 200, `contains duplicate entries after mutating admission happens; `},
	} {
		code, h, answer := call(t, c.method, c.url, body(c.times), "Content-Type", "application/"+c.media+"json")
		if w := h.Get("Warning"); code != c.code || !strings.Contains(w, c.warning) || len(w) > 400 {
			t.Errorf("%s: %d, %d bytes: %s", c.method, code, len(w), w)
		}
		if n := strings.Count(answer, `"name":"x"`); n != 1 {
			t.Errorf("%s: %d are left: %s", c.method, n, answer)
		}
	}
}

// verbs allows only itself.
type verbs string

func (v verbs) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if strings.Contains(string(v), a.Verb) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// Who may only get pods/exec or nodes/proxy does not run commands by way of a WebSocket, whose handshake is a GET.
func TestUpgradeNeedsCreate(t *testing.T) {
	t.Parallel()
	for allowed, want := range map[verbs]int{"get": http.StatusForbidden, "create": http.StatusForbidden,
		"get,create": http.StatusNotFound} {
		url := start(t, func(c *assemble.Config) { c.Parts.Authorizer = allowed })
		for _, path := range []string{"namespaces/ns/pods/p/exec?command=x", "namespaces/ns/pods/p/attach",
			"namespaces/ns/pods/p/portforward?ports=1",
			"nodes/n/proxy/exec/ns/p/c?command=x", "nodes/n/proxy/"} {
			r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/api/v1/"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
			c := plain("admin")
			c.Transport.(as).next.(*http.Transport).ForceAttemptHTTP2 = false
			resp, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s with %s: %d, want %d", path, allowed, resp.StatusCode, want)
			}
		}
	}
}
