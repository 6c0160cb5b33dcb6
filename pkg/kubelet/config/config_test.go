package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"bonsai/pkg/kubelet/runtime"
)

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: "x:1"}]}
`

func none(*corev1.Pod) error { return nil }

func TestParse(t *testing.T) {
	t.Parallel()
	p, err := parse([]byte(manifest), "/m/web.yaml", "Node1", none)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "web-node1" || p.Namespace != "default" || p.Spec.NodeName != "Node1" || len(p.UID) != 32 ||
		!runtime.IsStatic(p) || runtime.IsMirror(p) {
		t.Errorf("%+v", p.ObjectMeta)
	}
	same, _ := parse([]byte(manifest), "/m/web.yaml", "Node1", none)
	other, _ := parse([]byte(manifest+"\n"), "/m/web.yaml", "Node1", none)
	if same.UID != p.UID || other.UID == p.UID {
		t.Error("the uid must follow the content")
	}
	for name, bad := range map[string]string{
		"no YAML":           "{",
		"unknown field":     strings.Replace(manifest, "image:", "imago:", 1),
		"other kind":        strings.Replace(manifest, "Pod", "Service", 1),
		"no containers":     "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n",
		"bad name":          strings.Replace(manifest, "web", "../web", 1),
		"bad namespace":     strings.Replace(manifest, "{name: web}", "{name: web, namespace: ../x}", 1),
		"uid with a path":   strings.Replace(manifest, "{name: web}", "{name: web, uid: ../../x}", 1),
		"two labels as uid": strings.Replace(manifest, "{name: web}", "{name: web, uid: a_b}", 1),
		"uid of two lines":  strings.Replace(manifest, "{name: web}", `{name: web, uid: "a\nb"}`, 1),
		"uid of dots":       strings.Replace(manifest, "{name: web}", "{name: web, uid: a.slice}", 1),
		"huge uid": strings.Replace(manifest, "{name: web}", "{name: web, uid: "+strings.Repeat("u", 64)+"}",
			1),
		"huge name with node": strings.Replace(manifest, "web", strings.Repeat("n", 252), 1),
		"secret volume": strings.Replace(manifest, "spec: {",
			"spec: {volumes: [{name: s, secret: {secretName: s}}], ", 1),
	} {
		if _, err := parse([]byte(bad), "f", "n", none); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// A static pod runs without the API server, so it names no object there. One that does is refused when it is read, in
// upstream's words.
func TestStaticPodsReferToNoObjects(t *testing.T) {
	t.Parallel()
	volume := func(source string) string {
		return strings.Replace(manifest, "spec: {", "spec: {volumes: [{name: v, "+source+"}], ", 1)
	}
	container := func(fields string) string {
		return strings.Replace(manifest, `image: "x:1"`, `image: "x:1", `+fields, 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"projected fields": {
			volume("projected: {sources: [{downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}"), ""},
		"fields": {volume("downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}"),
			""},
		"projected secret":     {volume("projected: {sources: [{secret: {name: s}}]}"), "secrets"},
		"projected config map": {volume("projected: {sources: [{configMap: {name: s}}]}"), "configmaps"},
		"projected token": {volume("projected: {sources: [{serviceAccountToken: {path: t}}]}"),
			"serviceaccounts (via projected volumes)"},
		"trust bundle": {volume("projected: {sources: [{clusterTrustBundle: {name: b, path: t}}]}"),
			"clustertrustbundles"},
		"secret volume":     {volume("secret: {secretName: s}"), "secrets"},
		"config map volume": {volume("configMap: {name: s}"), "configmaps"},
		"claim":             {volume("persistentVolumeClaim: {claimName: s}"), "persistentvolumeclaims"},
		"claim of its own": {volume("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}"),
			"persistentvolumeclaims (via ephemeral volumes)"},
		"storage driver": {volume("csi: {driver: d}"), "csidrivers (via CSI volumes)"},
		"secret in environment": {container("env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]"),
			"secrets"},
		"config map key": {container("env: [{name: A, valueFrom: {configMapKeyRef: {name: s, key: k}}}]"),
			"configmaps"},
		"all of a secret":     {container("envFrom: [{secretRef: {name: s}}]"), "secrets"},
		"all of a config map": {container("envFrom: [{configMapRef: {name: s}}]"), "configmaps"},
		"pull secret": {strings.Replace(manifest, "spec: {", "spec: {imagePullSecrets: [{name: s}], ", 1),
			"secrets"},
		"account": {strings.Replace(manifest, "spec: {", "spec: {serviceAccountName: s, ", 1),
			"serviceaccounts"},
		"account, old field": {strings.Replace(manifest, "spec: {", "spec: {serviceAccount: s, ", 1),
			"serviceaccounts"},
		"resource claim": {
			strings.Replace(manifest, "spec: {", "spec: {resourceClaims: [{name: r, resourceClaimName: s}], ", 1),
			"resourceclaims"},
	} {
		_, err := parse([]byte(c.text), "f", "n", none)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), ": static pods may not reference "+c.want)):
			t.Errorf("%s: %v, want %s refused", name, err, c.want)
		}
	}
}

// TestManifestsPassForNothingElse: a manifest cannot set the fields and annotations that only the kubelet sets.
func TestManifestsPassForNothingElse(t *testing.T) {
	t.Parallel()
	p, err := parse([]byte(strings.Replace(manifest, "{name: web}", `{name: web, deletionTimestamp: "2020-01-01T00:00:00Z",
  deletionGracePeriodSeconds: -9, annotations: {kubernetes.io/config.mirror: x, kubernetes.io/config.source: api}}`, 1)), "f", "n", none)
	if err != nil || !runtime.IsStatic(p) || p.DeletionTimestamp != nil || p.DeletionGracePeriodSeconds != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// A pod of the API server does not pass for a static one, which would be critical.
func TestPodsOfTheAPIAreNotStatic(t *testing.T) {
	t.Parallel()
	pod := watched("1")
	pod.Annotations = map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}
	if got, err := lean(&pod); err != nil || runtime.IsStatic(got.(*corev1.Pod)) {
		t.Errorf("%+v, %v", got, err)
	}
}

// What the API server would refuse is refused: names of volumes, for example, become paths. The log does not grow with
// the manifest.
func TestManifestsAreValidated(t *testing.T) {
	t.Parallel()
	_, err := parse([]byte(manifest), "web.yaml", "n", func(*corev1.Pod) error {
		return errors.New(strings.Repeat("spec.volumes", 10_000))
	})
	if err == nil || !strings.HasPrefix(err.Error(), "manifest web.yaml: spec.volumes") ||
		len(err.Error()) > 2*maxReason {
		t.Errorf("%.200v", err)
	}
}

// TestFileBounds: what is no manifest neither blocks the reader nor keeps the good ones from it, and neither files nor
// bytes nor messages grow without bound.
func TestFileBounds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	f := &Files{Path: dir, Node: "n", Defaults: none, Log: slog.New(slog.NewTextHandler(&log, nil))}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded := func(want ...string) string {
		t.Helper()
		log.Reset()
		pods, err := f.load()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pods {
			got = append(got, p.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
		return log.String()
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "a.fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"b.loop": "b.loop", "c.device": "/dev/zero", "d.gone": "none"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("e.huge", manifest+"#"+strings.Repeat("x", maxManifest))
	write("web.yaml", manifest)
	text := loaded("web-n")
	for _, name := range []string{"a.fifo", "b.loop", "c.device", "d.gone", "e.huge"} {
		if !strings.Contains(text, name) {
			t.Errorf("the log does not name %s: %s", name, text)
		}
	}
	for i := range maxManifests + 100 {
		write(fmt.Sprintf("f%04d", i), "{")
	}
	if text := loaded(); !strings.Contains(text, "too many manifests") || !strings.Contains(text, "left=106") ||
		strings.Count(text, "\n") != maxFaults+2 || !strings.Contains(text, "files=980") {
		t.Errorf("%.3000s", text)
	}
	// These are refused at their first byte: with the race detector, reading ten of them takes half a minute.
	large := strings.Repeat("\x00", 1000<<10)
	for i := range 11 {
		write(fmt.Sprintf("0%02d", i), large)
	}
	if text := loaded(); !strings.Contains(text, "too large together") || !strings.Contains(text, "010") {
		t.Errorf("%.3000s", text)
	}
}

// TestSettleIsBounded: a file that is always written to does not keep others from being read.
func TestSettleIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events, stop := make(chan fsnotify.Event), make(chan struct{})
		go func() {
			for {
				select {
				case events <- fsnotify.Event{}:
				case <-stop:
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		begin := time.Now()
		settle(t.Context(), events)
		if took := time.Since(begin); took != settlePatience {
			t.Errorf("%v", took)
		}
		close(stop)
	})
}

// stuck is a handler that holds up the source that tells it of a pod, until it is closed.
type stuck struct {
	*record
	begun, end chan struct{}
	once       sync.Once
}

func (s *stuck) Update(p *corev1.Pod) {
	s.record.Update(p)
	s.once.Do(func() { close(s.begun); <-s.end })
}

// TestLostEvents: after more changes of the directory than the kernel keeps, those that follow are seen at once.
func TestLostEvents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	most, parsed := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := errors.Join(err, parsed); err != nil || most > 1<<16 {
		t.Skipf("SKIPPED: the kernel keeps %d events, %v", most, err)
	}
	dir := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(manifest, "web", name, 1)),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	h := &stuck{record: &record{pods: map[string]*corev1.Pod{}}, begun: make(chan struct{}), end: make(chan struct{})}
	f := &Files{Path: dir, Node: "n1", Period: time.Hour, Defaults: none, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, h) }()
	<-h.begun
	write(".a")
	from, to := filepath.Join(dir, ".a"), filepath.Join(dir, ".b")
	for range most { // two events each: the watcher has some of them at hand
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		from, to = to, from
	}
	close(h.end)
	write("two")
	eventually(t, "what came meanwhile", func() bool { return h.has("two-n1") })
	write("three")
	eventually(t, "what came then", func() bool { return h.has("three-n1") })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// record keeps the pods it is told of.
type record struct {
	mu   sync.Mutex
	pods map[string]*corev1.Pod
}

func (r *record) Update(p *corev1.Pod) { r.mu.Lock(); r.pods[p.Name] = p; r.mu.Unlock() }
func (r *record) Remove(p *corev1.Pod) {
	r.mu.Lock()
	if r.pods[p.Name] != nil && r.pods[p.Name].UID == p.UID {
		delete(r.pods, p.Name)
	}
	r.mu.Unlock()
}

func (r *record) has(name string) bool { r.mu.Lock(); defer r.mu.Unlock(); return r.pods[name] != nil }

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if ok() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("not within 10 s: %s", what)
}

func TestFilesFollowTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &record{pods: map[string]*corev1.Pod{}}
	f := &Files{Path: dir, Node: "n", Period: time.Hour, Defaults: none,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, r) }()
	eventually(t, "synced", f.Synced)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("bad.yaml", "{")
	write(".hidden.yaml", strings.Replace(manifest, "web", "hidden", 1))
	write("web.yaml", manifest)
	eventually(t, "a new manifest", func() bool { return r.has("web-n") })
	write("web.yaml", strings.Replace(manifest, "web", "mail", 1))
	eventually(t, "a changed manifest", func() bool { return r.has("mail-n") && !r.has("web-n") })
	if err := os.Remove(filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a removed manifest", func() bool { return !r.has("mail-n") })
	if r.has("hidden-n") {
		t.Error("a hidden file was read")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// list is a source of pods whose list changes behind a broken watch.
type list struct {
	mu    sync.Mutex
	pods  []corev1.Pod
	watch *watch.FakeWatcher
}

func (l *list) List(metav1.ListOptions) (apiruntime.Object, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: l.pods}, nil
}

func (l *list) Watch(metav1.ListOptions) (watch.Interface, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watch = watch.NewFake()
	return l.watch, nil
}

// IsWatchListSemanticsUnSupported tells the reflector to list.
func (*list) IsWatchListSemanticsUnSupported() bool { return true }

func (l *list) current() *watch.FakeWatcher { l.mu.Lock(); defer l.mu.Unlock(); return l.watch }

// calls notes what a handler is told; each call waits for gate.
type calls struct {
	mu   sync.Mutex
	log  []string
	gate chan struct{}
}

func (c *calls) note(what string, p *corev1.Pod) {
	<-c.gate
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, what+":"+string(p.UID))
}
func (c *calls) Update(p *corev1.Pod) { c.note("update", p) }
func (c *calls) Remove(p *corev1.Pod) { c.note("remove", p) }
func (c *calls) text() string         { c.mu.Lock(); defer c.mu.Unlock(); return strings.Join(c.log, " ") }

func watched(uid string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "ns", UID: types.UID(uid),
		ResourceVersion: uid}}
}

func TestARelistThatShowsAnotherPodOfTheNameRemovesTheOld(t *testing.T) {
	t.Parallel()
	l, h := &list{pods: []corev1.Pod{watched("1")}}, &calls{gate: make(chan struct{})}
	close(h.gate)
	a, err := NewAPI(l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, h) }()
	eventually(t, "the first pod and the watch", func() bool { return h.text() == "update:1" && l.current() != nil })
	l.mu.Lock()
	l.pods = []corev1.Pod{watched("2")}
	l.mu.Unlock()
	l.current().Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
	eventually(t, "the second pod", func() bool { return strings.HasSuffix(h.text(), "update:2") })
	if got := h.text(); got != "update:1 remove:1 update:2" {
		t.Error(got)
	}
	cancel()
	<-done
}

// A pod that runs must not count as unknown because its source has not come to it yet: it would be ended.
func TestTheSourceIsSyncedOnceAllPodsAreTold(t *testing.T) {
	t.Parallel()
	l, h := &list{pods: []corev1.Pod{watched("1")}}, &calls{gate: make(chan struct{})}
	a, err := NewAPI(l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, h) }()
	eventually(t, "the list", a.informer.HasSynced)
	if a.Synced() {
		t.Error("synced before the handler was told of the pod")
	}
	close(h.gate)
	eventually(t, "synced", a.Synced)
	if h.text() != "update:1" {
		t.Error(h.text())
	}
	cancel()
	<-done
}

// A manifest may give its pod's uid: an edit changes the pod nevertheless, and no second manifest may take its place.
func TestManifestsWithAUID(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := &calls{gate: make(chan struct{})}
	close(h.gate)
	var logged bytes.Buffer
	f := &Files{Path: dir, Node: "n", Defaults: none, Log: slog.New(slog.NewTextHandler(&logged, nil))}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	with := strings.Replace(manifest, "{name: web}", "{name: web, uid: u}", 1)
	write("a.yaml", with)
	f.read(h)
	f.read(h)
	if got := h.text(); got != "update:u" {
		t.Error("first read:", got)
	}
	write("a.yaml", strings.Replace(with, "x:1", "x:2", 1))
	f.read(h)
	if got := h.text(); got != "update:u remove:u update:u" {
		t.Error("after an edit:", got)
	}
	write("b.yaml", strings.Replace(with, "name: web", "name: mail", 1))
	f.read(h)
	if got := h.text(); got != "update:u remove:u update:u" || f.known["u"].Name != "web-n" {
		t.Error("after a second manifest:", got, f.known["u"].Name)
	}
	if !strings.Contains(logged.String(), "two manifests have the same metadata.uid") {
		t.Error("log:", logged.String())
	}
}

// A path that cannot be read was looked at, which is all that others wait for; what it has is known once it can be
// read.
func TestAPathThatCannotBeRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := &calls{gate: make(chan struct{})}
	close(h.gate)
	f := &Files{Path: filepath.Join(file, "manifests"), Node: "n", Defaults: none, Log: slog.New(slog.DiscardHandler)}
	f.Left(map[types.UID]*corev1.Pod{"old": {ObjectMeta: metav1.ObjectMeta{UID: "old"}}})
	if f.Tried() {
		t.Error("tried before the first look")
	}
	f.read(h)
	if !f.Tried() || f.Synced() || h.text() != "" {
		t.Errorf("a path below a file: tried %v, synced %v, told %q", f.Tried(), f.Synced(), h.text())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	f.read(h)
	if !f.Synced() || h.text() != "remove:old" {
		t.Errorf("once it can be read: synced %v, told %q", f.Synced(), h.text())
	}
}

// A manifest that was edited while the kubelet was down has left its old pod in the runtime: it goes before the new one
// comes.
func TestPodsOfAnEarlierLife(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := &calls{gate: make(chan struct{})}
	close(h.gate)
	f := &Files{Path: dir, Node: "n", Defaults: none, Log: slog.New(slog.DiscardHandler)}
	name := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(name, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	same, err := parse([]byte(manifest), name, f.Node, f.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	old := same.DeepCopy()
	old.UID = "old"
	f.left = map[types.UID]*corev1.Pod{"old": old, same.UID: same}
	f.read(h)
	f.read(h)
	if got := h.text(); got != "remove:old update:"+string(same.UID) {
		t.Error(got)
	}
}
