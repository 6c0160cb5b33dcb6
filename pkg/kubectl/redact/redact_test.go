package redact

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// TestBody: secrets go, wherever client-go cuts a body off, and the rest stays.
func TestBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{"", ""},
		{"ok", "ok"},
		{`{"kind":"Secret","data":{"a":"c2VjcmV0"},"type":"Opaque"}`,
			`{"kind":"Secret","data":{"a":"<masked>"},"type":"Opaque"}`},
		{`{"data": {"a": "c2VjcmV0", "b" : null}, "kind": "Secret"}`,
			`{"data": {"a": "<masked>", "b" : null}, "kind": "Secret"}`},
		{`{"kind":"SecretList","items":[{"metadata":{"name":"x"},"data":{"a":"c2VjcmV0"}}]}`,
			`{"kind":"SecretList","items":[{"metadata":{"name":"x"},"data":{"a":"<masked>"}}]}`},
		{`{"data":{"a":"secret"}}`, `{"data":{"a":"<masked>"}}`},
		{`{"kind":"ConfigMap","data":{"a":"plain"}}`, `{"kind":"ConfigMap","data":{"a":"plain"}}`},
		{`{"metadata":{"kind":"ConfigMap"},"data":{"a":"secret"}}`,
			`{"metadata":{"kind":"ConfigMap"},"data":{"a":"<masked>"}}`},
		{`{"a":["kind","ConfigMap"],"data":{"a":"secret"}}`, `{"a":["kind","ConfigMap"],"data":{"a":"<masked>"}}`},
		{`{"kind":"TokenRequest","spec":{"audiences":["a"]},"status":{"token":"secret"}}`,
			`{"kind":"TokenRequest","spec":{"audiences":["a"]},"status":{"token":"<masked>"}}`},
		{`{"kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":\"secret\"}","b":"c"}}}`,
			`{"kind":"Secret","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"<masked>","b":"c"}}}`},
		{`[{"op":"add","path":"/data/a","value":"secret"},{"op":"add","path":"/data","value":{"b":["secret",1]}}]`,
			`[{"op":"add","path":"/data/a","value":"<masked>"},{"op":"add","path":"/data","value":{"b":["<masked>","<masked>"]}}]`},
		{`{"kind":"Secret","data":{"a":"c2Vj [truncated 100 chars]`,
			`{"kind":"Secret","data":{"a"<masked> [truncated 100 chars]`},
		{`{"kind":"Pod","data [truncated 100 chars]`, `{"kind":"Pod"<masked> [truncated 100 chars]`},
		{`{"kind":"ConfigMap" "data":{"a":"secret"}}`, `{"kind":"ConfigMap"<masked>`},
		{"kind: Secret\ndata: {a: c2VjcmV0}", masked},
		{"00000000  6b 38 73 00 0a 0c 0a 02  76 31 12 06 53 65 63 72  |k8s.....v1..Secr|\n", masked},
	} {
		if got := Body(c.body); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.body, got, c.want)
		}
	}
}

// TestBodyCutAnywhere: no prefix of a body of a secret gives any of it away.
func TestBodyCutAnywhere(t *testing.T) {
	t.Parallel()
	const secret = "SECRETVALUE"
	for _, whole := range []string{
		`{"apiVersion":"v1","data":{"a":"` + secret + `"},"kind":"Secret","metadata":{"name":"x"},"stringData":{"b":"` +
			secret + `"}}`,
		`{"kind":"TokenRequest","status":{"token":"` + secret + `","expirationTimestamp":null}}`,
		`[{"op":"replace","path":"/data/x","value":"` + secret + `"}]`,
	} {
		for n := range whole {
			for _, end := range []string{"", " [truncated 9 chars]"} {
				if got := Body(whole[:n] + end); strings.Contains(got, secret[:3]) {
					t.Fatalf("%s\ngives %s", whole[:n], got)
				}
			}
		}
	}
}

// TestFilter: what is logged beside bodies, and that the caller's values stay as they are.
func TestFilter(t *testing.T) {
	t.Parallel()
	u := &url.URL{Scheme: "https", User: url.UserPassword("ann", "hunter2"), Host: "h"}
	pairs := []any{"url", u, "body", `{"token":"hunter2"}`, "err", errors.New("get https://ann:hunter2@h/x: \x1b[2J"),
		"headers", "\n\tSet-Cookie: s=hunter2\n\tA: b", "n", 1}
	_, got := Filter{}.FilterS("m", pairs)
	want := []any{"url", "https://<masked>@h", "body", `{"token":"<masked>"}`, "err", "get https://<masked>@h/x: ^[[2J",
		"headers", "\n\tSet-Cookie: <masked>\n\tA: b", "n", 1}
	for i := range want {
		if err, ok := got[i].(error); ok {
			got[i] = err.Error()
		}
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	if pairs[3] != `{"token":"hunter2"}` {
		t.Error("the caller's values were changed")
	}
}

// FuzzBody: no body breaks it, and what is below a Secret's data never comes through.
func FuzzBody(f *testing.F) {
	f.Add(`{"kind":"Secret"}`, 5)
	f.Add(`{"items":[{}]}`, 0)
	f.Fuzz(func(t *testing.T, around string, n int) {
		const secret = "SECRETVALUE"
		Body(around)
		whole := `{"a":` + around + `,"data":{"x":"` + secret + `"},"kind":"Secret"}`
		if n < 0 || n > len(whole) {
			n = len(whole)
		}
		if !strings.Contains(around, `"`) && !strings.Contains(around, secret) &&
			strings.Contains(Body(whole[:n]), secret) {
			t.Errorf("%q gives it away", whole[:n])
		}
	})
}
