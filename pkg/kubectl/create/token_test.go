package create

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestToken: the request says for whom, for how long and bound to what a token is, and the answer is printed as asked.
func TestToken(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		asked authenticationv1.TokenRequestSpec
		out   string // a part of it
	}{
		"sa": {authenticationv1.TokenRequestSpec{}, "made\n"},
		"sa --audience=a --audience=b --duration=10m": {authenticationv1.TokenRequestSpec{Audiences: []string{"a", "b"},
			ExpirationSeconds: new(int64(600))}, "made\n"},
		"sa --bound-object-kind=Pod --bound-object-name=p --bound-object-uid=7 -o json": {
			authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod",
				APIVersion: "v1", Name: "p", UID: "7"}}, `"expirationTimestamp": "2026-01-01T00:00:00Z"`},
		"sa --bound-object-kind=Node --bound-object-name=n -o jsonpath={.status.token}": {
			authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Node",
				APIVersion: "v1", Name: "n"}}, "made"},
	} {
		asked := make(chan authenticationv1.TokenRequestSpec, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/api":
				io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case "/apis":
				io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			case "/api/v1":
				io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"serviceaccounts","singularName":"serviceaccount","namespaced":true,"kind":"ServiceAccount","verbs":["get"]}]}`)
			case "/api/v1/namespaces/dev/serviceaccounts/sa/token":
				var q authenticationv1.TokenRequest
				if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
					t.Error(err)
				}
				asked <- q.Spec
				io.WriteString(w, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":["a"]},"status":{"token":"made","expirationTimestamp":"2026-01-01T00:00:00Z"}}`)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		out, _ := writetest.Run(t, NewCommand(nil), s.URL, "",
			append([]string{"create", "token", "--namespace=dev"}, strings.Fields(args)...)...)
		s.Close()
		if !strings.Contains(out, c.out) {
			t.Errorf("%s: %q, want %q", args, out, c.out)
			continue
		}
		if diff := cmp.Diff(c.asked, <-asked); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", args, diff)
		}
	}
	for args, want := range map[string]string{
		"sa --bound-object-name=p":   "--bound-object-name can only be set if --bound-object-kind is provided",
		"sa --bound-object-uid=7":    "--bound-object-uid can only be set if --bound-object-kind is provided",
		"sa --bound-object-kind=Pod": "--bound-object-name is required if --bound-object-kind is provided",
		"sa --duration=1500ms":       "--duration cannot be expressed in units less than seconds",
		"sa --bound-object-kind=Secret --bound-object-name=s --nowhere": "unknown flag: --nowhere",
	} {
		out, _ := writetest.Run(t, NewCommand(nil), "http://127.0.0.1:1", "",
			append([]string{"create", "token"}, strings.Fields(args)...)...)
		if !strings.Contains(out, want) {
			t.Errorf("%s: %q, want %q", args, out, want)
		}
	}
}
