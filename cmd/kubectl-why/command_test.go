package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bonsai/cmd/internal/flagtest"
	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/referencetest"
	"bonsai/pkg/why"
)

// server is an API server with ConfigMaps. It refuses everything but reading.
func server(t *testing.T) string {
	t.Helper()
	answers := map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[
			{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},
			{"name":"autoscaling","versions":[{"groupVersion":"autoscaling/v2","version":"v2"},{"groupVersion":"autoscaling/v1","version":"v1"}],"preferredVersion":{"groupVersion":"autoscaling/v2","version":"v2"}},
			{"name":"tea.example.com","versions":[{"groupVersion":"tea.example.com/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"tea.example.com/v1beta1","version":"v1beta1"}}]}`,
		"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
			{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","shortNames":["deploy"],"verbs":["get"]}]}`,
		"/apis/autoscaling/v2": `{"kind":"APIResourceList","groupVersion":"autoscaling/v2","resources":[
			{"name":"horizontalpodautoscalers","singularName":"horizontalpodautoscaler","namespaced":true,"kind":"HorizontalPodAutoscaler","shortNames":["hpa"],"verbs":["get"]}]}`,
		"/apis/autoscaling/v1": `{"kind":"APIResourceList","groupVersion":"autoscaling/v1","resources":[
			{"name":"horizontalpodautoscalers","singularName":"horizontalpodautoscaler","namespaced":true,"kind":"HorizontalPodAutoscaler","shortNames":["hpa"],"verbs":["get"]}]}`,
		"/apis/tea.example.com/v1beta1": `{"kind":"APIResourceList","groupVersion":"tea.example.com/v1beta1","resources":[
			{"name":"pots","singularName":"pot","namespaced":true,"kind":"Pot","shortNames":["pt"],"verbs":["get"]}]}`,
		"/apis/tea.example.com/v1beta1/namespaces/default/pots/x":            `{"kind":"Pot","apiVersion":"tea.example.com/v1beta1","metadata":{"name":"x","namespace":"default"}}`,
		"/apis/apps/v1/namespaces/default/deployments/x":                     `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"x","namespace":"default"},"spec":{"replicas":0}}`,
		"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/x": `{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v2","metadata":{"name":"x","namespace":"default"},"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"x"}}}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","shortNames":["cm"],"verbs":["get"]},
			{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"]},
			{"name":"nodes","singularName":"node","kind":"Node","verbs":["get"]}]}`,
		"/api/v1/nodes":              `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n2"},"status":{"allocatable":{"cpu":"1","pods":"9"}}}]}`,
		"/api/v1/pods":               `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		"/api/v1/namespaces/default": `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default"}}`,
		"/api/v1/namespaces/default/serviceaccounts/default": `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default","namespace":"default"}}`,
		"/api/v1/namespaces/default/configmaps/x":            `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"default","uid":"1"}}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: it writes", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		if answer, ok := answers[r.URL.Path]; ok {
			io.WriteString(w, answer)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"not found","code":404}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// ask runs the command on a terminal of so many columns, 0 for a pipe.
func ask(t *testing.T, columns int, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append(args, "--server", server(t), "--cache-dir", t.TempDir()),
		terminal{cli.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &e}, columns, true, time.Now})
	return code, o.String(), e.String()
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args        []string
		code        int
		out, errOut string
	}{
		"type/name":      {[]string{"cm/x"}, 0, "ConfigMap default/x exists", ""},
		"type name":      {[]string{"configmap", "x"}, 0, "ConfigMap default/x exists", ""},
		"absent":         {[]string{"configmap", "y", "-n", "other"}, 0, "ConfigMap other/y does not exist.", ""},
		"no namespace":   {[]string{"node", "n1"}, 0, "Node n1 does not exist.", ""},
		"a namespace":    {nil, 0, "Namespace default is active", ""},
		"of a flag":      {[]string{"-n", "other"}, 0, "Namespace other does not exist.", ""},
		"no name":        {[]string{"cm/"}, 1, "", "does not name an object"},
		"three":          {[]string{"cm", "x", "y"}, 1, "", "One object is explained at a time"},
		"unknown type":   {[]string{"tea/x"}, 1, "", `the server doesn't have a resource type "tea"`},
		"what if":        {[]string{"--what-if", "cordon n2"}, 0, "If you cordon node n2, 0 pods would be placed, and 0 pods would find no node.\n", ""},
		"what if a file": {[]string{"-f", "testdata/pod.yaml"}, 0, "1 pod would be placed on node n2: 1 of pod/web.", ""},
		"what if not":    {[]string{"--what-if", "explode n2"}, 1, "", `unknown change "explode n2": use 'scale deployment/NAME`},
		"what if there":  {[]string{"--what-if", "drain n9"}, 1, "", "there is no node n9"},
		"what if, too":   {[]string{"--what-if", "drain n2", "cm/x"}, 1, "", "there must be no argument beside it"},
		"two questions":  {[]string{"--what-if", "drain n2", "--evict", "pod/x"}, 1, "", "one question at a time"},
		"unknown format": {[]string{"cm/x", "-o", "xml"}, 1, "", `output format "xml", allowed formats are: json`},
		"unknown flag":   {[]string{"cm/x", "--nonsense"}, 1, "", "unknown flag: --nonsense\nSee 'kubectl why --help' for usage."},
		"help":           {[]string{"--help"}, 0, "kubectl why pod/web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errOut := ask(t, 0, c.args...)
			if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errOut, c.errOut) ||
				c.errOut == "" && errOut != "" {
				t.Errorf("exit code %d, out %q, err %q, want %+v", code, out, errOut, c)
			}
		})
	}
}

// TestNames: an object is named as for kubectl itself, with group and version, by short names, and in any version.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"deployment", "deployments", "deploy", "deployments.apps", "deployments.v1.apps",
		"deployment.v1.apps", "Deployment", "Deployment.apps", "Deployment.v1.apps", "deploy.apps", "deploy.v1.apps"} {
		if code, out, errOut := ask(t, 0, kind+"/x"); code != 0 || !strings.Contains(out,
			"Deployment default/x is scaled to 0") {
			t.Errorf("%s: %d %s%s", kind, code, out, errOut)
		}
	}
	for _, kind := range []string{"hpa", "hpa.autoscaling", "hpa.v2.autoscaling", "hpa.v1.autoscaling",
		"horizontalpodautoscalers.v2.autoscaling"} {
		if code, out, errOut := ask(t, 0, kind, "x"); code != 0 || !strings.Contains(out,
			"HorizontalPodAutoscaler default/x keeps Deployment x") {
			t.Errorf("%s: %d %s%s", kind, code, out, errOut)
		}
	}
	for _, kind := range []string{"pot", "pots", "pt", "pots.tea.example.com", "pots.v1beta1.tea.example.com", "Pot",
		"pt.tea.example.com", "pt.v1beta1.tea.example.com", "Pot.v1beta1.tea.example.com"} {
		if code, out, errOut := ask(t, 0, kind+"/x"); code != 0 || out != "Pot default/x exists.\n" {
			t.Errorf("%s: %d %s%s", kind, code, out, errOut)
		}
	}
}

// TestJSON: -o json is the answer alone, also on a terminal.
func TestJSON(t *testing.T) {
	t.Parallel()
	_, out, _ := ask(t, 80, "cm/x", "-o", "json")
	var a why.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Subject != (why.Object{Kind: "ConfigMap",
		Namespace: "default", Name: "x", UID: "1"}) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestForeseenJSON: what would follow from a change is an answer with its data.
func TestForeseenJSON(t *testing.T) {
	t.Parallel()
	_, out, _ := ask(t, 0, "-f", "testdata/pod.yaml", "-o", "json")
	var f foreseen
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		t.Fatal(err, out)
	}
	if r := f.Foreseen; len(r.Placed) != 1 || r.Placed[0].Node != "n2" || r.Placed[0].Pod.Namespace != "default" ||
		r.Waiting == nil || !f.Well || len(f.Causes) != 1 {
		t.Error(out)
	}
}

// TestColours are for terminals.
func TestColours(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]bool{0: false, 80: true} {
		if _, out, _ := ask(t, columns, "cm/x"); strings.Contains(out, "\x1b[") != want {
			t.Errorf("%d columns: %q", columns, out)
		}
	}
}

// TestReferenceCommand: docs/reference has the command as it is.
func TestReferenceCommand(t *testing.T) {
	t.Parallel()
	cmd := newCommand(terminal{now: time.Now})
	cmd.Flags().Lookup("cache-dir").DefValue = "" // the home directory of whoever runs the test
	referencetest.Check(t, "commands/kubectl-why.md", "# Command kubectl why\n\n"+
		"Made from the program by `go test ./cmd/kubectl-why -run TestReference -args -update`.\n\n```text\n"+cmd.Long+
		"\n```\n\n```text\n"+cmd.Example+"\n```\n\n"+flagtest.FlagTable(cmd.Flags()))
}
