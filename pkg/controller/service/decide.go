package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// Finalizer keeps a service until its balancer is gone.
const Finalizer = "service.kubernetes.io/load-balancer-cleanup"

// toBeDeleted is the taint of nodes that the cluster's autoscaler is about to take away.
const toBeDeleted = "ToBeDeletedByClusterAutoscaler"

// action is what is done about a service.
type action int

const (
	nothing action = iota
	// ensure makes the balancer, or changes it to what the service says now.
	ensure
	// update tells the balancer of other nodes.
	update
	// release takes the balancer away.
	release
)

// done is what was last done for a service.
type done struct {
	uid    types.UID
	spec   corev1.ServiceSpec
	labels map[string]string // and annotations: providers read both
	notes  map[string]string
	nodes  []string
}

// doneFor is what is done when a service as it is gets a balancer for nodes.
func doneFor(s *corev1.Service, nodes []*corev1.Node) *done {
	return &done{s.UID, *s.Spec.DeepCopy(), s.Labels, s.Annotations, names(nodes)}
}

// wants a balancer of this controller: a class names somebody else's.
func wants(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil
}

// decide returns what to do about a service. last is what was done last, nil if nothing since the controller started.
func decide(s *corev1.Service, last *done, nodes []*corev1.Node) action {
	switch {
	case (s.DeletionTimestamp != nil || !wants(s)) && slices.Contains(s.Finalizers, Finalizer):
		return release
	case s.DeletionTimestamp != nil || !wants(s):
		return nothing
	case last == nil || last.uid != s.UID:
		return ensure
	case !apiequality.Semantic.DeepEqual(&last.spec, &s.Spec) ||
		!apiequality.Semantic.DeepEqual(last.labels, s.Labels) ||
		!apiequality.Semantic.DeepEqual(last.notes, s.Annotations):
		return ensure
	case !slices.Equal(last.nodes, names(nodes)):
		return update
	}
	return nothing
}

// balanced are the nodes that balancers send to, by name.
func balanced(all []*corev1.Node) []*corev1.Node {
	out := slices.DeleteFunc(slices.Clone(all), func(n *corev1.Node) bool {
		_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
		return excluded || n.DeletionTimestamp != nil || slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == toBeDeleted
		}) ||
			!slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
	})
	slices.SortFunc(out, func(a, b *corev1.Node) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

func names(nodes []*corev1.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}
