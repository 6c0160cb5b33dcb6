package syncloop

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// parts are all that hear of pods. They note what they hear, in order.
type parts struct {
	mu    sync.Mutex
	notes []string
	pods  map[types.UID]*corev1.Pod
	// known are the pods that have workers; ended those whose containers have ended.
	known, ended map[types.UID]bool
}

func (p *parts) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// took returns the notes so far and starts over.
func (p *parts) took() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := strings.Join(p.notes, " ")
	p.notes = nil
	return n
}

type (
	pods      struct{ *parts }
	workers   struct{ *parts }
	admission struct{ *parts }
	objects   struct{ *parts }
	volumes   struct{ *parts }
)

func (p pods) Update(pod *corev1.Pod) *corev1.Pod {
	p.note("pods:%s", pod.UID)
	old := p.pods[pod.UID]
	p.pods[pod.UID] = pod
	return old
}
func (p pods) Remove(pod *corev1.Pod)     { p.note("pods-%s", pod.UID); delete(p.pods, pod.UID) }
func (p pods) UpdateMirror(m *corev1.Pod) { p.note("mirror:%s", m.UID) }
func (p pods) RemoveMirror(m *corev1.Pod) { p.note("mirror-%s", m.UID) }
func (p pods) Known(uid types.UID) bool   { return p.pods[uid] != nil }

func (w workers) Update(pod *corev1.Pod)   { w.note("worker:%s", pod.UID); w.known[pod.UID] = true }
func (w workers) Remove(pod *corev1.Pod)   { w.note("worker-%s", pod.UID) }
func (w workers) Known(uid types.UID) bool { return w.known[uid] }
func (w workers) Ended(uid types.UID) bool { return w.ended[uid] }

func (a admission) Ran(uid types.UID)      { a.note("ran:%s", uid) }
func (a admission) Add(pod *corev1.Pod)    { a.note("place:%s", pod.UID) }
func (a admission) Update(pod *corev1.Pod) { a.note("place~%s", pod.UID) }
func (a admission) Withdraw(uid types.UID) { a.note("place-%s", uid) }
func (a admission) Open()                  { a.note("open") }

func (o objects) Track(pod *corev1.Pod)  { o.note("objects:%s", pod.UID) }
func (o objects) Untrack(uid types.UID)  { o.note("objects-%s", uid) }
func (v volumes) Update(pod *corev1.Pod) { v.note("volumes:%s", pod.UID) }

// source notes when it is run, and speaks when the test does.
type source struct {
	*parts
	name   string
	synced atomic.Bool
	tried  atomic.Bool
}

func (s *source) Run(ctx context.Context, _ Handler) error {
	s.note("run %s", s.name)
	<-ctx.Done()
	return nil
}
func (s *source) Synced() bool                        { return s.synced.Load() }
func (s *source) Tried() bool                         { return s.tried.Load() || s.Synced() }
func (s *source) Left(pods map[types.UID]*corev1.Pod) { s.note("left %d", len(pods)) }

func setup() (*Loop, *parts, *source, *source, chan struct{}) {
	p := &parts{pods: map[types.UID]*corev1.Pod{}, known: map[types.UID]bool{}, ended: map[types.UID]bool{}}
	api, static, registered := &source{parts: p, name: "api"}, &source{parts: p, name: "static"}, make(chan struct{})
	l := New(Config{API: api, Static: static, Pods: pods{p}, Workers: workers{p}, Admission: admission{p},
		Objects: objects{p}, Volumes: volumes{p},
		Orphaned: func() { p.note("orphaned") },
		Own: func(t corev1.PodConditionType) bool {
			return t == corev1.PodReady
		}, Registered: registered, Log: slog.New(slog.DiscardHandler)})
	return l, p, api, static, registered
}

func expect(t *testing.T, what string, p *parts, want string) {
	t.Helper()
	if got := p.took(); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func pod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid), Namespace: "ns"}}
}

// A worker hears of a pod last: whatever it asks the others then, they know the pod.
func TestWhoHearsOfAPodOfTheAPIServer(t *testing.T) {
	t.Parallel()
	l, p, _, _, _ := setup()
	s := apiSource{l}
	s.Update(pod("a"))
	expect(t, "a new pod", p, "pods:a place:a objects:a worker:a")
	same := pod("a")
	same.Status.Phase = corev1.PodRunning
	s.Update(same)
	expect(t, "our own status", p, "pods:a place~a")
	labelled := pod("a")
	labelled.Labels = map[string]string{"a": "b"}
	s.Update(labelled)
	expect(t, "other labels", p, "pods:a place~a objects:a volumes:a worker:a")
	p.ended["a"] = true
	deleted := labelled.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s.Update(deleted)
	expect(t, "the deletion of a pod that has ended", p, "pods:a place~a worker:a")
	s.Remove(deleted)
	expect(t, "the end", p, "pods-a place-a worker-a")
	s.Remove(pod("unknown"))
	expect(t, "a pod without a worker", p, "pods-unknown place-unknown objects-unknown")
	mirror := pod("m")
	mirror.Annotations = map[string]string{runtime.AnnotationConfigMirror: "h"}
	s.Update(mirror)
	s.Remove(mirror)
	expect(t, "a mirror", p, "mirror:m mirror-m")
}

func TestWhoHearsOfAStaticPod(t *testing.T) {
	t.Parallel()
	l, p, _, _, _ := setup()
	s := staticSource{l}
	s.Update(pod("a"))
	expect(t, "a manifest", p, "pods:a place:a worker:a")
	s.Remove(pod("a"))
	expect(t, "a manifest that is gone", p, "pods-a place-a worker-a")
	s.Remove(pod("earlier"))
	expect(t, "one of an earlier life, which must end, too", p, "pods-earlier place-earlier worker-earlier")
}

// Nobody speaks before it is known what ran; static pods wait a moment for their mirrors; admission opens when all have
// spoken and the Node is there.
func TestTheOrderOfTheBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, p, api, static, registered := setup()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		synctest.Wait()
		expect(t, "before the first list", p, "")
		l.Listed([]*runtime.PodStatus{{UID: "ran", Name: "ran", Sandboxes: []runtime.Sandbox{{ID: "s"}}},
			{UID: "edited", Name: "web-n",
				Annotations: map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}}})
		expect(t, "the first list", p, "ran:ran")
		if synctest.Wait(); !strings.Contains(p.took(), "run api") {
			t.Error("the API server is not asked")
		}
		time.Sleep(patience)
		synctest.Wait()
		if len(l.left) != 1 || l.left["edited"] == nil {
			t.Errorf("static pods of the life before: %v", l.left)
		}
		expect(t, "the static pods", p, "run static")
		api.synced.Store(true)
		static.synced.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, "all have spoken, but there is no Node", p, "")
		close(registered)
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, "the Node is there", p, "open")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// What runs and nobody tells of is ended, but only once all have spoken.
func TestOrphans(t *testing.T) {
	t.Parallel()
	l, p, api, static, _ := setup()
	list := []*runtime.PodStatus{{UID: "told", Name: "told"}, {UID: "working", Name: "working"},
		{UID: "orphan", Name: "orphan", Namespace: "ns"}, {UID: "nameless"}}
	p.pods["told"], p.known["working"] = pod("told"), true
	l.Listed(list)
	api.synced.Store(true)
	l.Listed(list)
	expect(t, "before all have spoken", p, "")
	static.synced.Store(true)
	l.Listed(list)
	expect(t, "after", p, "orphaned worker-orphan")
}

// Static pods that cannot be read keep no other from its place, and are not ended for it.
func TestStaticPodsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, p, api, static, registered := setup()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- l.Run(ctx) }()
		list := []*runtime.PodStatus{
			{UID: "static", Name: "web-n",
				Annotations: map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}},
			{UID: "orphan", Name: "orphan", Annotations: map[string]string{runtime.AnnotationConfigSource: "api"}}}
		l.Listed(list)
		close(registered)
		api.synced.Store(true)
		time.Sleep(patience)
		synctest.Wait()
		p.took()
		l.Listed(list)
		expect(t, "before the manifests were looked for", p, "")
		static.tried.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		expect(t, "admission", p, "open")
		l.Listed(list)
		expect(t, "what is not static and known to nobody", p, "orphaned worker-orphan")
		if l.Synced() {
			t.Error("all pods count as known")
		}
		p.known["orphan"] = true
		static.synced.Store(true)
		l.Listed(list)
		expect(t, "once they are read", p, "orphaned worker-static")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSameWork(t *testing.T) {
	t.Parallel()
	own := func(t corev1.PodConditionType) bool { return t == corev1.PodReady }
	base := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u",
		Annotations: map[string]string{runtime.AnnotationConfigHash: "x"}}}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		same   bool
	}{
		"own status": {func(p *corev1.Pod) { p.Status.Phase = "Running"; p.ResourceVersion = "9" }, true},
		"own condition": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}}
		}, true},
		"another's condition": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: "gate", Status: "True"}}
		}, false},
		"deletion": {func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, false},
		"spec":   {func(p *corev1.Pod) { p.Spec.NodeName = "x" }, false},
		"labels": {func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }, false},
	} {
		p := base.DeepCopy()
		c.change(p)
		if sameWork(base, p, own) != c.same {
			t.Errorf("%s: want same %v", name, c.same)
		}
	}
}

// A manifest may choose a uid, but not take the place of a pod of the API server, nor the other way round: the first
// one keeps it until it is gone.
func TestTwoSourcesWithOneUID(t *testing.T) {
	t.Parallel()
	l, p, _, _, _ := setup()
	api, static := apiSource{l}, staticSource{l}
	api.Update(pod("a"))
	p.took()
	static.Update(pod("a"))
	static.Remove(pod("a"))
	expect(t, "a manifest with the uid of a pod", p, "")
	api.Remove(pod("a"))
	p.took()
	static.Update(pod("a"))
	expect(t, "when that is gone", p, "pods:a place:a worker:a")
	api.Update(pod("a"))
	api.Remove(pod("a"))
	expect(t, "a pod with the uid of a manifest", p, "")
	static.Remove(pod("a"))
	expect(t, "the end", p, "pods-a place-a worker-a")

	api.Update(pod("b"))
	static.Update(pod("b"))
	p.took()
	api.Remove(pod("b"))
	expect(t, "a manifest that waited for its uid", p, "pods-b place-b worker-b pods:b place:b worker:b")
	api.Update(pod("b"))
	static.Remove(pod("b"))
	expect(t, "a pod that waited for its uid", p, "pods-b place-b worker-b pods:b place:b objects:b worker:b")
	static.Update(pod("b"))
	static.Remove(pod("b"))
	p.took()
	api.Remove(pod("b"))
	expect(t, "nobody waits any more", p, "pods-b place-b worker-b")
}
