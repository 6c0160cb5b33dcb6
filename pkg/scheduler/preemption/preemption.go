// Package preemption makes room for a pod that fits nowhere, by evicting pods of lower priority from the node where
// that hurts least. The pod is then nominated to that node and scheduled again once the victims are gone.
//
// The rules are those of https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/#preemption.
// The search runs in the scheduling goroutine, because it needs the snapshot and the plug-ins' state; only the
// evictions, which are requests, run beside it.
package preemption

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "DefaultPreemption"

// API evicts.
type API interface {
	// Preempt marks the pod with the condition and deletes it, if it is still the same pod.
	Preempt(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) error
}

// Budgets knows the disruption budgets.
type Budgets interface {
	// Budgets returns all of them, always in the same order; read only. It is asked by the scheduling goroutine alone.
	Budgets() []*policyv1.PodDisruptionBudget
}

// Statuses writes nominations in the background.
type Statuses interface {
	Put(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition, nominated *string)
}

// Recorder publishes events about victims.
type Recorder interface {
	Event(pod *corev1.Pod, profile, eventType, reason, action, note string)
}

// Metrics counts searches for victims and the victims of those that found some.
type Metrics interface {
	Preempting()
	Victims(n int)
}

// Plugin is the DefaultPreemption plug-in. Victims are evicted in the background. Until all evictions have been
// requested, PreEnqueue holds the preemptor back.
//
// mu guards evicting alone: the queue asks PreEnqueue under its own lock, and the goroutines of evictions change it.
type Plugin struct {
	API       API
	Budgets   Budgets
	Statuses  Statuses
	Recorder  Recorder
	Nominator *model.Nominator
	Now       func() time.Time
	Log       *slog.Logger
	Metrics   Metrics
	// MinNodes and Percent bound how many candidate nodes are compared: at least MinNodes, and Percent of all. One of
	// them may be 0; both mean 100 and 10.
	MinNodes, Percent int
	// Start picks the node to begin with, in [0, n); nil is by chance.
	Start func(n int) int

	memory memory

	mu sync.Mutex
	// evicting are the pods for which victims are being evicted.
	evicting map[types.UID]bool
}

var (
	_ framework.PreEnqueue  = (*Plugin)(nil)
	_ framework.PostFilter  = (*Plugin)(nil)
	_ framework.Interested  = (*Plugin)(nil)
	_ framework.FieldReader = (*Plugin)(nil)
)

// Name is the plug-in's name.
func (*Plugin) Name() string { return name }

// Fields returns what decides who may preempt, and which victims are the best.
func (*Plugin) Fields() framework.Fields {
	return framework.Fields{Pod: []string{"spec.preemptionPolicy", "status.startTime"}}
}

// Reasons why a node is no candidate.
const (
	notHelpful = "Preemption is not helpful for scheduling"
	noVictims  = "No preemption victims found for incoming pod"
)

// timeout bounds the eviction of all victims.
const timeout = 15 * time.Second

// PostFilter nominates a node and begins to evict the victims there. A pod that may not preempt now keeps its
// nomination: the victims it waits for may still be ending, and the room they leave is its own.
//
// The scheduling goroutine calls it after a pod fit nowhere. The scheduler sets the nomination before its next
// decision, so that no pod of lower priority takes the room of the victims. The pod is held back before the evictions
// begin, so that it cannot come back and choose more victims.
func (p *Plugin) PostFilter(
	ctx context.Context, h framework.Handle, state *framework.CycleState, pod *model.PodInfo, d *framework.Diagnosis,
) (string, *framework.Status) {
	p.Metrics.Preempting()
	search := search{p, h}
	best, nominated, st := search.best(ctx, state, pod, d)
	if best == nil {
		return nominated, st
	}
	p.Metrics.Victims(len(best.victims))
	// From here on nothing fails in this goroutine.
	p.displace(ctx, pod, best.node)
	p.hold(pod.Pod.UID, true)
	h.Go(func() {
		err := search.evict(ctx, pod, best)
		p.hold(pod.Pod.UID, false)
		if err != nil {
			p.Log.Warn("preempting failed", "pod", pod.Key(), "node", best.node, "err", err)
			h.Retry(pod.Pod.UID)
			return
		}
		p.Log.Info("preempted", "pod", pod.Key(), "node", best.node, "victims", len(best.victims))
		h.Ungate(pod.Pod.UID)
	})
	return best.node, framework.NewStatus(framework.Success, found(best))
}

// best returns the node where evictions hurt least. If there is none, the status says why, with the nomination that the
// pod keeps.
func (p search) best(
	ctx context.Context, state *framework.CycleState, pod *model.PodInfo, d *framework.Diagnosis,
) (best *candidate, nominated string, st *framework.Status) {
	if why := p.ineligible(pod, d); why != "" {
		return nil, p.Nominator.Of(pod.Pod.UID), framework.NewStatus(framework.Unschedulable, "preemption: "+why)
	}
	candidates, refusals, st := p.candidates(state, pod, d)
	if !st.IsSuccess() {
		return nil, "", st
	}
	if len(candidates) == 0 {
		return nil, "", framework.NewStatus(framework.Unschedulable, "preemption: "+refusals.Message())
	}
	// Extenders may know victims that the plug-ins do not see, or spare some.
	if p.profile.Spares(pod) {
		if candidates, st = p.spare(ctx, pod, candidates); !st.IsSuccess() {
			return nil, "", st
		}
	}
	return pick(candidates), "", nil
}

// Foresee returns what PostFilter would do, and does nothing: the node and the pods that it would evict there, the most
// important first. If it would evict none, node is "" and the status says why. Of the fields it needs Budgets and
// Nominator alone.
func (p *Plugin) Foresee(
	ctx context.Context, h framework.Handle, state *framework.CycleState, pod *model.PodInfo, d *framework.Diagnosis,
) (node string, victims []*model.PodInfo, st *framework.Status) {
	best, _, st := search{p, h}.best(ctx, state, pod, d)
	if best == nil {
		return "", nil, st
	}
	return best.node, best.victims, nil
}

// found says where there will be room, and at whose expense.
func found(c *candidate) string {
	return fmt.Sprintf("preemption: found a potential placement for pod on node %s, preempting %d victims", c.node,
		len(c.victims))
}

// waiting is why a pod is held back.
const waiting = "waiting for the preemption for this pod to be finished"

// PreEnqueue holds a pod back while victims are evicted for it: another try would choose more of them.
func (p *Plugin) PreEnqueue(pod *model.PodInfo) *framework.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.evicting[pod.Pod.UID] {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, waiting)
	}
	return nil
}

// EventsToRegister returns no events: PostFilter releases a pod that is held back once its victims have been evicted.
func (p *Plugin) EventsToRegister() []clusterevent.Interest { return nil }

// hold has PreEnqueue hold a pod back, or ends that. It must be set before the pod can return to the queue, and taken
// back before the queue is asked to look again.
func (p *Plugin) hold(pod types.UID, hold bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !hold {
		delete(p.evicting, pod)
		return
	}
	if p.evicting == nil {
		p.evicting = map[types.UID]bool{}
	}
	p.evicting[pod] = true
}

// displace takes back nominations of less important pods to the node: the room will not be theirs.
func (p *Plugin) displace(ctx context.Context, pod *model.PodInfo, node string) {
	for _, other := range p.Nominator.Below(node, pod) {
		p.Nominator.Set(other, "")
		p.Statuses.Put(ctx, other.Pod, nil, new(""))
	}
}

// ineligible says why the pod may not preempt now, "" if it may. A pod waits for victims of preemption that still end
// on its nominated node, unless that node has become one where no eviction helps. Pods that end for other reasons are
// not waited for: when they will be gone is unknown, and another node may be better.
//
// Without this wait a pod would evict more with every try, on one node after the other, while the first victims end.
func (p *Plugin) ineligible(pod *model.PodInfo, d *framework.Diagnosis) string {
	if policy := pod.Pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
		return "not eligible due to preemptionPolicy=Never."
	}
	nominated := p.Nominator.Of(pod.Pod.UID)
	if nominated == "" {
		return ""
	}
	n := d.Snapshot.Get(nominated)
	if n == nil {
		return ""
	}
	if st := d.Of(n); st != nil && st.Code == framework.UnschedulableAndUnresolvable {
		return ""
	}
	for _, other := range n.Pods {
		if preempted(other.Pod) && model.Priority(other.Pod) < model.Priority(pod.Pod) {
			return "not eligible due to a terminating pod on the nominated node."
		}
	}
	return ""
}

// preempted reports whether pod is ending because a scheduler evicted it.
func preempted(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason == corev1.PodReasonPreemptionByScheduler
	})
}

func (p *Plugin) start(n int) int {
	if p.Start != nil {
		return p.Start(n)
	}
	return rand.IntN(n)
}

// enough is how many candidates end the search among so many nodes. The bound keeps a search short in a large cluster:
// the filters run once or twice for each pod of lower priority on a node.
func (p *Plugin) enough(nodes int) int {
	least, percent := p.MinNodes, p.Percent
	if least == 0 && percent == 0 {
		least, percent = 100, 10
	}
	return max(nodes*percent/100, least)
}

// evict removes the victims, at most eight at a time, all within timeout. One that still waits for Permit is only
// refused: it has no kubelet yet. One that is being deleted is left alone. The first error stops the others, and the
// preemptor is tried again, which chooses among what is left.
func (p search) evict(ctx context.Context, pod *model.PodInfo, c *candidate) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	scheduler := pod.Pod.Spec.SchedulerName
	condition := &corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		Message:            fmt.Sprintf("%s: preempting to accommodate a higher priority pod", scheduler),
		LastTransitionTime: metav1.NewTime(p.Now()),
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, v := range c.victims {
		g.Go(func() error {
			if p.profile.RejectWaiting(v.Pod.UID, name, "preempted") {
				return nil
			}
			if v.Pod.DeletionTimestamp != nil {
				return nil
			}
			if err := p.API.Preempt(gctx, v.Pod, condition); err != nil {
				return err
			}
			p.Recorder.Event(v.Pod, scheduler, corev1.EventTypeNormal, "Preempted", "Preempting",
				fmt.Sprintf("Preempted by pod %v on node %v", pod.Pod.UID, c.node))
			return nil
		})
	}
	return g.Wait()
}
