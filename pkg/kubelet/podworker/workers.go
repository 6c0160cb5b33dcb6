package podworker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
)

// Workers runs one worker per pod. Its methods are safe for concurrent use and do not block.
type Workers struct {
	log *slog.Logger
	// returned is called with a pod that begins a new life.
	returned func(*corev1.Pod)
	metrics  Metrics

	// mu is taken before a worker's mu, never the other way round. No step runs under either: a step may take as long
	// as a container takes to stop.
	mu      sync.Mutex
	ctx     context.Context // set by Run; nil before
	steps   Steps           // set by Run, before the first worker starts
	wg      sync.WaitGroup
	workers map[types.UID]*worker
	// Two static pods of one name never run at the same time: names holds, for each static pod's full name, the uids
	// that want it; the first one has it.
	names map[string][]types.UID
	// taken holds the pods whose traces are being removed (see WhenGone); their workers begin when the channel is
	// closed.
	taken map[types.UID]chan struct{}
}

// Metrics receives how long workers take.
type Metrics interface {
	// WorkerStarted receives the time from the kubelet's first sight of a pod to its worker's first step.
	WorkerStarted(pod *corev1.Pod, took time.Duration)
	// WorkerStep receives the time of one step. operation is create for a pod's first sync, update for the first one
	// after a change, sync for any other, or kill.
	WorkerStep(operation string, took time.Duration)
}

// New returns workers that begin to work with Run. returned is called with each pod that has come back after its
// removal, when it starts over; it must not call the workers.
func New(returned func(*corev1.Pod), metrics Metrics, log *slog.Logger) *Workers {
	return &Workers{returned: returned, metrics: metrics, log: log, workers: map[types.UID]*worker{},
		names: map[string][]types.UID{},
		taken: map[types.UID]chan struct{}{}}
}

// Run lets the workers do steps to their pods until ctx ends, and returns when all have stopped. Pods keep running. The
// steps come here and not to New, because what they are made of needs the workers, to wake them.
func (w *Workers) Run(ctx context.Context, steps Steps) error {
	w.mu.Lock()
	w.ctx, w.steps = ctx, steps
	for _, x := range w.workers {
		w.startLocked(x)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.wg.Wait()
	return nil
}

// Update takes a new or changed pod. A pod that comes back after its removal, such as a static pod whose manifest is
// moved away and back, begins a new life when the old one is over.
func (w *Workers) Update(pod *corev1.Pod) { w.change(pod, false) }

// Remove takes a pod that is gone from its source; pod is what is known of it. A pod that no source had before (an
// orphan in the runtime) is terminated too.
func (w *Workers) Remove(pod *corev1.Pod) { w.change(pod, true) }

func (w *Workers) change(pod *corev1.Pod, removed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.workers[pod.UID]; x != nil {
		x.set(pod, removed)
		return
	}
	w.addLocked(pod, removed)
}

// addLocked adds a worker and starts it, if Run has begun. The caller holds mu.
func (w *Workers) addLocked(pod *corev1.Pod, removed bool) {
	x := &worker{all: w, pod: pod, found: removed, told: time.Now(), wake: notify.New(),
		log: w.log.With("pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID)}
	w.workers[pod.UID] = x
	if runtime.IsStatic(pod) {
		n := runtime.FullName(pod)
		w.names[n] = append(w.names[n], pod.UID)
	}
	x.set(pod, removed) // before the start: the first step must see it
	if w.ctx != nil {
		w.startLocked(x)
	}
}

// startLocked starts a worker's goroutine. While the pod's traces are being removed (WhenGone) it waits for the end of
// that. The caller holds mu.
func (w *Workers) startLocked(x *worker) {
	if w.ctx.Err() != nil {
		return
	}
	ctx, taken := w.ctx, w.taken[x.pod.UID]
	w.wg.Go(func() {
		if taken != nil {
			select {
			case <-taken:
			case <-ctx.Done():
				return
			}
		}
		x.run(ctx)
	})
}

// Wake makes the pod's worker look again.
func (w *Workers) Wake(uid types.UID) {
	w.mu.Lock()
	x := w.workers[uid]
	w.mu.Unlock()
	if x != nil {
		x.wake.Notify()
	}
}

// Interrupt is Wake that also ends a Sync in progress, for when that has become pointless.
func (w *Workers) Interrupt(uid types.UID) {
	w.mu.Lock()
	x := w.workers[uid]
	w.mu.Unlock()
	if x != nil {
		x.interrupt()
	}
}

// state returns the state of a pod; false if no worker has it.
func (w *Workers) state(uid types.UID) (State, bool) {
	w.mu.Lock()
	x := w.workers[uid]
	w.mu.Unlock()
	if x == nil {
		return 0, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state, true
}

// Known reports whether there is a worker of the pod.
func (w *Workers) Known(uid types.UID) bool {
	_, known := w.state(uid)
	return known
}

// Ended reports whether the worker of the pod has ended all of its containers.
func (w *Workers) Ended(uid types.UID) bool {
	state, known := w.state(uid)
	return known && state >= Terminated
}

// Cleaned reports whether nothing is left that the pod used: its worker has removed it, or there is none.
func (w *Workers) Cleaned(uid types.UID) bool {
	state, known := w.state(uid)
	return !known || state >= Finished
}

// Active returns those of the pods that have workers and whose containers may run. It reuses the slice.
func (w *Workers) Active(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		state, known := w.state(pod.UID)
		return !known || state >= Terminated
	})
}

// turn reports whether the pod may begin: no other static pod of its name came before it.
func (w *Workers) turn(pod *corev1.Pod) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.names[runtime.FullName(pod)]
	return !runtime.IsStatic(pod) || len(q) == 0 || q[0] == pod.UID
}

// release gives a finished static pod's name to the next one.
func (w *Workers) release(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := runtime.FullName(pod)
	q := w.names[n]
	for i, uid := range q {
		if uid == pod.UID {
			q = append(q[:i:i], q[i+1:]...)
			break
		}
	}
	if len(q) == 0 {
		delete(w.names, n)
		return
	}
	w.names[n] = q
	if x := w.workers[q[0]]; x != nil {
		x.wake.Notify()
	}
}

// drop removes an ended worker and begins the next life of a pod that came back meanwhile.
func (w *Workers) drop(x *worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.mu.Lock()
	uid, next := x.pod.UID, x.next
	x.mu.Unlock()
	delete(w.workers, uid)
	if next != nil {
		w.returned(next)
		w.addLocked(next, false)
	}
}

// leastGrace is the shortest grace period: containers are always asked before they are killed.
const leastGrace = time.Second

// graceOf returns the grace period of the pod's end: that of the deletion, else of the spec, else 30 s.
func graceOf(pod *corev1.Pod) time.Duration {
	seconds := int64(30)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
		seconds = *pod.DeletionGracePeriodSeconds
	}
	return max(runtime.Seconds(seconds), leastGrace)
}
