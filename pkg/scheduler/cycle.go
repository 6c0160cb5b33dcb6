package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

// one runs a pod's scheduling cycle and starts its binding.
func (s *Scheduler) one(ctx context.Context, pod *framework.QueuedPod) {
	p := s.profile(pod.Pod)
	if p == nil || s.skip(pod.PodInfo) {
		s.Queue.Done(pod.Pod.UID)
		return
	}
	start := s.Now()
	state := framework.NewCycleState()
	s.begin(state, pod, start)
	node, err := s.decide(ctx, p, state, pod)
	decided := s.Now()
	s.Metrics.decided(decided.Sub(start))
	s.didDecide(state, pod, node, start, decided, err)
	if err != nil {
		s.fail(ctx, p, state, pod, err, start)
		return
	}
	s.assume(ctx, p, state, pod, node, start, decided)
}

// skip reports whether there is nothing to schedule: the pod is going, or has a node already.
func (s *Scheduler) skip(pod *model.PodInfo) bool {
	if pod.Pod.DeletionTimestamp != nil {
		return true
	}
	known, _ := s.Cache.Has(pod.Pod.UID)
	return known
}

func (s *Scheduler) decide(ctx context.Context, p *profile.Profile, state *framework.CycleState,
	pod *framework.QueuedPod) (string, error) {
	if pod.Err != nil {
		return "", pod.Err
	}
	s.Cache.Refresh(s.snapshot)
	if s.snapshot.Count == 0 {
		return "", &framework.FitError{Pod: pod.PodInfo, Diagnosis: framework.NewDiagnosis(s.snapshot)}
	}
	d, err := s.Decider.Decide(ctx, p, state, pod.PodInfo, s.snapshot)
	return d.Node, err
}

// assume reserves the node and lets the binding go on by itself, as soon as one of the binders is free.
func (s *Scheduler) assume(ctx context.Context, p *profile.Profile, state *framework.CycleState,
	pod *framework.QueuedPod, node string, start, decided time.Time) {
	if err := s.Cache.Assume(pod.PodInfo, node); err != nil {
		s.fail(ctx, p, state, pod, err, start)
		return
	}
	b := &binding{s: s, profile: p, state: state, pod: pod, node: node, start: start, decided: decided}
	if n := s.Nominator.Of(pod.Pod.UID); n != "" {
		b.nominated = &n
		s.Nominator.Set(pod.PodInfo, "")
	}
	if st := s.timed("Reserve", p, func() *framework.Status {
		return p.RunReserve(ctx, state, pod.PodInfo, node)
	}); !st.IsSuccess() {
		b.undo(ctx, st)
		return
	}
	var timeout time.Duration
	permit := s.timed("Permit", p, func() (st *framework.Status) {
		st, timeout = p.RunPermit(ctx, state, pod.PodInfo, node)
		return st
	})
	if permit != nil && permit.Code != framework.Wait {
		b.undo(ctx, permit)
		return
	}
	if lingers := p.Lingers(state, pod.PodInfo); permit != nil || lingers {
		// A waiting pod may wait for later ones, or for volumes: it must not hold a binder meanwhile.
		s.binding.Go(func() {
			s.Metrics.bindings(1)
			defer s.Metrics.bindings(-1)
			var st *framework.Status
			if permit != nil {
				begun := s.Now()
				st = p.WaitOnPermit(ctx, pod.PodInfo, timeout)
				s.Metrics.waited(st, s.Now().Sub(begun))
			}
			if lingers && st.IsSuccess() {
				st = b.linger(ctx)
			}
			if !st.IsSuccess() {
				b.undo(ctx, st)
				return
			}
			s.slots <- struct{}{}
			defer func() { <-s.slots }()
			b.run(ctx)
		})
		return
	}
	s.slots <- struct{}{} // bindings end with ctx: one is free soon
	s.binding.Go(func() {
		s.Metrics.bindings(1)
		defer s.Metrics.bindings(-1)
		defer func() { <-s.slots }()
		b.run(ctx)
	})
}

// fail handles a pod that found no node.
func (s *Scheduler) fail(ctx context.Context, p *profile.Profile, state *framework.CycleState, pod *framework.QueuedPod,
	err error, start time.Time) {
	fit := (*framework.FitError)(nil)
	if !errors.As(err, &fit) {
		s.Metrics.attempt("error", p.SchedulerName, s.Now().Sub(start))
		s.Log.Error("scheduling failed", "pod", pod.Key(), "err", err)
		s.report(ctx, pod, corev1.PodReasonSchedulerError, fmt.Sprint(err), nil)
		s.requeue(pod, nil, nil, nil, true)
		return
	}
	d := fit.Diagnosis
	var nominated *string
	if len(p.PostFilters) > 0 && d.NodeCount > 0 {
		var node string
		st := s.timed("PostFilter", p, func() (st *framework.Status) {
			node, st = p.RunPostFilter(ctx, s.Queue, state, pod.PodInfo, d)
			return st
		})
		if st != nil {
			d.PostFilter = st.Message()
		}
		if node != s.Nominator.Of(pod.Pod.UID) && (node != "" || st.IsRejected()) {
			nominated = &node
		}
	}
	s.Metrics.attempt("unschedulable", p.SchedulerName, s.Now().Sub(start))
	s.report(ctx, pod, corev1.PodReasonUnschedulable, d.Message(), nominated)
	d.Compact()
	s.requeue(pod, nominated, d.Plugins, d, false)
}

// requeue returns a pod without a node to the queue; nominated, if not nil, replaces the pod's nomination. A pod that
// was deleted meanwhile must not leave a nomination: nothing would ever remove it.
func (s *Scheduler) requeue(pod *framework.QueuedPod, nominated *string, failed map[string]bool, d *framework.Diagnosis,
	retry bool) {
	if nominated != nil {
		s.nominateTo(pod.PodInfo, *nominated)
	}
	if !s.Queue.Requeue(pod, failed, d, retry) {
		s.nominateTo(pod.PodInfo, "")
	}
}
