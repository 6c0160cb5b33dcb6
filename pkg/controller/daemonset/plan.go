package daemonset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/controller"
)

// plan is one step: the nodes that get a pod, by name, and the pods that go. It is not bounded; act cuts it to burst.
type plan struct {
	create []string
	delete []*corev1.Pod
	// ended are the pods of delete that ran to their end, which a daemon never should.
	ended []*corev1.Pod
}

// state is one DaemonSet with all that decisions about it need. It is built by each reconcile and belongs to its
// goroutine alone.
type state struct {
	ds    *appsv1.DaemonSet
	hash  string // of the current revision
	nodes []*corev1.Node
	// The one to keep is first (byNode); status counts the node by it.
	pods map[string][]*corev1.Pod // by node, the one to keep first
	now  time.Time
	// placed has what place found: it is asked several times for each node.
	placed map[*corev1.Node]placement
}

// place says whether a node is for the DaemonSet.
func (s *state) place(node *corev1.Node) placement {
	if s.placed == nil {
		s.placed = make(map[*corev1.Node]placement, len(s.nodes))
		from := placerOf(s.ds)
		for _, n := range s.nodes {
			s.placed[n] = from.place(n)
		}
	}
	return s.placed[node]
}

// available reports whether a pod has been ready for minReadySeconds. A rolling update trusts a pod only then.
func (s *state) available(p *corev1.Pod) bool {
	ok, _ := controller.PodAvailable(p, time.Duration(s.ds.Spec.MinReadySeconds)*time.Second, s.now)
	return ok
}

// desired counts the nodes that should run a pod.
//
// Percentages of a rolling update are shares of this number, not of all nodes.
func (s *state) desired() (n int) {
	for _, node := range s.nodes {
		if s.place(node).run {
			n++
		}
	}
	return n
}

// spread gives every node that should run a pod one, and deletes the pods that are surplus or out of place:
//
//   - run, and no pod: create. A pod that is still terminating counts as one, so the node waits until it is gone: two
//     daemons on one node could fight over a host port or a lock.
//   - stay: keep one pod, tidy the rest.
//   - neither: delete all.
//
// Pods of nodes that are gone are left to the pod garbage collector, which force-deletes them. Those that were never
// scheduled are deleted here: no node will ever run them, and no kubelet has to stop them first.
func (s *state) spread() plan {
	var out plan
	known := map[string]bool{}
	for _, node := range s.nodes {
		known[node.Name] = true
		p, pods := s.place(node), s.pods[node.Name]
		switch {
		case p.run && len(pods) == 0:
			out.create = append(out.create, node.Name)
		case p.stay:
			s.tidy(pods, &out)
		default:
			out.delete = append(out.delete, leaving(pods)...)
		}
	}
	for node, pods := range s.pods {
		if !known[node] {
			out.delete = append(out.delete, slices.DeleteFunc(leaving(pods), func(p *corev1.Pod) bool {
				return p.Spec.NodeName != ""
			})...)
		}
	}
	return out
}

// leaving returns the pods that are not being deleted yet.
func leaving(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// tidy deletes what a node has in excess: pods at their end, and all but one of the others, or all but one of each
// revision while an update may surge.
//
// Deleting ended pods is what restarts a daemon that exited for good: the next round finds the node empty.
func (s *state) tidy(pods []*corev1.Pod, out *plan) {
	var running []*corev1.Pod
	for _, p := range leaving(pods) {
		if controller.PodTerminal(p) {
			out.delete, out.ended = append(out.delete, p), append(out.ended, p)
		} else {
			running = append(running, p)
		}
	}
	switch {
	case len(running) < 2:
	case s.surge(1) == 0:
		out.delete = append(out.delete, running[1:]...)
	default:
		s.tidySurge(running, out)
	}
}

// tidySurge keeps the oldest pod of the current revision and the oldest of the others; the latter only while it is
// ready and the former not available.
//
// A pair is legitimate for as long as the update of the node takes. The old pod is of no more use when it is not ready,
// and the new one can replace it when it is available. This is KEP-1591.
func (s *state) tidySurge(running []*corev1.Pod, out *plan) {
	var fresh, old *corev1.Pod
	for _, p := range running {
		switch {
		case revisionOf(p) == s.hash && fresh == nil:
			fresh = p
		case revisionOf(p) != s.hash && old == nil:
			old = p
		default:
			out.delete = append(out.delete, p)
		}
	}
	if fresh != nil && old != nil && (!controller.PodReady(old) || s.available(fresh)) {
		out.delete = append(out.delete, old)
	}
}

// surge is how many nodes may have two pods during an update, of n nodes.
func (s *state) surge(n int) int {
	return s.bound(n, func(u *appsv1.RollingUpdateDaemonSet) *intstr.IntOrString { return u.MaxSurge })
}

// unavailable is how many nodes may be without an available pod during an update, of n nodes.
func (s *state) unavailable(n int) int {
	return s.bound(n, func(u *appsv1.RollingUpdateDaemonSet) *intstr.IntOrString { return u.MaxUnavailable })
}

// bound resolves a number or a percentage of n, rounded up, as the API documents for both fields of a DaemonSet. It is
// 0 without a rolling update.
func (s *state) bound(n int, of func(*appsv1.RollingUpdateDaemonSet) *intstr.IntOrString) int {
	u := s.ds.Spec.UpdateStrategy
	if u.Type != appsv1.RollingUpdateDaemonSetStrategyType || u.RollingUpdate == nil || of(u.RollingUpdate) == nil {
		return 0
	}
	// A value that cannot be read is refused by the API server.
	v, err := intstr.GetScaledValueFromIntOrPercent(of(u.RollingUpdate), n, true)
	if err != nil {
		return 0
	}
	return v
}
