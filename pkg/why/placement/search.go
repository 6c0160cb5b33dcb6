package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// maxTime bounds the search for changes of one answer. Reading the cluster may take longer.
const maxTime = 10 * time.Second

// Bounds of the search for changes: nodes that are looked at, pods of a node that are taken away in turn, and nodes
// where that is tried.
const (
	maxSeats    = 64
	maxRemoved  = 30
	maxEmptied  = 8
	maxPairs    = 3 // changes of each of two findings that are tried together
	maxTogether = 2 // changes that are needed at once
)

// search looks for the smallest changes by which the pod fits, by trying them.
type search struct {
	ctx     context.Context
	cluster *simulate.Cluster
	pod     *corev1.Pod
	info    *model.PodInfo
	trial   *simulate.Trial
	owner   owner
	author  *corev1.PodSpec // what the pod's author wrote, nil if nothing says it
	// cut says that not all was tried.
	cut bool
}

// found is a change, or several together, with which the pod fits on a node.
type found struct {
	changes []change
	node    string
	// key is that of the cause that the first change removes.
	key string
}

func (f found) cost() (sum float64) {
	for _, c := range f.changes {
		sum += c.cost
	}
	return sum
}

// changesThatHelp tries changes on the nodes. The smallest come first, and one of a kind is returned.
func (s *search) changesThatHelp(all []*seat) []found {
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b *seat) int {
		return cmp.Or(cmp.Compare(len(a.findings), len(b.findings)), cmp.Compare(s.short(a), s.short(b)))
	})
	if len(list) > maxSeats {
		list, s.cut = list[:maxSeats], true
	}
	var out []found
	for _, seat := range list {
		out = append(out, s.alone(seat)...)
	}
	for _, seat := range list[:min(len(list), maxEmptied)] {
		out = append(out, s.without(seat)...)
	}
	if len(out) == 0 {
		for _, seat := range list {
			out = append(out, s.together(seat)...)
		}
	}
	return smallest(out)
}

// smallest sorts by cost and drops the larger ones of a kind.
func smallest(list []found) (out []found) {
	slices.SortStableFunc(list, func(a, b found) int { return cmp.Compare(a.cost(), b.cost()) })
	seen := map[string]bool{}
	for _, f := range list {
		kind := f.key
		for _, c := range f.changes {
			kind += " " + c.kind
		}
		if !seen[kind] {
			seen[kind] = true
			out = append(out, f)
		}
	}
	return out
}

// short is how much of the pod's request a node lacks, in parts of the request.
func (s *search) short(seat *seat) (sum float64) {
	n := seat.node
	for _, f := range seat.findings {
		if f.code != insufficientResource {
			continue
		}
		name := corev1.ResourceName(f.what)
		want := s.info.Requests.Of(name)
		free := max(0, n.Allocatable.Of(name)-n.Requested.Of(name))
		sum += float64(want-free) / float64(max(want, 1))
	}
	return sum
}

// spent reports whether the search must end.
func (s *search) spent() bool {
	if s.cluster.Exhausted() || s.ctx.Err() != nil {
		s.cut = true
	}
	return s.cut && (s.cluster.Exhausted() || s.ctx.Err() != nil)
}

// alone returns the single changes that help on a node.
func (s *search) alone(seat *seat) (out []found) {
	if len(seat.findings) > maxTogether {
		return nil // no change removes three findings
	}
	for _, f := range seat.findings {
		for _, c := range s.changes(f, seat.node) {
			if s.spent() {
				return out
			}
			if s.fits(seat.node, c) {
				out = append(out, found{[]change{c}, seat.node.Name(), f.key()})
			}
		}
	}
	return out
}

// together returns two changes for a node with two findings that help together.
func (s *search) together(seat *seat) []found {
	if len(seat.findings) != maxTogether {
		return nil
	}
	lists := make([][]change, maxTogether)
	for i, f := range seat.findings {
		lists[i] = s.changes(f, seat.node)
		slices.SortStableFunc(lists[i], func(a, b change) int { return cmp.Compare(a.cost, b.cost) })
		lists[i] = lists[i][:min(len(lists[i]), maxPairs)]
	}
	for _, a := range lists[0] {
		for _, b := range lists[1] {
			if s.spent() {
				return nil
			}
			if s.fits(seat.node, a, b) {
				return []found{{[]change{a, b}, seat.node.Name(), seat.findings[0].key()}}
			}
		}
	}
	return nil
}

// fits reports whether the pod fits on a node after the changes. The plug-ins decide that on changed copies.
func (s *search) fits(n *model.NodeInfo, changes ...change) (yes bool) {
	pod, node := s.pod, n
	for _, c := range changes {
		if c.pod != nil {
			if pod == s.pod {
				pod = pod.DeepCopy()
			}
			c.pod(pod)
		}
		if c.node != nil {
			if node == n {
				node = n.Clone()
			}
			c.node(node)
		}
	}
	s.cluster.With(node, func() { yes = len(s.cluster.Try(simulate.Info(pod)).On(node)) == 0 })
	return yes
}

// without returns a pod of the node whose end would help, the smallest, and where it can go.
func (s *search) without(seat *seat) []found {
	key := ""
	for _, f := range seat.findings {
		if f.intent() || f.ill() {
			return nil // whatever pods it has
		}
		key = cmp.Or(key, f.key())
	}
	pods := slices.DeleteFunc(slices.Clone(seat.node.Pods), func(p *model.PodInfo) bool { return stays(p.Pod) })
	slices.SortStableFunc(pods, func(a, b *model.PodInfo) int {
		return cmp.Or(cmp.Compare(weight(a, seat.node), weight(b, seat.node)), cmp.Compare(a.Key(), b.Key()))
	})
	for i, p := range pods {
		if s.spent() {
			return nil
		}
		if i == maxRemoved {
			s.cut = true
			return nil
		}
		c := s.removal(p, seat.node)
		if s.fits(seat.node, c) {
			return []found{{[]change{s.moved(c, p, seat.node)}, seat.node.Name(), key}}
		}
	}
	return nil
}

// stays reports whether the end of a pod would not help: it would come back to its node.
func stays(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return slices.ContainsFunc(p.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Kind == "DaemonSet" })
}

// weight is the part of a node that a pod takes.
func weight(p *model.PodInfo, n *model.NodeInfo) float64 {
	part := func(name corev1.ResourceName) float64 {
		return float64(p.Requests.Of(name)) / float64(max(1, n.Allocatable.Of(name)))
	}
	return part(corev1.ResourceCPU) + part(corev1.ResourceMemory)
}

// removal is the change that ends a pod.
func (s *search) removal(p *model.PodInfo, n *model.NodeInfo) change {
	cost := costDeletePod + 10*min(1, weight(p, n))
	if len(p.Pod.OwnerReferences) == 0 {
		cost += costOrphan
	}
	if model.Priority(p.Pod) > model.Priority(s.pod) {
		cost += costOtherPriority
	}
	return change{kind: "end pod", cost: cost,
		text:    fmt.Sprintf("Delete pod %s on %s, which asks for %s", p.Key(), n.Name(), asks(p)),
		command: why.Command("kubectl -n %s delete pod %s", p.Pod.Namespace, p.Pod.Name),
		node:    func(n *model.NodeInfo) { n.RemovePod(p.Pod) }}
}

// asks says how much CPU and memory a pod asks for.
func asks(p *model.PodInfo) string {
	cpu := amount(corev1.ResourceCPU, p.Requests.MilliCPU) + " CPU"
	if p.Requests.Memory == 0 {
		return cpu
	}
	return cpu + " and " + amount(corev1.ResourceMemory, p.Requests.Memory) + " of memory"
}

// moved words a removal as a move if the pod fits on another node once this one is taken.
func (s *search) moved(c change, p *model.PodInfo, n *model.NodeInfo) change {
	if p.Pod.DeletionTimestamp != nil {
		c.text = fmt.Sprintf("Wait until pod %s on %s has ended", p.Key(), n.Name())
		c.cost, c.command, c.kind = 1, "", "wait"
		return c
	}
	taken := n.Clone()
	taken.RemovePod(p.Pod)
	taken.AddPod(s.info)
	s.cluster.With(taken, func() {
		t := s.cluster.Try(simulate.Unplaced(p.Pod))
		for other := range s.cluster.Snapshot.All {
			if other.Name() != n.Name() && len(t.On(other)) == 0 && len(p.Pod.OwnerReferences) > 0 {
				c.text = fmt.Sprintf("Move pod %s, which asks for %s, from %s to another node: it fits on %s", p.Key(),
					asks(p),
					n.Name(), other.Name())
				c.cost += costMovePod - costDeletePod
				return
			}
		}
	})
	return c
}
