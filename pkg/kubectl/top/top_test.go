package top

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bonsai/pkg/kubectl/write/writetest"
)

// used are three nodes, of which one is not there any more, and three pods with one, two and three containers.
func used() (nodes, pods []map[string]any) {
	for _, n := range [][4]string{{"n2", "2500m", "3Gi", "1Gi"}, {"n1", "123456789n", "1536000Ki", "10Mi"},
		{"gone", "1", "1Gi", "0"}} {
		nodes = append(nodes, map[string]any{"metadata": map[string]any{"name": n[0]},
			"usage": map[string]any{"cpu": n[1], "memory": n[2], "swap": n[3]}})
	}
	for i, p := range [][2]string{{"default", "p1"}, {"default", "p2"}, {"kube-system", "ks"}} {
		k := i + 1
		var containers []map[string]any
		for c := 1; c <= k; c++ {
			containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", c),
				"usage": map[string]any{"cpu": fmt.Sprintf("%dm", 10*c+k), "memory": fmt.Sprintf("%dMi", 5*c+100*k),
					"swap": fmt.Sprintf("%dMi", c)}})
		}
		pods = append(pods, map[string]any{"metadata": map[string]any{"name": p[1], "namespace": p[0]},
			"containers": containers})
	}
	return nodes, pods
}

// server has the metrics API in a version, "" for none, nodes n1, n2, n3, and a pod in the namespace of that name:
// young or old.
func server(t *testing.T, version string) string {
	t.Helper()
	nodes, pods := used()
	say := func(w http.ResponseWriter, code int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	missing := func(w http.ResponseWriter, text string) {
		say(w, http.StatusNotFound,
			map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
				"message": text, "details": map[string]any{}})
	}
	named := func(list []map[string]any, name string) map[string]any {
		i := slices.IndexFunc(list, func(m map[string]any) bool {
			return m["metadata"].(map[string]any)["name"] == name
		})
		if i < 0 {
			return nil
		}
		return list[i]
	}
	known := []map[string]any{}
	for _, name := range []string{"n1", "n2", "n3"} {
		status := map[string]any{"capacity": map[string]any{"cpu": "4", "memory": "8Gi"},
			"allocatable": map[string]any{"cpu": "2", "memory": "4Gi"}}
		known = append(known, map[string]any{"metadata": map[string]any{"name": name}, "status": status})
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		selector, path := r.URL.Query().Get("labelSelector"), r.URL.Path
		rest, isMetrics := strings.CutPrefix(path, "/apis/metrics.k8s.io/"+version+"/")
		parts := strings.Split(rest, "/")
		switch {
		case path == "/api":
			say(w, 200, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
		case path == "/apis":
			groups := []any{}
			if version != "" {
				v := map[string]any{"groupVersion": "metrics.k8s.io/" + version, "version": version}
				groups = append(groups, map[string]any{"name": "metrics.k8s.io", "versions": []any{v},
					"preferredVersion": v})
			}
			say(w, 200, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
		case isMetrics && rest == "nodes":
			say(w, 200, map[string]any{"items": nodes})
		case isMetrics && parts[0] == "nodes":
			if n := named(nodes, parts[1]); n != nil {
				say(w, 200, n)
				return
			}
			missing(w, fmt.Sprintf("nodemetrics.metrics.k8s.io %q not found", parts[1]))
		case isMetrics && len(parts) == 4:
			if p := named(pods, parts[3]); p != nil {
				say(w, 200, p)
				return
			}
			missing(w, fmt.Sprintf("podmetrics.metrics.k8s.io %q not found", parts[1]+"/"+parts[3]))
		case isMetrics:
			items := []map[string]any{}
			for _, p := range pods {
				m := p["metadata"].(map[string]any)
				if (len(parts) == 1 || m["namespace"] == parts[1]) &&
					(selector == "" || selector == fmt.Sprint("app=", m["name"])) {
					items = append(items, p)
				}
			}
			say(w, 200, map[string]any{"items": items})
		case path == "/api/v1/nodes" && selector == "":
			say(w, 200, map[string]any{"items": known})
		case path == "/api/v1/nodes/n1":
			say(w, 200, known[0])
		case path == "/api/v1/namespaces/young/pods":
			say(w, 200, map[string]any{
				"items": []any{map[string]any{
					"metadata": map[string]any{"name": "p", "namespace": "young",
						"creationTimestamp": "2999-01-01T00:00:00Z"}}}})
		case path == "/api/v1/namespaces/old/pods":
			say(w, 200, map[string]any{
				"items": []any{map[string]any{
					"metadata": map[string]any{"name": "p", "namespace": "old",
						"creationTimestamp": "2001-01-01T00:00:00Z"}}}})
		default:
			say(w, 200, map[string]any{"items": []any{}})
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestRecorded: what Kubernetes' kubectl v1.36.3 shows of the same metrics. Left out are three of its tables whose
// columns are not under their headings.
func TestRecorded(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("testdata", "kubectl-v1.36.3.txt"))
	if err != nil {
		t.Fatal(err)
	}
	at := server(t, "v1beta1")
	for block := range strings.SplitSeq(string(raw), "$ ") {
		command, want, ok := strings.Cut(block, "\n")
		if !ok {
			continue
		}
		got, code := writetest.Run(t, NewCommand, at, "", strings.Fields(command)...)
		if diff := cmp.Diff(want, fmt.Sprintf("%src %d\n", got, code)); diff != "" {
			t.Errorf("%s\n%s", command, diff)
		}
	}
}

func TestWithoutMetrics(t *testing.T) {
	t.Parallel()
	with, without := server(t, "v1beta1"), server(t, "")
	for _, x := range []struct {
		at, args, want string
	}{
		{without, "top node", "error: Metrics API not available\n"},
		{without, "top pod", "error: Metrics API not available\n"},
		{with, "top pod -n young", "error: metrics not available yet\n"},
		{with, "top pod -n old", "error: Metrics not available for pod old/p, age: "},
		{with, "top pod -A -l app=none", "No resources found\n"},
	} {
		if got, _ := writetest.Run(t, NewCommand, x.at, "",
			strings.Fields(x.args)...); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: %q", x.args, got)
		}
	}
}

// TestVersions: a server's metrics are read in either version.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		got, code := writetest.Run(t, NewCommand, server(t, version), "", "top", "node", "n2", "--no-headers")
		if !strings.HasPrefix(got, "n2 ") || code != 0 {
			t.Errorf("%s: %q, code %d", version, got, code)
		}
	}
}

// What kubectl keeps of the server's groups may be older than its metrics: they are asked for again before top gives
// up.
func TestNewMetrics(t *testing.T) {
	t.Parallel()
	to, err := url.Parse(server(t, "v1beta1"))
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	forward := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis" && asked.Add(1) == 1 {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	if got, code := writetest.Run(t, NewCommand, s.URL, "", "top", "node", "n1"); code != 0 || asked.Load() != 2 {
		t.Errorf("%d %s, asked %d times", code, got, asked.Load())
	}
}
