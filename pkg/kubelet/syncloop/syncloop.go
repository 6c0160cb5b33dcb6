// Package syncloop hands the pods of the sources to their workers; other parts that must know a pod get it before its
// worker does. It orders the start: first the pods that the runtime already has, before any source; then the moment
// when all sources have named all their pods; and then the pods of the runtime that no source has. Those are ended.
package syncloop

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/trace"
)

// patience is how long static pods wait for the statuses that their mirrors tell.
const patience = time.Second

// Handler receives each pod of a source that is new, changed or gone, one after the other.
type Handler = interface {
	Update(pod *corev1.Pod)
	Remove(pod *corev1.Pod)
}

// Source is a source of pods.
type Source interface {
	// Run passes pods to the handler until ctx ends.
	Run(ctx context.Context, h Handler) error
	// Synced reports whether the handler has received all pods that the source had at its begin.
	Synced() bool
}

// StaticSource is the source of the node's static pods.
type StaticSource interface {
	Source
	// Left receives, before Run, the static pods that an earlier kubelet has left in the runtime. Those that no longer
	// exist are passed on as removed.
	Left(pods map[types.UID]*corev1.Pod)
	// Tried reports whether the source has looked for its pods once, though it may not have been able to read them:
	// then it is not synced.
	Tried() bool
}

// Pods knows the pods and the mirrors.
type Pods interface {
	// Update returns the previous version of the pod, nil if it is new.
	Update(pod *corev1.Pod) (before *corev1.Pod)
	Remove(pod *corev1.Pod)
	UpdateMirror(mirror *corev1.Pod)
	RemoveMirror(mirror *corev1.Pod)
	// Known reports whether a source has the pod.
	Known(uid types.UID) bool
}

// Workers do everything to pods.
type Workers interface {
	Update(pod *corev1.Pod)
	Remove(pod *corev1.Pod)
	// Known reports whether there is a worker of the pod, Ended whether it has ended all of the pod's containers.
	Known(uid types.UID) bool
	Ended(uid types.UID) bool
}

// Admission gives pods their places on the node.
type Admission interface {
	// Ran records a pod that the runtime had before the kubelet began.
	Ran(uid types.UID)
	Add(pod *corev1.Pod)
	Update(pod *corev1.Pod)
	Withdraw(uid types.UID)
	// Open reports that all pods and the Node are known.
	Open()
}

// Objects watches what pods refer to.
type Objects interface {
	Track(pod *corev1.Pod)
	Untrack(uid types.UID)
}

// Volumes hears of pods whose volumes may say something else now.
type Volumes interface {
	Update(pod *corev1.Pod)
}

// Config is what a Loop needs; everything but Static and Orphaned is required.
type Config struct {
	API Source
	// Static is nil on a node without static pods.
	Static    StaticSource
	Pods      Pods
	Workers   Workers
	Admission Admission
	Objects   Objects
	Volumes   Volumes
	// Own reports whether the kubelet itself writes conditions of that type.
	Own func(corev1.PodConditionType) bool
	// Orphaned counts a pod in the runtime that no source has.
	Orphaned func()
	// Registered is closed when the Node is known.
	Registered <-chan struct{}
	// Tracer records the steps of pods; nil: nothing is recorded.
	Tracer *trace.Tracer
	Log    *slog.Logger
}

// Loop hands pods to workers. Its methods are safe for concurrent use.
type Loop struct {
	cfg Config
	// listed is closed when the runtime was first listed: which pods it had before is known then.
	listed chan struct{}
	// left are the static pods that it had, by uid; read only once listed is closed.
	left map[types.UID]*corev1.Pod
	// mu is held while a source passes a pod on, and during the search for pods that no source has: otherwise a pod
	// that is just arriving could be taken for an orphan.
	mu sync.Mutex
	// static has the uids that a source has, and whether it is the static one. A manifest may choose a uid: one that
	// the other source has would be taken for the same pod.
	static map[types.UID]bool
	// waits pass on the pods that are left out because the other source has their uid, once it has given that up: a
	// source does not name a pod again that has not changed.
	waits map[types.UID]func()
}

// claimLocked reports whether a source may pass a pod on: its uid is not one of the other source's. The first one keeps
// it; pass is called, with the lock, when that has given it up.
func (l *Loop) claimLocked(pod *corev1.Pod, static bool, pass func()) bool {
	if has, taken := l.static[pod.UID]; taken && has != static {
		l.cfg.Log.Error("a pod is left out: a static pod and one of the API server have the same uid, change metadata.uid of the manifest",
			"pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "static", static)
		l.waits[pod.UID] = pass
		return false
	}
	l.static[pod.UID] = static
	return true
}

// disclaimLocked gives up the uid of a pod that a source has no more. It calls remove if the source has passed that pod
// on, and lets the other source have the uid, if it waits for it.
func (l *Loop) disclaimLocked(pod *corev1.Pod, static bool, remove func()) {
	if has, taken := l.static[pod.UID]; taken && has != static {
		delete(l.waits, pod.UID)
		return
	}
	remove()
	delete(l.static, pod.UID)
	if pass := l.waits[pod.UID]; pass != nil {
		delete(l.waits, pod.UID)
		pass()
	}
}

// New returns a Loop that hears of pods with Run.
func New(cfg Config) *Loop {
	return &Loop{cfg: cfg, listed: make(chan struct{}), left: map[types.UID]*corev1.Pod{},
		static: map[types.UID]bool{}, waits: map[types.UID]func(){}}
}

// Run lets the sources speak until ctx ends: only when it is known which pods ran before, for these keep their places.
func (l *Loop) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.listed:
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.cfg.API.Run(ctx, apiSource{l}) })
	if l.cfg.Static != nil {
		g.Go(func() error { return l.runStatic(ctx) })
	}
	g.Go(func() error { l.open(ctx); return nil })
	return g.Wait()
}

func (l *Loop) runStatic(ctx context.Context) error {
	l.cfg.Static.Left(l.left)
	// The statuses of static pods are in their mirrors: they are worth a short wait, but not more, for the API server
	// may be one of them.
	brief, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cache.WaitForCacheSync(brief.Done(), l.cfg.API.Synced)
	return l.cfg.Static.Run(ctx, staticSource{l})
}

// open lets pods of the API server be decided on once all are known that could be before them, and the Node's labels.
func (l *Loop) open(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-l.cfg.Registered:
	}
	if cache.WaitForCacheSync(ctx.Done(), l.Spoken) {
		l.cfg.Admission.Open()
	}
}

// Spoken reports whether all sources have named all pods that they could read. Static pods that cannot be read do not
// hold up the others, but they may be running: code that removes what belongs to no pod must ask Synced.
func (l *Loop) Spoken() bool {
	return l.cfg.API.Synced() && (l.cfg.Static == nil || l.cfg.Static.Tried())
}

// Synced reports whether all sources have named all their pods.
func (l *Loop) Synced() bool {
	return l.cfg.API.Synced() && (l.cfg.Static == nil || l.cfg.Static.Synced())
}
