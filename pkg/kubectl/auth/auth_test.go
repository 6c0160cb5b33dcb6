package auth

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/kubectl/write/writetest"
)

const rulesOfZoe = `{"kind":"SelfSubjectRulesReview","apiVersion":"authorization.k8s.io/v1","status":{
"resourceRules":[
 {"verbs":["list","get"],"apiGroups":[""],"resources":["pods","configmaps"]},
 {"verbs":["watch","get"],"apiGroups":[""],"resources":["pods"]},
 {"verbs":["get","delete"],"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["b","a"]}],
"nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/api","/api/*"]}],
"incomplete":false}}`

// server answers reviews: pods may be read, nothing else is allowed. It keeps the questions.
func server(t *testing.T, asked *[]authorizationv1.SelfSubjectAccessReviewSpec) string {
	t.Helper()
	answers := map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + group("authorization.k8s.io") + `,` +
			group("authentication.k8s.io") + `,` + group("apps") + `]}`,
		"/api/v1": list("v1", `{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","shortNames":["po"],"verbs":["get"]},{"name":"nodes","singularName":"node","kind":"Node","verbs":["get"]}`),
		"/apis/authorization.k8s.io/v1": list("authorization.k8s.io/v1",
			`{"name":"selfsubjectaccessreviews","kind":"SelfSubjectAccessReview","verbs":["create"]},
			{"name":"selfsubjectrulesreviews","kind":"SelfSubjectRulesReview","verbs":["create"]}`),
		"/apis/authentication.k8s.io/v1": list("authentication.k8s.io/v1",
			`{"name":"selfsubjectreviews","kind":"SelfSubjectReview","verbs":["create"]}`),
		"/apis/apps/v1": list("apps/v1",
			`{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","shortNames":["deploy"],"verbs":["get"]}`),
		"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": rulesOfZoe,
		"/apis/authentication.k8s.io/v1/selfsubjectreviews": `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1","status":{"userInfo":
			{"username":"zoe","uid":"7","groups":["dev","system:authenticated"],"extra":{"z":["1"],"a":["2","3"]}}}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok {
			io.WriteString(w, answer)
			return
		}
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		*asked = append(*asked, review.Spec)
		a := review.Spec.ResourceAttributes
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: a != nil && a.Resource == "pods" &&
			a.Verb == "get"}
		if a == nil {
			review.Status.Reason = "no paths"
		}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func group(name string) string {
	v := `{"groupVersion":"` + name + `/v1","version":"v1"}`
	return `{"name":"` + name + `","versions":[` + v + `],"preferredVersion":` + v + `}`
}

func list(gv, resources string) string {
	return `{"kind":"APIResourceList","groupVersion":"` + gv + `","resources":[` + resources + `]}`
}

// TestCanI: what is asked (VERB GROUP/RESOURCE/NAME/SUBRESOURCE in NAMESPACE, or VERB PATH), what is said, and the exit
// code.
func TestCanI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, asked, want string
		code              int
	}{
		{"get po", "get /pods// in default", "yes\n", 0},
		{"get pods/x --subresource log -n team", "get /pods/x/log in team", "yes\n", 0},
		{"get pods -A", "get /pods// in ", "yes\n", 0},
		{"delete pods", "delete /pods// in default", "no\n", 1},
		{"delete pods -q", "delete /pods// in default", "", 1},
		{"patch deploy", "patch apps/deployments// in default", "no\n", 1},
		{"get nodes", "get /nodes// in default", "no\nWarning: resource 'nodes' is not namespace scoped\n\n", 1},
		{"get foo.example.com", "get example.com/foo// in default",
			"no\nWarning: the server doesn't have a resource type 'foo' in group 'example.com'\n\n", 1},
		{"get /healthz", "get /healthz", "no - no paths\n", 1},
		{"list /healthz", "list /healthz", "no - no paths\nWarning: verb 'list' is not a known verb\n\n", 1},
		{"eat pods", "eat /pods// in default", "no\nWarning: verb 'eat' is not a known verb\n\n", 1},
		{"get", "", "error: you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.\n", 1},
		{"--list pods", "", "error: list option must be specified with no arguments\n", 1},
	} {
		var specs []authorizationv1.SelfSubjectAccessReviewSpec
		got, code := writetest.Run(t, NewCommand, server(t, &specs), "",
			append([]string{"auth", "can-i"}, strings.Fields(c.args)...)...)
		asked := ""
		for _, s := range specs {
			if a := s.ResourceAttributes; a != nil {
				asked += a.Verb + " " + strings.Join([]string{a.Group, a.Resource, a.Name, a.Subresource}, "/") +
					" in " + a.Namespace
			} else {
				asked += s.NonResourceAttributes.Verb + " " + s.NonResourceAttributes.Path
			}
		}
		if got != c.want || code != c.code || asked != c.asked {
			t.Errorf("can-i %s:\n got %d %q, asked %q\nwant %d %q, asked %q", c.args, code, got, asked, c.code, c.want,
				c.asked)
		}
	}
}

// TestShown: can-i --list puts the verbs of one resource together; whoami leaves out what the user has not.
func TestShown(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"can-i --list --no-headers": "" +
			"deployments.apps   []         [a]   [get delete]\n" +
			"deployments.apps   []         [b]   [get delete]\n" +
			"                   [/api/*]   []    [get]\n" +
			"                   [/api]     []    [get]\n" +
			"pods               []         []    [list get watch]\n" +
			"configmaps         []         []    [list get]\n",
		"whoami": "ATTRIBUTE   VALUE\nUsername    zoe\nUID         7\nGroups      [dev system:authenticated]\nExtra: a    [2 3]\nExtra: z    [1]\n",
		"whoami -o jsonpath={.status.userInfo.username}": "zoe",
	} {
		got, code := writetest.Run(t, NewCommand, server(t, nil), "",
			append([]string{"auth"}, strings.Fields(args)...)...)
		if got != want || code != 0 {
			t.Errorf("%s: %d\n%s\nwant\n%s", args, code, got, want)
		}
	}
}

// TestUnknown: who may not ask, and a server that does not know the kind in any version.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{
		http.StatusForbidden: "/v1: error: the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it\n",
		http.StatusNotFound:  "/v1/v1beta1/v1alpha1: error: the selfsubjectreviews API is not enabled in the cluster\n",
	} {
		var asked string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked += strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/apis/authentication.k8s.io"),
				"/selfsubjectreviews")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`,
				strings.ReplaceAll(http.StatusText(code), " ", ""), code)
		}))
		got, exit := writetest.Run(t, NewCommand, s.URL, "", "auth", "whoami")
		s.Close()
		if got = asked + ": " + got; got != want || exit != 1 {
			t.Errorf("%d: %d %q, want %q", code, exit, got, want)
		}
	}
}
