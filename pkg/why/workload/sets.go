package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// ReplicaSet explains a ReplicaSet.
func ReplicaSet(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	rs, known := why.Get[appsv1.ReplicaSet](ctx, c.World, o.Namespace, o.Name)
	if rs == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	return replicas(ctx, c, why.ObjectOf("apps", "ReplicaSet", rs), rs)
}

// replicas explains what keeps a number of equal pods.
func replicas(ctx context.Context, c *why.Case, self why.Object, rs *appsv1.ReplicaSet) (why.Answer, error) {
	if rs.DeletionTimestamp != nil {
		return going(ctx, c, self, rs)
	}
	want := int32(1)
	if rs.Spec.Replicas != nil {
		want = *rs.Spec.Replicas
	}
	if rs.Status.ObservedGeneration >= rs.Generation && want == 0 && rs.Status.Replicas == 0 {
		return scaledToZero(self, rs), nil
	}
	a := why.Answer{Subject: self}
	pods := podsOf(ctx, c, rs.Namespace, rs.UID)
	restless, err := unstable(ctx, c, self, pods)
	if err != nil {
		return a, err
	}
	if rs.Status.ObservedGeneration >= rs.Generation && rs.Status.Replicas == want &&
		rs.Status.AvailableReplicas == want {
		if restless, err = orNotReady(ctx, c, restless, pods); err != nil {
			return a, err
		}
		a.State = restlessly(fmt.Sprintf("%s has %s", self, all(int(want), "pod")), restless)
		a.Causes, a.Well = restless, len(restless) == 0
		return a, nil
	}
	a.State = fmt.Sprintf("%s wants %s: %d there, %d available.", self, why.Count(int(want), "pod"),
		rs.Status.Replicas, rs.Status.AvailableReplicas)
	if a.Causes = unobserved(c, self, rs, rs.Status.ObservedGeneration); len(a.Causes) > 0 {
		return a, nil
	}
	a.Causes = restless
	if rs.Status.Replicas < want {
		a.Causes = append(a.Causes, refusedPods(ctx, c, self)...)
	}
	causes, err := notReady(ctx, c, pods)
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
	if s.ObservedGeneration >= set.Generation && want == 0 && s.Replicas == 0 {
		return scaledToZero(self, set), nil
	}
	a := why.Answer{Subject: self}
	updated := s.UpdateRevision == s.CurrentRevision || s.UpdatedReplicas == want
	pods := podsOf(ctx, c, set.Namespace, set.UID)
	restless, err := unstable(ctx, c, self, pods)
	if err != nil {
		return a, err
	}
	done := s.ObservedGeneration >= set.Generation && s.Replicas == want && s.ReadyReplicas == want && updated
	if done {
		if restless, err = orNotReady(ctx, c, restless, pods); err != nil {
			return a, err
		}
	}
	nameless := append(restless, namelessPods(ctx, c, self, set)...)
	if done {
		a.State = restlessly(fmt.Sprintf("%s has %s ready", self, all(int(want), "pod")), restless)
		a.Well = len(nameless) == 0
		a.Causes = nameless
		return a, nil
	}
	a.State = fmt.Sprintf("%s wants %s: %d there, %d ready, %d of the newest template.", self,
		why.Count(int(want), "pod"), s.Replicas, s.ReadyReplicas, s.UpdatedReplicas)
	if a.Causes = unobserved(c, self, set, s.ObservedGeneration); len(a.Causes) > 0 {
		return a, nil
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(ordinal(a.Name), ordinal(b.Name)) })
	causes, err := notReady(ctx, c, pods)
	if err != nil {
		return a, err
	}
	if len(causes) > 0 && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && s.Replicas < want {
		causes[0].Text += " The pods after it are not made before it is ready."
		causes[0].Evidence = append(causes[0].Evidence, why.See(self, ".spec.podManagementPolicy", "OrderedReady"))
	}
	if len(causes) > 0 && set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement && s.Replicas > want {
		causes = []why.Cause{shrinkWaits(self, set, pods, want, causes)}
	}
	held, err := heldNames(ctx, c, self, set, pods, want)
	if err != nil {
		return a, err
	}
	if len(held) == 0 {
		held = refusedPods(ctx, c, self)
	}
	a.Causes = append(held, oldBroken(set, pods, causes)...)
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			continue
		}
		o := why.ObjectOf("", "Pod", p)
		going := why.Cause{Code: "PodTerminating",
			Text: fmt.Sprintf("Pod %s is still terminating, and a new pod of that name can only be made when it has "+
				"gone.",
				p.Name), Evidence: []why.Evidence{why.SeeDeleted(o, p)}}
		if going.Because, err = c.Causes(ctx, o); err != nil {
			return a, err
		}
		a.Causes = append(a.Causes, going)
	}
	if len(a.Causes) == 0 && !updated {
		a.Causes = heldBack(self, set, pods)
	}
	a.Causes = append(a.Causes, nameless...)
	return a, nil
}

// shrinkWaits explains a StatefulSet that has more pods than it wants: in order, it deletes none while one of those
// that it would keep longer is not ready.
func shrinkWaits(self why.Object, set *appsv1.StatefulSet, pods []*corev1.Pod, want int32,
	because []why.Cause) why.Cause {
	first := int32(0)
	if o := set.Spec.Ordinals; o != nil {
		first = o.Start
	}
	var surplus []string
	for _, p := range pods {
		if int32(ordinal(p.Name)) >= first+want {
			surplus = append(surplus, p.Name)
		}
	}
	return why.Cause{Code: "ShrinkWaits",
		Text: fmt.Sprintf("It is to have %s, and still has %s: its podManagementPolicy is OrderedReady, so that it deletes "+
			"one pod after the other, and none while another is not ready.", why.Count(int(want), "pod"),
			why.And(surplus)),
		Evidence: []why.Evidence{why.See(self, ".spec.podManagementPolicy", string(appsv1.OrderedReadyPodManagement)),
			why.See(self, ".spec.replicas", fmt.Sprint(want))},
		Because: because}
}

// heldBack explains pods that keep an earlier template although all are ready: by the update strategy.
func heldBack(self why.Object, set *appsv1.StatefulSet, pods []*corev1.Pod) []why.Cause {
	old := ""
	for _, p := range pods {
		if p.Labels[appsv1.StatefulSetRevisionLabel] != set.Status.UpdateRevision {
			old = p.Name
			break
		}
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return []why.Cause{{Code: "OnDelete",
			Text: fmt.Sprintf("Its updateStrategy is OnDelete: a pod gets the newest template when somebody deletes "+
				"it, as %s.",
				old),
			Evidence: []why.Evidence{why.See(self, ".spec.updateStrategy.type", string(set.Spec.UpdateStrategy.Type))},
			Fixes: []why.Fix{{Text: "Delete its pods one by one.",
				Command: why.Command("kubectl delete pod %s%s", old, self.Flag())}}}}
	}
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.Partition != nil && *r.Partition > 0 {
		return []why.Cause{{Code: "Partition",
			Text: fmt.Sprintf("Only the pods from number %d on get the newest template: the update is partitioned.",
				*r.Partition),
			Evidence: []why.Evidence{why.See(self, ".spec.updateStrategy.rollingUpdate.partition",
				fmt.Sprint(*r.Partition))},
			Fixes: []why.Fix{{Text: "Remove the partition, and all pods are updated.", Command: why.Command(
				`kubectl patch statefulset %s%s --type=merge -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'`,
				set.Name, self.Flag())}}}}
	}
	return nil
}

// oldBroken adds to the causes that a pod of an earlier revision is not ready: the controller waits for it, and does
// not replace it (https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#forced-rollback).
func oldBroken(set *appsv1.StatefulSet, pods []*corev1.Pod, causes []why.Cause) []why.Cause {
	for _, p := range pods {
		if ready(p) || p.DeletionTimestamp != nil || len(causes) == 0 ||
			p.Labels[appsv1.StatefulSetRevisionLabel] == set.Status.UpdateRevision {
			continue
		}
		o := why.ObjectOf("", "Pod", p)
		return []why.Cause{{Code: "OldRevisionNotReady",
			Text: fmt.Sprintf("Pod %s was made from an earlier revision of the template and is not ready. The "+
				"controller waits until it is, and does not replace it.", p.Name),
			Evidence: []why.Evidence{why.See(o, ".metadata.labels."+appsv1.StatefulSetRevisionLabel,
				p.Labels[appsv1.StatefulSetRevisionLabel])},
			Fixes: []why.Fix{{Text: "Delete the pod; it is made again from the newest template.",
				Command: why.Command("kubectl delete pod %s%s", p.Name, o.Flag())}},
			Because: causes}}
	}
	return causes
}

// namelessPods explains a StatefulSet whose Service does not exist: its pods have no names in DNS.
func namelessPods(ctx context.Context, c *why.Case, self why.Object, set *appsv1.StatefulSet) []why.Cause {
	name := set.Spec.ServiceName
	if name == "" {
		return nil
	}
	s, known := why.Get[corev1.Service](ctx, c.World, set.Namespace, name)
	if s != nil || !known {
		return nil
	}
	return []why.Cause{{Code: "ServiceMissing",
		Text: fmt.Sprintf("The Service %s, which its serviceName says, does not exist: its pods have no names in "+
			"DNS, such as %s-0.%s.", name, set.Name, name),
		Evidence: []why.Evidence{why.Absent("Service", set.Namespace, name), why.See(self, ".spec.serviceName", name)},
		Fixes: []why.Fix{{Text: "Create a headless Service of that name. An existing StatefulSet's serviceName " +
			"cannot be changed.", Command: why.Command("kubectl create service clusterip %s --clusterip=None%s", name,
			self.Flag())}}}}
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
	pods := podsOf(ctx, c, set.Namespace, set.UID)
	restless, err := unstable(ctx, c, self, pods)
	if err != nil {
		return a, err
	}
	if s.ObservedGeneration >= set.Generation && s.NumberAvailable == want && s.UpdatedNumberScheduled == want {
		a.State = fmt.Sprintf("%s has its pod on all %s that are fit for it.", self, why.Count(int(want), "node"))
		a.Causes, a.Well = restless, len(restless) == 0
		return a, nil
	}
	a.State = fmt.Sprintf("%s wants a pod on %s: %d there, %d available.", self, why.Count(int(want), "node"),
		s.CurrentNumberScheduled, s.NumberAvailable)
	if a.Causes = unobserved(c, self, set, s.ObservedGeneration); len(a.Causes) > 0 {
		return a, nil
	}
	causes, err := notReady(ctx, c, pods)
	a.Causes = restless
	if s.CurrentNumberScheduled < want {
		a.Causes = append(a.Causes, refusedPods(ctx, c, self)...)
	}
	a.Causes = append(a.Causes, causes...)
	if t := set.Spec.UpdateStrategy.Type; len(a.Causes) == 0 && t == appsv1.OnDeleteDaemonSetStrategyType {
		a.Causes = []why.Cause{{Code: "OnDelete",
			Text: fmt.Sprintf("Its updateStrategy is OnDelete: a pod gets the newest template when somebody deletes it. Of "+
				"%s, %d are of an older one.", why.Count(int(s.CurrentNumberScheduled), "pod"),
				s.CurrentNumberScheduled-s.UpdatedNumberScheduled),
			Evidence: []why.Evidence{why.See(self, ".spec.updateStrategy.type", string(t))},
			Fixes:    []why.Fix{{Text: "Delete its pods one by one."}}}}
	}
	return a, err
}

// noNodes explains a DaemonSet that no node is fit for: by its node selector, or by the nodes' taints.
func noNodes(ctx context.Context, c *why.Case, self why.Object, spec *corev1.PodSpec) why.Cause {
	nodes, _ := why.List[corev1.Node](ctx, c.World, "", nil)
	var selected []*corev1.Node
	for _, n := range nodes {
		if labels.Set(spec.NodeSelector).AsSelector().Matches(labels.Set(n.Labels)) {
			selected = append(selected, n)
		}
	}
	selector := labels.Set(spec.NodeSelector).String()
	if len(selected) == 0 {
		return why.Cause{Code: "NodeSelector", Text: fmt.Sprintf("None of %s has the labels of its node selector: %s.",
			why.Count(len(nodes), "node"), selector),
			Evidence: []why.Evidence{why.See(self, ".spec.template.spec.nodeSelector", selector)},
			Fixes: []why.Fix{{Text: "Label a node.",
				Command: "kubectl label node NODE" + pairs(spec.NodeSelector)}}}
	}
	cause := why.Cause{Code: "NoNodeFits", Evidence: []why.Evidence{why.See(self, ".status.desiredNumberScheduled",
		"0")}}
	var taints []string
	for _, n := range selected {
		for i := range n.Spec.Taints {
			t := &n.Spec.Taints[i]
			if t.Effect == corev1.TaintEffectPreferNoSchedule || tolerated(spec.Tolerations, t) {
				continue
			}
			taints = append(taints, fmt.Sprintf("%s on %s", t.ToString(), n.Name))
			cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("", "Node", n), ".spec.taints", t.ToString()))
			if len(cause.Fixes) == 0 {
				cause.Fixes = []why.Fix{{Text: fmt.Sprintf("Let its pods tolerate the taint %s.", t.ToString()),
					Command: "kubectl edit " + self.Arg() + self.Flag()}}
			}
		}
	}
	if len(taints) == 0 {
		cause.Text = fmt.Sprintf("None of %s matches the node affinity of its pods.", why.Count(len(selected), "node"))
		return cause
	}
	cause.Code = "Taints"
	cause.Text = fmt.Sprintf("Its pods do not tolerate the taints of the nodes that it selects: %s.", why.And(taints))
	return cause
}

// tolerated reports whether one of the tolerations of a DaemonSet's pods tolerates a taint. Those that the controller
// adds to all of them tolerate the taints of a node's own condition.
func tolerated(tolerations []corev1.Toleration, t *corev1.Taint) bool {
	if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
		return true
	}
	return slices.ContainsFunc(tolerations, func(o corev1.Toleration) bool {
		return (o.Effect == "" || o.Effect == t.Effect) && (o.Key == "" && o.Operator == corev1.TolerationOpExists ||
			o.Key == t.Key && (o.Operator == corev1.TolerationOpExists || o.Value == t.Value))
	})
}

// pairs are labels as arguments of a command.
func pairs(labels map[string]string) (words why.CommandLine) {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		words += " " + why.Word(k+"="+labels[k])
	}
	return words
}
