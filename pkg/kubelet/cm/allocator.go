package cm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Allocator is a Provider of scarce, countable things such as devices. The Manager decides what a pod gets when the pod
// is admitted, one pod after the other. The pod has it until Release or Unprepare.
type Allocator interface {
	Provider
	// Wants reports whether a container of the pod asks for any of it. It does not wait for a choice in progress.
	Wants(pod *corev1.Pod) bool
	// Hints returns, for each resource that a container asks for and that is near to some NUMA nodes, the sets of nodes
	// that can give it. An empty list means that no set can. A resource that is near to no node in particular has no
	// entry. PodHints does the same for the pod as a whole.
	Hints(pod *corev1.Pod, c *corev1.Container) map[string][]Hint
	PodHints(pod *corev1.Pod) map[string][]Hint
	// Allocate chooses what a container gets, near to these nodes (none: anywhere), and gives it. A container that has
	// something already keeps it. Containers come in the order of the spec, init containers first. The error is why the
	// node does not take the pod, a *Refusal or any other.
	Allocate(ctx context.Context, pod *corev1.Pod, c *corev1.Container, near Nodes) error
	// Confirm does the slow part for a pod whose containers have theirs; other pods are admitted meanwhile.
	Confirm(ctx context.Context, pod *corev1.Pod) error
	// Release takes back what a pod has whose containers have ended, or never ran. It may come again.
	Release(uid types.UID)
}

// Starter is a Provider that must do something before each start of a container.
type Starter interface {
	// Starting is called before a container of a prepared pod is made. The error is for the user to fix.
	Starting(ctx context.Context, pod *corev1.Pod, c *corev1.Container) error
}

// Reporter is a Provider that knows the health of what pods have.
type Reporter interface {
	// Health returns the health of everything that the pod's containers have, by container.
	Health(pod *corev1.Pod) map[string][]corev1.ResourceStatus
}

// Resizer is a Provider that may refuse other amounts.
type Resizer interface {
	// MayResize returns why a pod cannot get what its spec asks for in place of what it has, "" if it can.
	MayResize(pod *corev1.Pod, has runtime.Resources) string
}

// Reasons of refusals, in upstream's words.
const (
	reasonUnexpected = "UnexpectedAdmissionError"
	reasonTopology   = "TopologyAffinityError"
)

// Refusal is why the node does not take a pod.
type Refusal struct{ Reason, Message string }

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

// Metrics counts what the topology manager does.
type Metrics interface {
	// TopologyAdmitted counts a pod for which nodes were looked for; refused: there were none.
	TopologyAdmitted(took time.Duration, refused bool)
}

// Admit gives a pod what Allocators have for it. A *Refusal is why the node does not take the pod; the pod has nothing
// then. Any other failure becomes a refusal too, unless ctx ended: then the pod asks again.
func (m *Manager) Admit(ctx context.Context, pod *corev1.Pod) error {
	begun := time.Now()
	err := m.allocate(ctx, pod)
	if m.Topology.Considered() {
		refused := (*Refusal)(nil)
		m.Metrics.TopologyAdmitted(time.Since(begun), errors.As(err, &refused) && refused.Reason == reasonTopology)
	}
	for _, a := range m.allocators() {
		if err == nil {
			err = a.Confirm(ctx, pod)
		}
	}
	if err == nil {
		return nil
	}
	m.Release(pod.UID)
	if refused := (*Refusal)(nil); ctx.Err() != nil || errors.As(err, &refused) {
		return err
	}
	return &Refusal{reasonUnexpected, fmt.Sprintf("Allocate failed due to %v, which is unexpected", err)}
}

// allocate chooses what each container gets, one pod after the other, so that two never get the same. A pod that asks
// for nothing does not wait for those that do, because their choice may ask plug-ins, which may be slow.
func (m *Manager) allocate(ctx context.Context, pod *corev1.Pod) error {
	if !slices.ContainsFunc(m.allocators(), func(a Allocator) bool { return a.Wants(pod) }) {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	whole, err := m.podNodes(pod)
	if err != nil {
		return err
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			near := whole
			if m.Topology.Considered() && !m.Topology.PodScope {
				if near, err = m.nodes(func(a Allocator) map[string][]Hint {
					return a.Hints(pod, &list[i])
				}); err != nil {
					return err
				}
			}
			for _, a := range m.allocators() {
				if err := a.Allocate(ctx, pod, &list[i], near); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// podNodes returns the nodes that give all containers of a pod what they get; none if each container has its own.
func (m *Manager) podNodes(pod *corev1.Pod) (Nodes, error) {
	if !m.Topology.Considered() || !m.Topology.PodScope {
		return 0, nil
	}
	return m.nodes(func(a Allocator) map[string][]Hint { return a.PodHints(pod) })
}

func (m *Manager) nodes(hints func(Allocator) map[string][]Hint) (Nodes, error) {
	var lists [][]Hint
	for _, a := range m.allocators() {
		for _, h := range hints(a) {
			lists = append(lists, h)
		}
	}
	near, ok := m.Topology.Merge(lists)
	if !ok {
		return 0, &Refusal{reasonTopology, "Resources cannot be allocated with Topology locality"}
	}
	return near, nil
}

// Release takes back what Allocators gave a pod, once its containers have ended, or if it does not begin.
func (m *Manager) Release(uid types.UID) {
	for _, a := range m.allocators() {
		a.Release(uid)
	}
}

func (m *Manager) allocators() []Allocator { return of[Allocator](m.Providers) }

// of returns the providers that also implement X, in order.
func of[X any](all []Provider) (out []X) {
	for _, p := range all {
		if x, ok := p.(X); ok {
			out = append(out, x)
		}
	}
	return out
}

// Starting lets each Starter act before the start of a container.
func (m *Manager) Starting(ctx context.Context, pod *corev1.Pod, c *corev1.Container) error {
	for _, s := range of[Starter](m.Providers) {
		if err := s.Starting(ctx, pod, c); err != nil {
			return err
		}
	}
	return nil
}

// Health returns the health of what a pod's containers have, by container.
func (m *Manager) Health(pod *corev1.Pod) map[string][]corev1.ResourceStatus {
	var out map[string][]corev1.ResourceStatus
	for _, r := range of[Reporter](m.Providers) {
		for name, list := range r.Health(pod) {
			if out == nil {
				out = map[string][]corev1.ResourceStatus{}
			}
			out[name] = append(out[name], list...)
		}
	}
	return out
}

// MayResize returns why a pod cannot get what its spec asks for in place of what it has, "" if it can.
func (m *Manager) MayResize(pod *corev1.Pod, has runtime.Resources) string {
	for _, r := range of[Resizer](m.Providers) {
		if why := r.MayResize(pod, has); why != "" {
			return why
		}
	}
	return ""
}
