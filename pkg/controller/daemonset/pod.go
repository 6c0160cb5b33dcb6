package daemonset

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/podtemplate"
)

// templateGenerationLabel says on a pod what the annotation deprecated.daemonset.template.generation said on its
// DaemonSet.
const templateGenerationLabel = "pod-template-generation"

// podFor makes the pod of the revision hash for a node. It leaves spec.nodeName empty: the scheduler binds the pod, so
// that resources, ports and priority are judged as for any other pod. The affinity lets only this node match.
func podFor(ds *appsv1.DaemonSet, hash, node string) *corev1.Pod {
	p := podtemplate.PodOf(ds, kind(), &ds.Spec.Template)
	p.Spec.Tolerations = tolerations(&p.Spec)
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
	if n, ok := ds.Annotations[appsv1.DeprecatedTemplateGeneration]; ok {
		p.Labels[templateGenerationLabel] = n
	}
	pin(&p.Spec, node)
	return p
}

// pin replaces the required node affinity by one that names the node. The original terms are lost on purpose: place has
// matched them already, and terms are ORed, so the node would have to be added to each of them. Preferred terms stay.
func pin(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}
}

// nodeOf is the node that a pod is on, or that its affinity names while it is not scheduled; "" is none.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" || p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil ||
		p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return p.Spec.NodeName
	}
	for _, term := range p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// byNode files the pods under their nodes, the one to keep first: scheduled before not, older before younger. A pod at
// its end that is being deleted is left out: it only waits for somebody's finalizer, and its node need not. A pod that
// no node can be read from belongs to no list, and no decision here touches it.
func byNode(pods []*corev1.Pod) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, p := range pods {
		if n := nodeOf(p); n != "" && !(controller.PodTerminal(p) && p.DeletionTimestamp != nil) {
			out[n] = append(out[n], p)
		}
	}
	for _, on := range out {
		slices.SortFunc(on, func(a, b *corev1.Pod) int {
			if (a.Spec.NodeName == "") != (b.Spec.NodeName == "") {
				if a.Spec.NodeName != "" {
					return -1
				}
				return 1
			}
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		})
	}
	return out
}
