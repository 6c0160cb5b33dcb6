package daemonset

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.NodeSpec{Taints: taints}}
}

func set(change func(*corev1.PodSpec)) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", UID: "d-uid", Generation: 3}}
	ds.Spec.Template.Labels = map[string]string{"app": "d"}
	if change != nil {
		change(&ds.Spec.Template.Spec)
	}
	return ds
}

func TestPlace(t *testing.T) {
	t.Parallel()
	ssd := map[string]string{"disk": "ssd"}
	affinity := func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}},
			}}}
	}
	here, gone, kept := placement{run: true, stay: true}, placement{}, placement{stay: true}
	for name, c := range map[string]struct {
		spec func(*corev1.PodSpec)
		node *corev1.Node
		want placement
	}{
		"any node":     {nil, node("n", nil), here},
		"its node":     {func(s *corev1.PodSpec) { s.NodeName = "n" }, node("n", nil), here},
		"another node": {func(s *corev1.PodSpec) { s.NodeName = "m" }, node("n", nil), gone},
		"selected":     {func(s *corev1.PodSpec) { s.NodeSelector = ssd }, node("n", ssd), here},
		"not selected": {func(s *corev1.PodSpec) { s.NodeSelector = ssd }, node("n", nil), gone},
		"affinity":     {affinity, node("n", ssd), here},
		"no affinity":  {affinity, node("n", map[string]string{"disk": "hdd"}), gone},
		"tainted NoSchedule": {nil, node("n", nil, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}),
			kept},
		"tainted NoExecute": {nil, node("n", nil, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoExecute}),
			gone},
		"tainted both": {nil,
			node("n", nil, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoExecute},
				corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}), gone},
		"tainted PreferNoSchedule": {nil,
			node("n", nil, corev1.Taint{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}), here},
		"tolerated": {func(s *corev1.PodSpec) {
			s.Tolerations = []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}}
		}, node("n", nil, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule}), here},
		"not ready": {nil,
			node("n", nil, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}), here},
		"cordoned": {nil,
			node("n", nil, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}),
			here},
		"without network": {nil,
			node("n", nil, corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule}),
			kept},
		"without network, on host": {func(s *corev1.PodSpec) {
			s.HostNetwork = true
		}, node("n", nil, corev1.Taint{Key: corev1.TaintNodeNetworkUnavailable, Effect: corev1.TaintEffectNoSchedule}),
			here},
		"not ready, but NoSchedule": {nil,
			node("n", nil, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}), kept},
		"selected, tainted NoExecute": {func(s *corev1.PodSpec) {
			s.NodeSelector = ssd
		}, node("n", ssd, corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoExecute}), gone},
	} {
		if got := placerOf(set(c.spec)).place(c.node); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestPodFor(t *testing.T) {
	t.Parallel()
	ds := set(func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: new(int64(60))}}
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 2)},
		}}
	})
	ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "4"}
	p := podFor(ds, "abc", "n7")
	if nodeOf(p) != "n7" || p.Spec.NodeName != "" ||
		len(p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) != 1 ||
		len(p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("affinity: %+v", p.Spec.Affinity.NodeAffinity)
	}
	for _, o := range p.Spec.Tolerations {
		if o.TolerationSeconds != nil {
			t.Errorf("toleration of %s for %d s, want for ever: daemons stay on nodes in trouble", o.Key,
				*o.TolerationSeconds)
		}
	}
	if len(p.Spec.Tolerations) != 6 {
		t.Errorf("tolerations: %+v", p.Spec.Tolerations)
	}
	if p.GenerateName != "d-" || p.Labels["app"] != "d" || revisionOf(p) != "abc" ||
		p.Labels["pod-template-generation"] != "4" || !*p.OwnerReferences[0].Controller {
		t.Errorf("metadata: %+v", p.ObjectMeta)
	}
	required := ds.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(ds.Spec.Template.Spec.Tolerations) != 1 || ds.Spec.Template.Spec.Tolerations[0].TolerationSeconds == nil ||
		len(required.NodeSelectorTerms) != 2 || len(ds.Spec.Template.Labels) != 1 {
		t.Error("the template was changed")
	}
}
