package apiresources

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// server serves pods, nodes, deployments, and a group that does not answer if broken is set.
func server(t *testing.T, broken bool) string {
	t.Helper()
	group := func(name, version string) string {
		v := fmt.Sprintf(`{"groupVersion":"%s/%s","version":%q}`, name, version, version)
		return fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, name, v, v)
	}
	groups := group("apps", "v1")
	if broken {
		groups += "," + group("metrics.example", "v1beta1")
	}
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + groups + `]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","shortNames":["po"],"verbs":["create","list"],"categories":["all"]},
			{"name":"pods/log","singularName":"","namespaced":true,"kind":"Pod","verbs":["get"]},
			{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]},
			{"name":"nodes","singularName":"node","namespaced":false,"kind":"Node","shortNames":["no"],"verbs":["create","list"]}]}`,
		"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
			{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","shortNames":["deploy"],"verbs":["create","list"],"categories":["all","x"]}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestAPIResources: what Kubernetes' kubectl 1.36 prints for the same server.
func TestAPIResources(t *testing.T) {
	t.Parallel()
	const (
		header  = "NAME          SHORTNAMES   APIVERSION   NAMESPACED   KIND\n"
		binding = "bindings                   v1           true         Binding\n"
		node    = "nodes         no           v1           false        Node\n"
		pod     = "pods          po           v1           true         Pod\n"
		deploy  = "deployments   deploy       apps/v1      true         Deployment\n"
	)
	at := server(t, false)
	for _, c := range []struct{ args, want string }{
		{"", header + binding + node + pod + deploy},
		{"--sort-by=name", header + binding + deploy + node + pod},
		{"--sort-by=kind", header + binding + deploy + node + pod},
		{"--api-group=", "NAME       SHORTNAMES   APIVERSION   NAMESPACED   KIND\nbindings                v1           true         Binding\n" +
			"nodes      no           v1           false        Node\npods       po           v1           true         Pod\n"},
		{"--api-group=apps", header + deploy},
		{"--api-group=apps --no-headers", "deployments   deploy   apps/v1   true   Deployment\n"},
		{"--namespaced=false -o name", "nodes\n"},
		{"--namespaced -o name", "bindings\npods\ndeployments.apps\n"},
		{"--verbs=list,create -o name", "nodes\npods\ndeployments.apps\n"},
		{"--categories=all -o name", "pods\ndeployments.apps\n"},
		{"--categories=all,x -o name", "deployments.apps\n"},
		{"--api-group=apps -o wide",
			"NAME          SHORTNAMES   APIVERSION   NAMESPACED   KIND         VERBS         CATEGORIES\n" +
				"deployments   deploy       apps/v1      true         Deployment   create,list   all,x\n"},
	} {
		got, code := writetest.Run(t, NewCommand, at, "",
			append([]string{"api-resources"}, strings.Fields(c.args)...)...)
		if got != c.want || code != 0 {
			t.Errorf("%s: code %d\n%s\nwant\n%s", c.args, code, got, c.want)
		}
	}
	for args, want := range map[string]string{
		"x":            "error: unexpected arguments: [x]",
		"--sort-by=no": "error: --sort-by accepts only name or kind",
		"-o xml":       "error: unable to match a printer suitable for the output format \"xml\"",
	} {
		got, code := writetest.Run(t, NewCommand, at, "", append([]string{"api-resources"}, strings.Fields(args)...)...)
		if code != 1 || !strings.HasPrefix(got, want) {
			t.Errorf("%s: code %d, %q, want %q", args, code, got, want)
		}
	}
}

// TestAGroupThatDoesNotAnswer hides the others' resources no more than it does in Kubernetes' kubectl: all that is
// known is printed, and the failure is an error.
func TestAGroupThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	got, code := writetest.Run(t, NewCommand, server(t, true), "", "api-resources", "-o", "name")
	if code != 1 || !strings.HasPrefix(got,
		"bindings\nnodes\npods\ndeployments.apps\nerror: unable to retrieve the complete list of server APIs: metrics.example/v1beta1: ") {
		t.Errorf("code %d, %s", code, got)
	}
}
