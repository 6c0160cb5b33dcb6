package config

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/safetext"
)

// podList is a list of pods of these names, in JSON and without their kind.
func podList(names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items,
			fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"x"}]}}`, n))
	}
	return `{"apiVersion":"v1","kind":"PodList","items":[` + strings.Join(items, ",") + `]}`
}

func urlOf(t *testing.T, text string) *URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return &URL{URL: u, Node: "N1", Period: 10 * time.Millisecond, Defaults: none, Log: slog.New(slog.DiscardHandler)}
}

// TestURLAnswers: one pod or a list, in YAML or JSON, by the rules of files; an answer with one bad pod is no good.
func TestURLAnswers(t *testing.T) {
	t.Parallel()
	u := urlOf(t, "http://user:secret@h/m")
	for text, want := range map[string]int{manifest: 1, podList(): 0, podList("a"): 1, podList("a", "b"): 2,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"x"}]}}`: 1} {
		pods, err := u.parse([]byte(text))
		if err != nil || len(pods) != want {
			t.Errorf("%s: %v, %v", text, pods, err)
		}
		for uid, p := range pods {
			if p.UID != uid || len(uid) != 32 || !strings.HasSuffix(p.Name, "-n1") || p.Namespace != "default" ||
				p.Annotations[runtime.AnnotationConfigSource] != "http" || !runtime.IsStatic(p) ||
				p.Spec.NodeName != "N1" {
				t.Errorf("%+v", p.ObjectMeta)
			}
		}
	}
	for text, want := range map[string]string{
		"{":                  "",
		podList("a", "../b"): "metadata.name",
		podList("a", "a"):    "two pods",
		podList(strings.Split(strings.Repeat("a ", maxManifests)+"a", " ")...): "1001 pods, more than 1000",
		"kind: List\nitems: []": "items",
		strings.Replace(podList("a"), `"metadata"`, `"kind":"Service","metadata"`, 1):                "not v1 Pod",
		strings.Replace(podList("a"), `"image"`, `"imago"`, 1):                                       "imago",
		strings.Replace(podList("a", "b"), `"spec":{`, `"spec":{"serviceAccountName":"s",`, 1):       "serviceaccounts",
		strings.ReplaceAll(podList("a", "b"), `"metadata":{`, `"metadata":{"uid":"same",`):           "two pods",
		"apiVersion: v1\nkind: PodList\nitems: [&a {metadata: {name: a}, spec: {containers: [*a]}}]": "",
	} {
		if pods, err := u.parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") || pods != nil {
			t.Errorf("%s: %v, %v; want %q", text, pods, err, want)
		}
	}
	before, err := u.parse([]byte(podList("a", "b")))
	if err != nil {
		t.Fatal(err)
	}
	other := urlOf(t, "http://user:changed@h/m")
	after, err := other.parse([]byte(podList("c", "b")))
	if updated, removed := diff(before, after); err != nil || len(updated) != 1 || updated[0].Name != "c-n1" ||
		len(removed) != 1 || removed[0].Name != "a-n1" {
		t.Errorf("another pod in the list, another password: %v, %v, %v", updated, removed, err)
	}
}

// TestFaultsAreBounded: the log quotes the error of the decoder, which quotes the manifest. Both quotes are short.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	huge := strings.Replace(manifest, "Pod", strings.Repeat("x", maxManifest/2), 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(huge))
	}))
	defer s.Close()
	var log safeBuffer
	u := urlOf(t, s.URL)
	u.Log = slog.New(slog.NewTextHandler(&log, nil))
	u.read(t.Context(), s.Client(), &record{})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "huge.yaml"), []byte(huge), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &Files{Path: dir, Node: "N1", Defaults: none, Log: u.Log}
	f.read(&record{pods: map[string]*corev1.Pod{}})
	if text := log.String(); strings.Count(text, "it has v1 xxx") != 2 || len(text) > 3*safetext.MaxError {
		t.Errorf("the log has %d bytes: %.1000s", len(text), text)
	}
}

// safeBuffer is a log that two goroutines use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}
func (s *safeBuffer) String() string { s.mu.Lock(); defer s.mu.Unlock(); return s.b.String() }

// TestURLIsPolled: pods come and go with the answers, and stay while there is no good one. The log has each fault once,
// and no secrets.
func TestURLIsPolled(t *testing.T) {
	t.Parallel()
	const header, password = "header-secret", "url-secret"
	var answer atomic.Pointer[http.HandlerFunc]
	say := func(code int, body string) {
		f := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, pass, _ := r.BasicAuth(); r.Header.Get("X-Token") != header || user != "u" || pass != password {
				http.Error(w, "", http.StatusForbidden)
				return
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		})
		answer.Store(&f)
	}
	say(http.StatusInternalServerError, "")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) }))
	defer s.Close()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != "" {
			t.Error("another server gets the header")
		}
		_, _ = w.Write([]byte(podList("elsewhere")))
	}))
	defer elsewhere.Close()
	var log safeBuffer
	u := urlOf(t, strings.Replace(s.URL, "http://", "http://u:"+password+"@", 1)+"/m")
	u.Header, u.Log = http.Header{"X-Token": {header}}, slog.New(slog.NewTextHandler(&log, nil))
	old := &corev1.Pod{}
	old.UID, old.Name = "old", "old-n1"
	u.Left(map[types.UID]*corev1.Pod{"old": old})
	r := &record{pods: map[string]*corev1.Pod{"old-n1": old}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx, r) }()
	eventually(t, "a first answer", u.Tried)
	if u.Synced() || !r.has("old-n1") {
		t.Error("a fault counts for an answer without pods")
	}
	say(http.StatusOK, podList("a", "b"))
	eventually(t, "the pods", func() bool { return r.has("a-n1") && r.has("b-n1") && !r.has("old-n1") && u.Synced() })
	for what, bad := range map[string]func(){
		"zero-length": func() { say(http.StatusOK, "") },
		"503 Service": func() { say(http.StatusServiceUnavailable, podList()) },
		"larger than": func() { say(http.StatusOK, strings.Repeat(" ", maxAnswer+1)) },
		"leads to another server": func() {
			f := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			})
			answer.Store(&f)
		},
	} {
		bad()
		eventually(t, what, func() bool { return strings.Contains(log.String(), what) })
		if !r.has("a-n1") || !r.has("b-n1") || r.has("elsewhere-n1") {
			t.Errorf("%s: %v", what, r.pods)
		}
	}
	say(http.StatusOK, manifest)
	eventually(t, "one pod", func() bool { return r.has("web-n1") && !r.has("a-n1") && !r.has("b-n1") })
	say(http.StatusOK, podList())
	eventually(t, "none", func() bool { return !r.has("web-n1") })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Contains(text, header) || strings.Contains(text, password) ||
		strings.Count(text, "zero-length") != 1 || !strings.Contains(text, "url=http://u:xxxxx@") {
		t.Error(text)
	}
}

// TestBothSources: each source gets the pods that it has left, a lone one also those of the other.
func TestBothSources(t *testing.T) {
	t.Parallel()
	of := func(uid types.UID, kind string) *corev1.Pod {
		p := &corev1.Pod{}
		p.UID, p.Annotations = uid, map[string]string{runtime.AnnotationConfigSource: kind}
		return p
	}
	left := map[types.UID]*corev1.Pod{"f": of("f", runtime.SourceFile), "u": of("u", sourceURL)}
	both := Static{Files: &Files{}, URL: &URL{}}
	both.Left(left)
	if f, u := both.Files.left, both.URL.left; len(f) != 1 || f["f"] == nil || len(u) != 1 || u["u"] == nil {
		t.Errorf("%v, %v", f, u)
	}
	lone := Static{URL: &URL{}}
	lone.Left(left)
	if len(lone.URL.left) != 2 {
		t.Errorf("%v", lone.URL.left)
	}
	both.Files.synced.Store(true)
	both.Files.tried.Store(true)
	if both.Synced() || both.Tried() {
		t.Error("one source counts for both")
	}
	both.URL.tried.Store(true)
	if both.Synced() || !both.Tried() {
		t.Error("a source that cannot be read holds up the others, or counts as read")
	}
}

// TestFilesComeFirst: of two sources with a pod of one name or uid, the directory's runs, whichever was read first, and
// the URL's comes back when that has gone. The log says it once.
func TestFilesComeFirst(t *testing.T) {
	t.Parallel()
	of := func(name, uid, hash string) map[types.UID]*corev1.Pod {
		p := &corev1.Pod{}
		p.Name, p.UID, p.Annotations = name, types.UID(uid), map[string]string{runtime.AnnotationConfigHash: hash}
		return map[types.UID]*corev1.Pod{p.UID: p}
	}
	for what, pod := range map[string]map[types.UID]*corev1.Pod{"name": of("a", "f", "1"), "uid": of("b", "u", "1")} {
		var log bytes.Buffer
		first, second := &manifests{}, &manifests{}
		r := &rank{first: first, second: second, log: slog.New(slog.NewTextHandler(&log, nil))}
		first.rank, second.rank = r, r
		h := &calls{gate: make(chan struct{})}
		close(h.gate)
		uid := ""
		for u := range pod {
			uid = string(u)
		}
		url := of("a", "u", "2")
		for i, step := range []struct {
			do   func()
			want string
		}{
			{func() { first.pass(nil, h) }, ""},
			{func() { second.pass(url, h) }, "update:u"},
			{func() { first.pass(pod, h) }, "remove:u update:" + uid},
			{func() { first.pass(pod, h); second.pass(url, h) }, ""},
			{func() { second.pass(of("a", "u", "3"), h) }, ""},
			{func() { first.pass(nil, h) }, "remove:" + uid + " update:u"},
			{func() { second.pass(nil, h) }, "remove:u"},
		} {
			h.log = nil
			if step.do(); h.text() != step.want {
				t.Errorf("%s, step %d: %q, not %q", what, i, h.text(), step.want)
			}
		}
		if strings.Count(log.String(), "is left out") != 1 {
			t.Errorf("%s: %s", what, log.String())
		}
	}
	// What an earlier kubelet has left of the URL's pod is not removed under the uid of a file's.
	first, second := &manifests{}, &manifests{left: of("a", "u", "2")}
	r := &rank{first: first, second: second, log: slog.New(slog.DiscardHandler)}
	first.rank, second.rank = r, r
	h := &calls{gate: make(chan struct{})}
	close(h.gate)
	first.pass(of("b", "u", "1"), h)
	second.pass(of("a", "u", "2"), h)
	if h.text() != "update:u" {
		t.Error(h.text())
	}
}
