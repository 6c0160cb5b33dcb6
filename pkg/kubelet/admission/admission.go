// Package admission decides which pods the node takes. Its Admitter is the one owner of who has a place on the node,
// with which resources and host ports. Deciding and giving the place is one step under one lock, so that two pods never
// both get the last place. What fits is computed by pure functions (fit.go).
//
// Who is first: a pod that the runtime already had when the kubelet began keeps its place, whatever others ask for. The
// others are decided in the order of their creation, and none before all sources have named their pods and the Node is
// known. Static pods do not wait for that, because the API server may be one of them. A critical pod that lacks
// resources takes the places of lower ones (preempt.go).
//
// A pod keeps what it was given until its resize is granted (resize.go): what the node gives all pods together is never
// more than it has, except for pods that already ran.
package admission

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Rejection is why the node does not take, or not keep, a pod: reason and message of its status.
type Rejection struct{ Reason, Message string }

// Verdict is a decision about a pod.
type Verdict int

// The verdicts. A pod that is Waiting is woken when it should ask again. One that was Admitted may be Preempted later:
// it is to end.
const (
	Waiting Verdict = iota
	Admitted
	Rejected
	Preempted
)

// Config is what an Admitter needs; everything is required. Its functions are called with the Admitter locked, except
// for Wake and Preempted, and must not call it.
type Config struct {
	// Node returns the Node as the API has it, nil before it is known: then labels and taints are not asked for.
	Node func() *corev1.Node
	// Allocatable is what all pods together may have.
	Allocatable func() corev1.ResourceList
	// Refuse returns why the node takes no such pods at present; nil if it does.
	Refuse func(*corev1.Pod) *Rejection
	// Allocated reports whether a resource is allocated piece by piece, as devices are: then its amount decides nothing
	// here.
	Allocated func(corev1.ResourceName) bool
	// MayResize returns why a pod can never get what its spec asks for in place of what it has, "" if it can.
	MayResize func(pod *corev1.Pod, has runtime.Resources) string
	// Sysctls returns why a pod may not set the kernel parameters that it asks for; nil if it may.
	Sysctls func(*corev1.Pod) error
	// AppArmor returns why the pod's containers cannot be confined as it asks; nil if they can.
	AppArmor func(*corev1.Pod) error
	// Wake lets a pod ask again that waited for its place or for its resize.
	Wake func(types.UID)
	// Checkpoint keeps what pods have.
	Checkpoint Checkpoint
	// Accepted counts a resize that was deferred before.
	Accepted func(Trigger)
	// Admitted, if set, counts a pod that has got its place.
	Admitted func(pod *corev1.Pod)
	// Preempted lets a pod ask again that has lost its place because of that resource. Its sync in progress is
	// pointless.
	Preempted func(uid types.UID, lacked corev1.ResourceName)
	Log       *slog.Logger
}

// Admitter holds the places of the node. It is safe for concurrent use.
type Admitter struct {
	cfg Config

	// mu is held from the look at the other pods' places until the place is taken. What the Admitter calls under it
	// must not call back.
	mu sync.Mutex
	// ran are the pods that the runtime had when the kubelet began.
	ran map[types.UID]bool
	// open: all sources have named their pods.
	open bool
	pods map[types.UID]*entry
	// refusals counts the resizes that were refused.
	refusals uint64
}

// entry is a pod that has a place on the node, or may get one. Pods that have ended or were refused have no entry.
type entry struct {
	pod *corev1.Pod
	// given is what the pod has; claim is that, together with what else it takes from the node.
	given runtime.Allocation
	claim claim
	// pending is why the pod does not have what its spec asks for, nil while it has it.
	pending *refusal
	verdict Verdict
	why     *Rejection
	// gone: no source has the pod any more. It is being ended, and keeps its place until then.
	gone bool
	// after has the pods whose end an admitted pod waits for, so that its place is free.
	after map[types.UID]bool
}

// New returns an Admitter that knows no pods.
func New(cfg Config) *Admitter {
	return &Admitter{cfg: cfg, ran: map[types.UID]bool{}, pods: map[types.UID]*entry{}}
}

// Ran records a pod that the runtime had before the kubelet began. It is called before the pod is added.
func (a *Admitter) Ran(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ran[uid] = true
}

// Open reports that all sources have named their pods, by Add, and that the Node is known. Waiting pods ask again.
func (a *Admitter) Open() {
	a.mu.Lock()
	a.open = true
	waiting := a.reopen()
	for uid, p := range a.pods {
		if p.verdict == Waiting {
			waiting = append(waiting, uid)
		}
	}
	a.mu.Unlock()
	for _, uid := range waiting {
		a.cfg.Wake(uid)
	}
}

// reopen decides about the resizes that were asked for while the kubelet did not run, and returns the pods whose resize
// it granted.
func (a *Admitter) reopen() []types.UID {
	a.tidy()
	asked := make([]*entry, 0, len(a.pods))
	for _, p := range a.pods {
		asked = append(asked, p)
	}
	slices.SortFunc(asked, byTurn)
	var granted []types.UID
	for _, p := range asked {
		if a.resize(p) {
			granted = append(granted, p.pod.UID)
		}
	}
	return append(granted, a.retry(podResized)...)
}

// Add records a pod that a source has named for the first time, so that an older pod is decided before a younger one
// that asks earlier.
func (a *Admitter) Add(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	// it takes nothing from the node
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
	case pod.DeletionTimestamp != nil && !a.ran[pod.UID]: // it never will
	default:
		a.enter(pod)
	}
}

// enter returns the pod's entry, made if there is none; a pod that ran before has its place at once.
func (a *Admitter) enter(pod *corev1.Pod) *entry {
	p := a.pods[pod.UID]
	if p == nil {
		p = &entry{pod: pod}
		if p.take(); a.ran[pod.UID] {
			p.verdict = Admitted
			a.recall(p)
		}
		a.pods[pod.UID] = p
	}
	p.gone = false
	return p
}

// Update records a change of a pod. A pod that has no place yet and is to end gets none. A pod that has a place and
// asks for other resources gets them if there is room.
func (a *Admitter) Update(pod *corev1.Pod) {
	for _, uid := range a.update(pod) {
		a.cfg.Wake(uid)
	}
}

// update returns the pods whose resizes became possible by it.
func (a *Admitter) update(pod *corev1.Pod) []types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.pods[pod.UID]
	switch {
	case p == nil:
	case p.verdict == Waiting && pod.DeletionTimestamp != nil:
		delete(a.pods, pod.UID)
	case p.verdict == Waiting:
		p.pod = pod
		p.take()
	default:
		deferred := p.pending != nil
		p.pod = pod
		if a.resize(p) {
			if deferred {
				a.cfg.Accepted(podUpdated)
			}
			return a.retry(podResized)
		}
	}
	return nil
}

// Release takes the pod's place away: its containers have ended, or it never gets a place. It is called before the end
// is visible in the API: the scheduler may send another pod as soon as it sees it.
func (a *Admitter) Release(uid types.UID) {
	a.mu.Lock()
	if a.pods[uid] != nil {
		a.forget(uid)
	}
	delete(a.pods, uid)
	delete(a.ran, uid)
	free := a.retry(podsRemoved)
	for waiting, p := range a.pods {
		if p.after[uid] {
			if delete(p.after, uid); len(p.after) == 0 {
				free = append(free, waiting)
			}
		}
	}
	a.mu.Unlock()
	for _, waiting := range free {
		a.cfg.Wake(waiting)
	}
}

// Withdraw undoes Add for a pod that is gone from its source. A place stays until it is released; pods that need it
// wait for that.
func (a *Admitter) Withdraw(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch p := a.pods[uid]; {
	case p == nil:
	case p.verdict == Waiting:
		delete(a.pods, uid)
	default:
		p.gone = true
	}
}

// Admit decides about a pod that is to run, once; later calls return that decision.
func (a *Admitter) Admit(pod *corev1.Pod) (Verdict, *Rejection) {
	verdict, why, victims := a.admit(pod)
	for _, v := range victims {
		a.cfg.Preempted(v.uid, v.lacked)
	}
	return verdict, why
}

func (a *Admitter) admit(pod *corev1.Pod) (Verdict, *Rejection, []victim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.enter(pod)
	var victims []victim
	if p.verdict == Waiting {
		victims = a.decideUpTo(p)
	}
	if p.verdict == Admitted && len(p.after) > 0 {
		return Waiting, nil, victims
	}
	return p.verdict, p.why, victims
}

// decideUpTo decides about a pod and, before it, about those that were created earlier and have not asked yet. A static
// pod is decided alone, when it asks itself: it may have to wait for the end of its predecessor. It returns the pods
// that lost a place.
func (a *Admitter) decideUpTo(last *entry) []victim {
	if runtime.IsStatic(last.pod) {
		return a.decide(last)
	}
	if !a.open {
		return nil
	}
	var due []*entry
	for _, p := range a.pods {
		if p.verdict == Waiting && !runtime.IsStatic(p.pod) && byAge(p, last) <= 0 {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, byAge)
	var victims []victim
	for _, p := range due {
		victims = append(victims, a.decide(p)...)
	}
	return victims
}

// byAge orders by creation, to the second, which is the precision of the API; then by uid, so that the order is total.
func byAge(a, b *entry) int {
	return cmp.Or(a.pod.CreationTimestamp.Compare(b.pod.CreationTimestamp.Time), cmp.Compare(a.pod.UID, b.pod.UID))
}

// decide decides about one pod and records it. Refusals that the end of other pods cannot change come first. AppArmor
// is checked before a preemption, so that no pod loses its place for one that is not taken.
func (a *Admitter) decide(p *entry) (victims []victim) {
	if p.why = a.cfg.Refuse(p.pod); p.why == nil {
		p.why = unsupported(p.pod, a.cfg.Node(), a.cfg.Sysctls)
	}
	unconfined := unconfined(p.pod, a.cfg.AppArmor)
	switch {
	case p.why != nil:
	case !runtime.Critical(p.pod):
		if p.why = a.reject(p); p.why == nil {
			p.why = unconfined
		}
	case unconfined != nil: // nobody loses his place for a pod that is not taken
		p.why = unconfined
	default:
		victims, p.why = a.preempt(p)
	}
	if p.verdict = Rejected; p.why == nil {
		p.verdict = Admitted
		a.save(p)
		if a.cfg.Admitted != nil {
			a.cfg.Admitted(p.pod)
		}
	}
	return victims
}

// reject returns why a pod gets no place besides those that have one and stay, nil if it gets it. A pod that lost its
// place has it until its end. If the pod needs the room of pods that are gone, it waits for their end (after).
func (a *Admitter) reject(p *entry) *Rejection {
	stay := a.others(p, false)
	if lacks := a.lacks(p.claim, stay); len(lacks) > 0 {
		return lacks[0].rejection()
	}
	if why := unfit(p.pod, a.cfg.Node(), p.claim, stay); why != nil {
		return why
	}
	if all := a.others(p, true); len(a.lacks(p.claim, all)) > 0 || unfit(p.pod, a.cfg.Node(), p.claim, all) != nil {
		p.after = map[types.UID]bool{}
		for uid, o := range a.pods {
			if o.gone {
				p.after[uid] = true
			}
		}
	}
	return nil
}

// lacks lists what the node lacks for the claim besides the others, without resources that are allocated piece by
// piece.
func (a *Admitter) lacks(c claim, others []claim) []lack {
	return slices.DeleteFunc(c.lacks(a.cfg.Allocatable(), others), func(l lack) bool { return a.cfg.Allocated(l.name) })
}

// others returns the claims of the pods that have a place, except p's; gone says whether to include those that are
// gone.
func (a *Admitter) others(p *entry, gone bool) []claim {
	var out []claim
	for _, o := range a.pods {
		if o != p && (o.verdict == Admitted || o.verdict == Preempted) && (gone || !o.gone) {
			out = append(out, o.claim)
		}
	}
	return out
}
