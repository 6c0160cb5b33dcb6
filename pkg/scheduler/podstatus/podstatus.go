// Package podstatus writes the conditions and nominations of waiting pods in the background: of each pod one write
// after the other, the newest wins, and none beside or after the pod's binding.
package podstatus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// API writes.
type API interface {
	// PatchStatus sets a condition (nil: none) and the nominated node (nil: unchanged, "": none) of a pod.
	PatchStatus(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition, nominated *string) error
}

// timeout bounds one write.
const timeout = 10 * time.Second

// Writer is safe for concurrent use; make it with New.
type Writer struct {
	api   API
	log   *slog.Logger
	slots chan struct{}
	tasks sync.WaitGroup

	mu   sync.Mutex
	pods map[types.UID]*writes
}

// writes of one pod: at most one is under way, what comes meanwhile is merged into next.
type writes struct {
	next *patch
	// running is true while a goroutine looks after the pod; writing is closed when its call to the API has ended, nil
	// when there is none.
	running bool
	writing chan struct{}
	// held is true while the pod is being bound: nothing is written.
	held bool
}

type patch struct {
	pod       *corev1.Pod
	condition *corev1.PodCondition
	nominated *string
}

// New returns a writer that makes at most limit calls at a time.
func New(api API, limit int, log *slog.Logger) *Writer {
	return &Writer{api: api, log: log, slots: make(chan struct{}, limit), pods: map[types.UID]*writes{}}
}

// Put writes a condition (nil: none) and the nominated node (nil: unchanged, "": none) of pod soon, unless ctx ends
// before or something newer takes its place. It does not block.
func (w *Writer) Put(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition, nominated *string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[pod.UID]
	if p == nil {
		p = &writes{}
		w.pods[pod.UID] = p
	}
	if p.next == nil {
		p.next = &patch{}
	}
	p.next.pod = pod
	if condition != nil {
		p.next.condition = condition
	}
	if nominated != nil {
		p.next.nominated = nominated
	}
	w.start(ctx, pod.UID, p)
}

// start has a goroutine look after the pod if there is something to write and none does; the caller holds mu.
func (w *Writer) start(ctx context.Context, uid types.UID, p *writes) {
	if p.running || p.held || p.next == nil {
		return
	}
	p.running = true
	w.tasks.Go(func() { w.run(ctx, uid, p) })
}

func (w *Writer) run(ctx context.Context, uid types.UID, p *writes) {
	// Also when ctx ends, one is called: it takes the pod's entry away.
	for more := true; more; {
		got := false
		select {
		case w.slots <- struct{}{}:
			got = true
		case <-ctx.Done():
		}
		more = w.one(ctx, uid, p)
		if got {
			<-w.slots
		}
	}
}

// one writes what waits. It returns false if nothing did: then the pod has no writer any more.
func (w *Writer) one(ctx context.Context, uid types.UID, p *writes) bool {
	todo := w.begin(ctx, uid, p)
	if todo == nil {
		return false
	}
	w.write(ctx, todo)
	w.mu.Lock()
	defer w.mu.Unlock()
	close(p.writing)
	p.writing = nil
	return true
}

// begin takes what is to be written; nil if that is nothing.
func (w *Writer) begin(ctx context.Context, uid types.UID, p *writes) *patch {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.next == nil || p.held || ctx.Err() != nil {
		p.running = false
		if !p.held {
			delete(w.pods, uid)
		}
		return nil
	}
	todo := p.next
	p.next, p.writing = nil, make(chan struct{})
	return todo
}

func (w *Writer) write(ctx context.Context, p *patch) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := w.api.PatchStatus(ctx, p.pod, p.condition, p.nominated)
	if err != nil && !apierrors.IsNotFound(err) {
		w.log.Warn("writing why a pod is not scheduled failed", "pod", p.pod.Namespace+"/"+p.pod.Name, "err", err)
	}
}

// Hold is called before the pod is bound: what waits to be written is dropped, and the write under way has ended when
// Hold returns. Until Release nothing is written.
func (w *Writer) Hold(uid types.UID) {
	w.mu.Lock()
	p := w.pods[uid]
	if p == nil {
		p = &writes{}
		w.pods[uid] = p
	}
	p.next, p.held = nil, true
	writing := p.writing
	w.mu.Unlock()
	if writing != nil {
		<-writing
	}
}

// Release ends Hold. What came meanwhile is written if the binding failed, and dropped if the pod is bound: it is about
// a pod that waits.
func (w *Writer) Release(ctx context.Context, uid types.UID, bound bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pods[uid]
	if p == nil {
		return
	}
	p.held = false
	if bound {
		p.next = nil
	}
	w.start(ctx, uid, p)
	if !p.running {
		delete(w.pods, uid)
	}
}

// Wait returns when nothing is being written. Call it after the context given to Put has ended.
func (w *Writer) Wait() { w.tasks.Wait() }
