package kubectl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/write/writetest"
)

// evil is what a user of the cluster may put into an object to steer the terminal of another: clear the screen, set its
// title, overwrite the line, turn the direction of text.
const evil = "\x1b[2J\x1b]0;t\a\r\b\b\u009b1mEVIL\x7f\x00\u202e\u2066"

// evilObjects have evil wherever the API lets text through.
func evilObjects(t *testing.T) []string {
	t.Helper()
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","uid":"u","annotations":{"a":EVIL}},
		  "spec":{"nodeName":"n","containers":[{"name":"c","image":EVIL,"command":[EVIL],"env":[{"name":"E","value":EVIL}]}]},
		  "status":{"phase":"Running","message":EVIL,"reason":EVIL,"containerStatuses":[{"name":"c","state":{"waiting":{"reason":EVIL,"message":EVIL}},"lastState":{"terminated":{"reason":"Error","message":EVIL}}}]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"default"},"spec":{"containers":[{"name":EVIL,"image":"i"}]}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"default","annotations":{"a":EVIL}},"data":{"k":EVIL}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","annotations":{"a":EVIL}},"status":{"conditions":[{"type":"Ready","status":"True","reason":EVIL,"message":EVIL}],"nodeInfo":{"kernelVersion":EVIL}}}`,
		`{"apiVersion":"v1","kind":"Event","metadata":{"name":"p.1","namespace":"default"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default","uid":"u"},
		  "type":"Warning","reason":EVIL,"message":EVIL,"source":{"component":EVIL},"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z"}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"default","uid":"d","generation":1,"annotations":{"a":EVIL}},
		  "spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":EVIL}]}}},
		  "status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"conditions":[{"type":"Available","status":"True","reason":EVIL,"message":EVIL}]}}`,
		`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"d-1","namespace":"default","labels":{"a":"b"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"d","controller":true}],
		  "annotations":{"deployment.kubernetes.io/revision":"1","kubernetes.io/change-cause":EVIL}},
		  "spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":EVIL}]}}}}`,
	} {
		out = append(out, strings.ReplaceAll(text, "EVIL", string(quoted)))
	}
	return out
}

// evilServer holds evilObjects, warns with evil at every answer, refuses to create with an evil message, and says evil
// in logs, tables and schemas.
func evilServer(t *testing.T) string {
	t.Helper()
	quoted, _ := json.Marshal(evil)
	own := map[string]string{
		"GET /api/v1/namespaces/default/pods/p/log": evil,
		"GET /api/v1/namespaces/default/pods/q/log": "said\n",
		"GET /raw": evil,
		"GET /api/v1/namespaces/default/services": `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name","type":"string","format":"name"},{"name":"X","type":"string"}],
			"rows":[{"cells":["s",EVIL],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"s","labels":{"l":EVIL}}}}]}`,
		"POST /api/v1/namespaces/default/configmaps": `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":EVIL}`,
		"GET /version":    `{"gitVersion":EVIL}`,
		"GET /openapi/v3": `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1"}}}`,
		"GET /openapi/v3/api/v1": `{"paths":{"/api/v1/namespaces/{namespace}/pods/{name}":{"get":{"x-kubernetes-group-version-kind":{"group":"","version":"v1","kind":"Pod"}}}},
			"components":{"schemas":{"io.Pod":{"type":"object","description":EVIL,"x-kubernetes-group-version-kind":[{"group":"","version":"v1","kind":"Pod"}],"properties":{"spec":{"type":"string","description":EVIL}}}}}}`,
	}
	objects := writetest.NewServer(t, evilObjects(t)...)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// HTTP itself forbids C0 in headers; client-go drops what it cannot read.
		w.Header().Add("Warning", `299 - "mind `+"\u009b1m"+` this"`)
		answer, ok := own[r.Method+" "+r.URL.Path]
		if !ok {
			objects.ServeHTTP(w, r)
			return
		}
		if !strings.HasSuffix(r.URL.Path, "/log") && r.URL.Path != "/raw" {
			w.Header().Set("Content-Type", "application/json")
			answer = strings.ReplaceAll(answer, "EVIL", string(quoted))
		}
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestTerminalControl: what kubectl writes for people has no control characters of others, whichever verb, stream and
// way they come by; data for programs and what containers say arrive as they are.
func TestTerminalControl(t *testing.T) {
	t.Parallel()
	server := evilServer(t)
	manifest := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(manifest,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new","namespace":"default"}}`), 0o600); err !=
		nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		in   string // standard input
		raw  bool   // the output has evil as it is
		not  string // if the output does not have evil at all, why: a part of it
	}{
		{args: "describe pod p"},
		{args: "describe node n"},
		{args: "describe configmap m"},
		{args: "describe deployment d"},
		{args: "describe event p.1"},
		{args: "events"},
		{args: "events --for pod/p"},
		{args: "get services", not: "^[[2J^[]0;t^G..."}, // tables have one line a row
		{args: "get services --show-labels -o wide"},
		{args: "get services -L l --no-headers"},
		{args: "get configmaps -o custom-columns=A:.metadata.annotations.a"},
		{args: "get configmap m -o json"},
		{args: "get configmap m -o yaml"},
		{args: "get configmap m -o kyaml"},
		{args: "get configmaps -o yaml"},
		{args: "rollout history deployment d"},
		{args: "rollout history deployment d --revision=1"},
		{args: "rollout status deployment d --watch=false", not: "Waiting for deployment"},
		{args: "explain pod"},
		{args: "explain pod.spec"},
		{args: "version"},
		{args: "set env pod/p --list"},
		{args: "create configmap x"},
		{args: "apply -f " + manifest},
		{args: "delete -i pod p", in: "n\n", not: "pod/p"},
		{args: "get pod " + evil, not: "not found"},
		{args: "get nosuch" + evil},
		{args: "logs nosuch" + evil},
		{args: "logs q --prefix"},
		{args: evil},
		{args: "get pods --server=http://" + evil, not: "invalid control character"},

		{args: "get configmap m -o jsonpath={.data.k}", raw: true},
		{args: "get configmap m -o go-template={{.data.k}}", raw: true},
		{args: "logs p", raw: true},
		{args: "get --raw /raw", raw: true},
	} {
		t.Run(strings.ReplaceAll(c.args, evil, "EVIL"), func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			args := append([]string{"--kubeconfig", os.DevNull, "--cache-dir", t.TempDir(), "--server", server},
				strings.Split(c.args, " ")...)
			Main(t.Context(), "v1.36.3", args, cli.IOStreams{In: strings.NewReader(c.in), Out: &out, ErrOut: &errOut})
			want := "EVIL"
			if c.not != "" {
				want = c.not
			}
			all := out.String() + errOut.String()
			if !strings.Contains(all, want) {
				t.Errorf("no %q in the output:\n%q", want, all)
			}
			if c.raw {
				if !strings.Contains(out.String(), "\u009b1mEVIL\x7f") {
					t.Errorf("the data was changed: %q", out.String())
				}
				return
			}
			// in data for programs it is but text
			direction := !strings.HasSuffix(c.args, "json") && !strings.HasSuffix(c.args, "-o yaml")
			for i, r := range all {
				if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f ||
					direction && (r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069) {
					t.Fatalf("%q at %d of %q", r, i, all)
				}
			}
		})
	}
}
