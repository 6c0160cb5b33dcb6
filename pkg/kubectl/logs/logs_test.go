package logs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubectl/write/writetest"
)

// pod reads "name app container..."; "setup!" is an init container, "debug?" an ephemeral one.
func pod(text string) corev1.Pod {
	words := strings.Fields(text)
	p := corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: words[0], Labels: map[string]string{"app": words[1]}}}
	for _, w := range words[2:] {
		if name, ok := strings.CutSuffix(w, "!"); ok {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name})
		} else if name, ok := strings.CutSuffix(w, "?"); ok {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers,
				corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name}})
		} else {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: w})
		}
	}
	return p
}

// server has the pods; the log of a container is its query in one line and a last line without an end. The container
// "broken" has none.
func server(t *testing.T, texts ...string) string {
	t.Helper()
	pods := map[string]corev1.Pod{}
	for _, text := range texts {
		p := pod(text)
		pods[p.Name] = p
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const root = "/api/v1/namespaces/default/pods"
		name, log := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, root+"/"), "/log")
		p, known := pods[name]
		var answer any
		switch {
		case r.URL.Path == root:
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
			for _, text := range texts {
				if p := pod(text); r.URL.Query().Get("labelSelector") == "app="+p.Labels["app"] {
					list.Items = append(list.Items, p)
				}
			}
			answer = list
		case known && log && r.URL.Query().Get("container") == "broken":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
				Message: "nothing to read", Reason: metav1.StatusReasonBadRequest, Code: 400}
		case known && log:
			query, err := url.QueryUnescape(r.URL.Query().Encode())
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, "%s %s\nend", name, query)
			return
		case known:
			answer = p
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure",
				Message: fmt.Sprintf("pods %q not found", name), Reason: metav1.StatusReasonNotFound, Code: 404}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestLogs: what is asked of the server and what is printed, as Kubernetes' kubectl 1.36 does.
func TestLogs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"one", "one container=main\nend"},
		{"one -f -p --timestamps --insecure-skip-tls-verify-backend --limit-bytes=9 --tail=0",
			"one container=main&follow=true&insecureSkipTLSVerifyBackend=true&limitBytes=9&previous=true&tailLines=0&timestamps=true\nend"},
		{"one --since=1500ms", "one container=main&sinceSeconds=2\nend"},
		{"one --since-time=2020-01-01T00:00:00Z", "one container=main&sinceTime=2020-01-01T00:00:00Z\nend"},
		{"two", "two container=x\nendDefaulted container \"x\" out of: x, y, setup (init)\n"},
		{"two y", "two container=y\nend"},
		{"two -c setup", "two container=setup\nend"},
		{"two --all-containers", "two container=setup\nendtwo container=x\nendtwo container=y\nend"},
		{"all --all-containers --prefix",
			"[pod/all/i] all container=i\n[pod/all/i] end[pod/all/m] all container=m\n[pod/all/m] end[pod/all/d] all container=d\n[pod/all/d] end"},
		{"-l app=a", "one container=main&tailLines=10\nendtwo container=x&tailLines=10\nendDefaulted container \"x\" out of: x, y, setup (init)\n"},
		{"-l app=a --tail=-1 -c main", "error: container main is not valid for pod two out of: x, y, setup (init)\n"},
		{"-l app=nobody", "No resources found in default namespace.\n"},
		{"bad --all-containers --ignore-errors", "bad container=x\nenderror: nothing to read\nbad container=y\nend"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			at := server(t, "one a main", "two a x y setup!", "all b m i! d?", "bad c x broken y")
			got, code := writetest.Run(t, NewCommand, at, "", append([]string{"logs"}, strings.Fields(c.args)...)...)
			if got != c.want || (code != 0) != strings.HasPrefix(c.want, "error:") {
				t.Errorf("code %d\n%s\nwant\n%s", code, got, c.want)
			}
		})
	}
}

// TestRefused: what is refused before a log is read.
func TestRefused(t *testing.T) {
	t.Parallel()
	const usage = "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\nPOD or TYPE/NAME is a required argument for the logs command"
	for _, c := range []struct{ args, want string }{
		{"", usage},
		{"a b c", usage},
		{"one -l app=a", "only a selector (-l) or a POD name is allowed"},
		{"two x -c y", "only one of -c or an inline [CONTAINER] arg is allowed"},
		{"one --since=1s --since-time=2020-01-01T00:00:00Z",
			"at most one of `sinceTime` or `sinceSeconds` may be specified"},
		{"one --since-time=yesterday", "cannot parse \"yesterday\""},
		{"one --since=-1s", "--since must be greater than 0"},
		{"one --tail=-2", "--tail must be greater than or equal to -1"},
		{"one --limit-bytes=-1", "--limit-bytes must be greater than 0"},
		{"two --all-containers -c x", "--all-containers=true should not be specified with container name x"},
		{"two -c zz", "container zz is not valid for pod two out of: x, y, setup (init)"},
		{"nosuch", "error from server (NotFound): pods \"nosuch\" not found in namespace \"default\""},
		{"-l app=a -f --max-log-requests=1",
			"you are attempting to follow 2 log streams, but maximum allowed concurrency is 1, use --max-log-requests to increase the limit"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			got, code := writetest.Run(t, NewCommand, server(t, "one a main", "two a x y setup!"), "",
				append([]string{"logs"}, strings.Fields(c.args)...)...)
			if code != 1 || !strings.Contains(got, c.want) || strings.Contains(got, "\nend") {
				t.Errorf("code %d\n%s\nwant\n%s", code, got, c.want)
			}
		})
	}
}

// TestTogether: lines of several logs are not mixed within one.
func TestTogether(t *testing.T) {
	t.Parallel()
	got, code := writetest.Run(t, NewCommand, server(t, "one a main", "two a x"), "", "logs", "-f", "-l", "app=a",
		"--prefix")
	for _, want := range []string{"[pod/one/main] one container=main&follow=true&tailLines=10\n",
		"[pod/two/x] two container=x&follow=true&tailLines=10\n", "[pod/one/main] end", "[pod/two/x] end"} {
		if code != 0 || strings.Count(got, want) != 1 {
			t.Errorf("code %d, no line %q in\n%s", code, want, got)
		}
	}
}

func TestLineWriterKeepsLinesWhole(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := &lineWriter{w: &out}
	lines := []string{strings.Repeat("a", 100) + "\n", strings.Repeat("b", 100) + "\n"}
	var all sync.WaitGroup
	for _, l := range lines {
		all.Go(func() {
			for range 100 {
				if _, err := w.Write([]byte(l)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := strings.SplitAfter(out.String(), "\n")
	if slices.ContainsFunc(got[:len(got)-1], func(l string) bool {
		return !slices.Contains(lines, l)
	}) || len(got) != 201 {
		t.Errorf("%d lines, some mixed", len(got)-1)
	}
}
