package profile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// waiting holds the pods that Permit made wait.
type waiting struct {
	mu   sync.Mutex
	pods map[types.UID]*WaitingPod
}

func newWaiting() *waiting { return &waiting{pods: map[types.UID]*WaitingPod{}} }

// WaitingPod is a pod between Permit and binding.
//
// done has room for the one result that counts; a later one is dropped.
type WaitingPod struct {
	Pod  *model.PodInfo
	mu   sync.Mutex
	left map[string]bool
	done chan *framework.Status
}

// Allow takes back the named plug-in's wait; the last one lets the pod go on.
func (w *WaitingPod) Allow(plugin string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.left, plugin)
	if len(w.left) == 0 {
		w.finish(nil)
	}
}

// Reject ends the wait with a refusal.
func (w *WaitingPod) Reject(plugin, reason string) {
	w.finish(&framework.Status{Code: framework.Unschedulable, Reasons: []string{reason}, Plugin: plugin})
}

func (w *WaitingPod) finish(s *framework.Status) {
	select {
	case w.done <- s:
	default:
	}
}

// RunPermit asks for consent. Status Wait means that WaitOnPermit must be called before binding; it is nil if every
// plug-in allowed at once.
//
// The scheduling goroutine calls it; a pod that has to wait is registered here, so that Allow finds it even before
// WaitOnPermit is called. The shortest of the plug-ins' timeouts holds.
func (p *Profile) RunPermit(
	ctx context.Context, state *framework.CycleState, pod *model.PodInfo, node string,
) (*framework.Status, time.Duration) {
	w := &WaitingPod{Pod: pod, left: map[string]bool{}, done: make(chan *framework.Status, 1)}
	var shortest time.Duration
	for _, pl := range p.permits {
		s, timeout := pl.Permit(ctx, state, pod, node)
		switch {
		case s != nil && s.Code == framework.Wait:
			w.left[pl.Name()] = true
			if shortest == 0 || timeout < shortest {
				shortest = timeout
			}
		case !s.IsSuccess():
			return s.WithPlugin(pl.Name()), 0
		}
	}
	if len(w.left) == 0 {
		return nil, 0
	}
	p.waiting.mu.Lock()
	p.waiting.pods[pod.Pod.UID] = w
	p.waiting.mu.Unlock()
	return framework.NewStatus(framework.Wait), shortest
}

// WaitOnPermit blocks until the waiting pod is allowed (nil) or refused, timeout passes, or ctx ends.
//
// The goroutine of the pod's binding calls it. It ends the registration, whatever the result.
func (p *Profile) WaitOnPermit(ctx context.Context, pod *model.PodInfo, timeout time.Duration) *framework.Status {
	w := p.WaitingPod(pod.Pod.UID)
	if w == nil {
		return nil
	}
	defer func() {
		p.waiting.mu.Lock()
		delete(p.waiting.pods, pod.Pod.UID)
		p.waiting.mu.Unlock()
	}()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case s := <-w.done:
		return s
	case <-t.C:
		reason := fmt.Sprintf("rejected due to timeout after waiting %v", timeout)
		return framework.NewStatus(framework.Unschedulable, reason)
	case <-ctx.Done():
		return framework.AsStatus(ctx.Err())
	}
}

// WaitingPod returns the pod that waits for permission, nil if it does not.
func (p *Profile) WaitingPod(uid types.UID) *WaitingPod {
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	return p.waiting.pods[uid]
}
