package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// ReplicaSet explains a ReplicaSet.
func ReplicaSet(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	rs, known := why.Get[appsv1.ReplicaSet](ctx, c.World, o.Namespace, o.Name)
	if rs == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("apps", "ReplicaSet", rs)
	if rs.DeletionTimestamp != nil {
		return going(ctx, c, self, rs)
	}
	want := int32(1)
	if rs.Spec.Replicas != nil {
		want = *rs.Spec.Replicas
	}
	a := why.Answer{Subject: self}
	if rs.Status.ObservedGeneration >= rs.Generation && rs.Status.Replicas == want &&
		rs.Status.AvailableReplicas == want {
		a.State, a.Well = fmt.Sprintf("%s has all its %s.", self, why.Count(int(want), "pod")), true
		return a, nil
	}
	a.State = fmt.Sprintf("%s wants %s; %d exist and %d are available.", self, why.Count(int(want), "pod"),
		rs.Status.Replicas, rs.Status.AvailableReplicas)
	if a.Causes = unobserved(c, self, rs, rs.Status.ObservedGeneration); len(a.Causes) > 0 {
		return a, nil
	}
	if rs.Status.Replicas < want {
		a.Causes = refusedPods(ctx, c, self)
	}
	causes, err := notReady(ctx, c, podsOf(ctx, c, rs.Namespace, rs.UID))
	a.Causes = append(a.Causes, causes...)
	return a, err
}

// StatefulSet explains a StatefulSet. Its pods start in order unless it manages them in parallel: the first one that is
// not ready holds up the others.
func StatefulSet(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	set, known := why.Get[appsv1.StatefulSet](ctx, c.World, o.Namespace, o.Name)
	if set == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("apps", "StatefulSet", set)
	if set.DeletionTimestamp != nil {
		return going(ctx, c, self, set)
	}
	want := int32(1)
	if set.Spec.Replicas != nil {
		want = *set.Spec.Replicas
	}
	s := &set.Status
	a := why.Answer{Subject: self}
	updated := set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType ||
		s.UpdateRevision == s.CurrentRevision ||
		s.UpdatedReplicas == want
	if s.ObservedGeneration >= set.Generation && s.Replicas == want && s.ReadyReplicas == want && updated {
		a.State, a.Well = fmt.Sprintf("%s has all its %s ready.", self, why.Count(int(want), "pod")), true
		return a, nil
	}
	a.State = fmt.Sprintf("%s wants %s; %d exist, %d are ready and %d have the newest template.", self,
		why.Count(int(want), "pod"), s.Replicas, s.ReadyReplicas, s.UpdatedReplicas)
	if a.Causes = unobserved(c, self, set, s.ObservedGeneration); len(a.Causes) > 0 {
		return a, nil
	}
	pods := podsOf(ctx, c, set.Namespace, set.UID)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(ordinal(a.Name), ordinal(b.Name)) })
	causes, err := notReady(ctx, c, pods)
	if err != nil {
		return a, err
	}
	if len(causes) > 0 && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && s.Replicas < want {
		causes[0].Text += " The pods after it are not made before it is ready."
		causes[0].Evidence = append(causes[0].Evidence, why.See(self, ".spec.podManagementPolicy", "OrderedReady"))
	}
	a.Causes = append(refusedPods(ctx, c, self), causes...)
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			continue
		}
		o := why.ObjectOf("", "Pod", p)
		going := why.Cause{Code: "PodTerminating",
			Text: fmt.Sprintf("Pod %s is still terminating, and a new pod of that name can only be made when it "+
				"has gone.",
				p.Name), Evidence: []why.Evidence{why.See(o, ".metadata.deletionTimestamp",
				p.DeletionTimestamp.String())}}
		if going.Because, err = c.Causes(ctx, o); err != nil {
			return a, err
		}
		a.Causes = append(a.Causes, going)
	}
	if r := set.Spec.UpdateStrategy.RollingUpdate; len(a.Causes) == 0 && r != nil && r.Partition != nil &&
		*r.Partition > 0 {
		a.Causes = append(a.Causes, why.Cause{Code: "Partition",
			Text: fmt.Sprintf("Only the pods from number %d on get the newest template: the update is partitioned.",
				*r.Partition),
			Evidence: []why.Evidence{why.See(self, ".spec.updateStrategy.rollingUpdate.partition",
				fmt.Sprint(*r.Partition))}})
	}
	return a, nil
}

// ordinal is the number at the end of a StatefulSet's pod, -1 if there is none.
func ordinal(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}

// DaemonSet explains a DaemonSet.
func DaemonSet(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	set, known := why.Get[appsv1.DaemonSet](ctx, c.World, o.Namespace, o.Name)
	if set == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("apps", "DaemonSet", set)
	if set.DeletionTimestamp != nil {
		return going(ctx, c, self, set)
	}
	s := &set.Status
	want := s.DesiredNumberScheduled
	a := why.Answer{Subject: self}
	if s.ObservedGeneration >= set.Generation && want == 0 {
		a.State = fmt.Sprintf("%s has no pods: no node is fit for it.", self)
		a.Causes = []why.Cause{noNodes(ctx, c, self, &set.Spec.Template.Spec)}
		return a, nil
	}
	updated := set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType || s.UpdatedNumberScheduled == want
	if s.ObservedGeneration >= set.Generation && s.NumberAvailable == want && updated {
		a.State, a.Well = fmt.Sprintf("%s has its pod on all %s that are fit for it.", self,
			why.Count(int(want), "node")), true
		return a, nil
	}
	a.State = fmt.Sprintf("%s wants a pod on %s; %d exist and %d are available.", self, why.Count(int(want), "node"),
		s.CurrentNumberScheduled, s.NumberAvailable)
	if a.Causes = unobserved(c, self, set, s.ObservedGeneration); len(a.Causes) > 0 {
		return a, nil
	}
	causes, err := notReady(ctx, c, podsOf(ctx, c, set.Namespace, set.UID))
	if s.CurrentNumberScheduled < want {
		a.Causes = refusedPods(ctx, c, self)
	}
	a.Causes = append(a.Causes, causes...)
	return a, err
}

// noNodes explains a DaemonSet that no node is fit for: by its node selector, or by the nodes' taints.
func noNodes(ctx context.Context, c *why.Case, self why.Object, spec *corev1.PodSpec) why.Cause {
	nodes, _ := why.List[corev1.Node](ctx, c.World, "", nil)
	matching := 0
	for _, n := range nodes {
		fits := true
		for k, v := range spec.NodeSelector {
			fits = fits && n.Labels[k] == v
		}
		if fits {
			matching++
		}
	}
	if matching == 0 && len(spec.NodeSelector) > 0 {
		var terms []string
		for k, v := range spec.NodeSelector {
			terms = append(terms, k+"="+v)
		}
		slices.Sort(terms)
		return why.Cause{Code: "NodeSelector", Text: fmt.Sprintf("None of %s has the labels of its node selector: %s.",
			why.Count(len(nodes), "node"), why.And(terms)),
			Evidence: []why.Evidence{why.See(self, ".spec.template.spec.nodeSelector", why.And(terms))},
			Fixes: []why.Fix{{Text: "Label a node.", Command: "kubectl label node NODE " + strings.Join(terms,
				" ")}}}
	}
	return why.Cause{Code: "NoNodeFits", Text: fmt.Sprintf("Each of %s has taints that its pods do not tolerate, "+
		"or does "+
		"not match its node affinity.", why.Count(len(nodes), "node")),
		Evidence: []why.Evidence{why.See(self, ".status.desiredNumberScheduled", "0")}}
}
