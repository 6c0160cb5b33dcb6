package admission

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Checkpoint keeps what pods have across restarts of the kubelet. It is called with the Admitter locked.
type Checkpoint interface {
	Load(uid types.UID) (runtime.Allocation, bool, error)
	Save(uid types.UID, a runtime.Allocation) error
	Remove(uid types.UID) error
	// Saved returns the pods that have a saved allocation.
	Saved() ([]types.UID, error)
}

// Trigger is what made a deferred resize possible.
type Trigger string

// The triggers, in upstream's words.
const (
	podUpdated  Trigger = "pod_updated"
	podResized  Trigger = "pod_resized"
	podsRemoved Trigger = "pods_removed"
)

// refusal is why a pod does not have what its spec asks for.
type refusal struct {
	reason, message string
	// since orders refusals: which was first.
	since uint64
}

// Allocation returns the pod with its spec replaced by the allocated resources, and the state of its resize. A pod that
// has no place is returned unchanged.
func (a *Admitter) Allocation(pod *corev1.Pod) (*corev1.Pod, runtime.Resizing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[pod.UID]
	if p == nil || p.verdict == Waiting || p.verdict == Rejected {
		return pod, runtime.Resizing{}
	}
	r := runtime.Resizing{Allocation: p.given}
	if p.pending != nil {
		r.Reason, r.Message = p.pending.reason, p.pending.message
	}
	return p.given.Of(pod), r
}

// Actuated records the effective resources that a container was given. If its pod has others by now, the container is
// behind and will be updated again.
func (a *Admitter) Actuated(uid types.UID, container string, given corev1.ResourceRequirements) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[uid]
	if p == nil {
		return
	}
	has, want := p.actuated(container), p.given.Effective(container)
	switch {
	case runtime.SameResources(given, want):
		if _, behind := p.given.Actuated[container]; !behind {
			return
		}
	case runtime.SameResources(given, has):
		return
	}
	p.setActuated(container, given)
	a.save(p)
}

// PodActuated records that the pod's own cgroup has the values of that generation's allocation.
func (a *Admitter) PodActuated(uid types.UID, generation int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[uid]; p != nil && p.given.PodActuates && p.given.Generation == generation {
		p.given.PodActuates, p.given.PodActuated = false, nil
		a.save(p)
	}
}

// actuated returns what a container was last given.
func (p *entry) actuated(container string) corev1.ResourceRequirements {
	if r, behind := p.given.Actuated[container]; behind {
		return r
	}
	return p.given.Effective(container)
}

// setActuated records what a container was last given. Callers of Allocation share p.given's maps, so they are replaced
// and never changed.
func (p *entry) setActuated(container string, has corev1.ResourceRequirements) {
	behind := map[string]corev1.ResourceRequirements{}
	for name, r := range p.given.Actuated {
		behind[name] = r
	}
	behind[container] = has
	if runtime.SameResources(has, p.given.Effective(container)) {
		delete(behind, container)
	}
	p.given.Actuated = behind
}

// save stores what a pod has. If that fails, a restarted kubelet decides about the resize again, and does it again.
func (a *Admitter) save(p *entry) {
	if err := a.cfg.Checkpoint.Save(p.pod.UID, p.given); err != nil {
		a.cfg.Log.Warn("what a pod has is not kept for a restart", "uid", p.pod.UID, "err", err)
	}
}

// take gives a new pod what its spec asks for.
func (p *entry) take() {
	p.given = runtime.Allocation{Generation: p.pod.Generation, Resources: runtime.ResourcesOf(p.pod)}
	p.claim = claimOf(p.pod)
}

// recall gives a pod that ran before what it had then.
func (a *Admitter) recall(p *entry) {
	p.take()
	had, ok, err := a.cfg.Checkpoint.Load(p.pod.UID)
	if err != nil {
		a.cfg.Log.Warn("what a pod had is not known any more", "uid", p.pod.UID, "err", err)
	}
	if !ok {
		a.save(p)
		return
	}
	p.given = had
	p.claim = claimOf(had.Of(p.pod))
}

// resize decides whether an admitted pod gets what its newest spec asks for, and reports whether it got it now.
func (a *Admitter) resize(p *entry) (got bool) {
	if !a.open || p.verdict != Admitted {
		return false
	}
	before := p.pending
	p.pending = nil
	want := runtime.ResourcesOf(p.pod)
	if p.pod.DeletionTimestamp != nil || want.Equal(p.given.Resources) {
		return false
	}
	if p.pending = a.refuse(p); p.pending == nil {
		a.grant(p, want)
		return true
	}
	if before != nil && before.reason == p.pending.reason {
		p.pending.since = before.since
		return false
	}
	a.refusals++
	p.pending.since = a.refusals
	return false
}

// refuse returns why a pod cannot have what its spec asks for, nil if it can. Infeasible reasons come first: waiting
// does not help them.
func (a *Admitter) refuse(p *entry) *refusal {
	if runtime.IsStatic(p.pod) {
		return &refusal{reason: corev1.PodReasonInfeasible, message: "In-place resize of static-pods is not supported"}
	}
	if why := a.cfg.MayResize(p.pod, p.given.Resources); why != "" {
		return &refusal{reason: corev1.PodReasonInfeasible, message: why}
	}
	claim := claimOf(p.pod)
	if lacks := a.lacks(claim, nil); len(lacks) > 0 {
		l := lacks[0]
		return &refusal{reason: corev1.PodReasonInfeasible,
			message: fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d", l.name,
				l.requested, l.capacity)}
	}
	lacks := slices.DeleteFunc(a.lacks(claim, a.others(p, true)), func(l lack) bool {
		return l.requested <= p.claim.amounts[l.name] // it asks for no more than it has, though others have too much
	})
	if len(lacks) == 0 {
		return nil
	}
	return &refusal{reason: corev1.PodReasonDeferred, message: "Node didn't have enough resource: " + lacks[0].String()}
}

// grant gives a pod what its spec asks for. Its containers and its cgroup get it later; until then the old values are
// recorded as actuated.
func (a *Admitter) grant(p *entry, want runtime.Resources) {
	had := map[string]corev1.ResourceRequirements{}
	for name := range p.given.Containers {
		had[name] = p.actuated(name)
	}
	whole := p.given.Pod
	if p.given.PodActuates {
		whole = p.given.PodActuated
	}
	p.given = runtime.Allocation{Generation: p.pod.Generation, Resources: want, PodActuates: true, PodActuated: whole}
	for name, has := range had {
		p.setActuated(name, has)
	}
	p.claim = claimOf(p.pod)
	a.save(p)
}

// retry decides again about deferred resizes, as long as one is granted: first those of pods with a higher priority,
// then of a better QoS class, then those that have waited longest. It returns the pods whose resize was granted.
//
// https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/#how-the-kubelet-retries-deferred-resizes
func (a *Admitter) retry(why Trigger) []types.UID {
	var deferred []*entry
	for _, p := range a.pods {
		if p.pending != nil && p.pending.reason == corev1.PodReasonDeferred {
			deferred = append(deferred, p)
		}
	}
	slices.SortFunc(deferred, byTurn)
	var granted []types.UID
	for i := 0; i < len(deferred); {
		p := deferred[i]
		if !a.resize(p) {
			i++
			continue
		}
		a.cfg.Accepted(why)
		granted = append(granted, p.pod.UID)
		deferred, i = slices.Delete(deferred, i, i+1), 0 // what it has less now may be what another waits for
	}
	return granted
}

// byTurn orders pods by whose resize is decided first.
func byTurn(x, y *entry) int {
	return cmp.Or(-cmp.Compare(runtime.Priority(x.pod), runtime.Priority(y.pod)), cmp.Compare(rank(x.pod), rank(y.pod)),
		cmp.Compare(x.since(), y.since()), byAge(x, y))
}

// since returns the number of the refusal that deferred the pod's resize, 0 if none did.
func (p *entry) since() uint64 {
	if p.pending == nil {
		return 0
	}
	return p.pending.since
}

// rank returns the position of a pod's QoS class in the order of retries.
func rank(pod *corev1.Pod) int {
	return slices.Index([]corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort},
		runtime.QOSClass(pod))
}

// tidy removes the checkpoints of pods that are gone.
func (a *Admitter) tidy() {
	saved, err := a.cfg.Checkpoint.Saved()
	if err != nil {
		a.cfg.Log.Warn("what pods had is not tidied up", "err", err)
		return
	}
	for _, uid := range saved {
		if a.pods[uid] == nil && !a.ran[uid] {
			a.forget(uid)
		}
	}
}

func (a *Admitter) forget(uid types.UID) {
	if err := a.cfg.Checkpoint.Remove(uid); err != nil {
		a.cfg.Log.Warn("what a pod had is not forgotten", "uid", uid, "err", err)
	}
}
