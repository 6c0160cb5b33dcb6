package decide

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
)

// services selects each pod by its label app, so that all are spread by default.
type services struct{}

func (services) SelectorFor(pod *corev1.Pod) labels.Selector {
	return labels.SelectorFromSet(labels.Set{"app": pod.Labels["app"]})
}
func (services) NamespaceLabels(string) labels.Set { return nil }
func (services) Epoch() int64                      { return 0 }

func benchPod(name string, l map[string]string, apart string) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: l}}
	p.Spec.Containers = []corev1.Container{
		{Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": resource.MustParse("10m"), "memory": resource.MustParse("10Mi")}}}}
	if apart != "" {
		p.Spec.Affinity = &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
					TopologyKey:   corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": apart}}}}}}
	}
	return model.NewPodInfo(p)
}

// BenchmarkDecide: one decision with ten pods on each node, one of which keeps pods of another app away. What a
// decision costs must depend neither on labels that no term asks for nor on pods that are nominated elsewhere.
func BenchmarkDecide(b *testing.B) {
	for _, nodes := range []int{1000, 5000} {
		var list []*model.NodeInfo
		for i := range nodes {
			name := fmt.Sprint("n", i)
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: fmt.Sprint(i % 3)}}}
			n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("32"),
				"memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
			info := model.NewNodeInfo(n,
				benchPod(fmt.Sprint(i, "-lonely"), map[string]string{"app": "lonely"}, "other"))
			for k := range 9 {
				info.AddPod(benchPod(fmt.Sprint(i, "-", k), map[string]string{"app": "web", "n": fmt.Sprint(k)}, ""))
			}
			info.Generation = int64(i + 1)
			list = append(list, info)
		}
		s := model.NewSnapshot(list...)
		s.Generation = int64(nodes)
		p, err := profile.New("s", plugins.Default(plugins.Config{Workloads: services{}, Namespaces: services{}}))
		if err != nil {
			b.Fatal(err)
		}
		alike := func(int) map[string]string { return map[string]string{"app": "web"} }
		own := func(i int) map[string]string {
			return map[string]string{"app": "web", "statefulset.kubernetes.io/pod-name": fmt.Sprint("web-", i),
				"apps.kubernetes.io/pod-index": fmt.Sprint(i)}
		}
		nominator := model.NewNominator()
		nominator.Set(benchPod("waiting", map[string]string{"app": "x"}, ""), "n1")
		for _, c := range []struct {
			name      string
			nominator *model.Nominator
			labels    func(i int) map[string]string
			apart     string
			change    func(i int, p *corev1.Pod)
		}{
			{"Plain", model.NewNominator(), alike, "", nil},
			{"alike", model.NewNominator(), alike, "", nil},
			{"StatefulSet", model.NewNominator(), own, "", nil},
			{"StatefulSetApart", model.NewNominator(), own, "api", nil},
			{"OneNominated", nominator, alike, "", nil},
			{"Pinned", model.NewNominator(), alike, "", func(i int, p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{
					NodeAffinity: &corev1.NodeAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
							NodeSelectorTerms: []corev1.NodeSelectorTerm{{
								MatchFields: []corev1.NodeSelectorRequirement{
									{Key: "metadata.name", Operator: "In",
										Values: []string{fmt.Sprint("n", i%nodes)}}}}}}}}
			}},
			{"FitsNowhere", model.NewNominator(), alike, "", func(_ int, p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
					{MaxSkew: 1, TopologyKey: "example.com/rack",
						WhenUnsatisfiable: corev1.DoNotSchedule,
						LabelSelector:     &metav1.LabelSelector{MatchLabels: p.Labels}}}
			}},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, nodes), func(b *testing.B) {
				d, i := NewIncremental(c.nominator, func(int) int { return 0 }), 0
				decide := d.Decide
				if c.name == "Plain" {
					decide = d.plain.Decide
				}
				one := func() {
					i++
					pod := benchPod(fmt.Sprint("new", i), c.labels(i), c.apart)
					if c.change != nil {
						c.change(i, pod.Pod)
						pod = model.NewPodInfo(pod.Pod)
					}
					if _, err := decide(b.Context(), p, framework.NewCycleState(), pod,
						s); (err != nil) != (c.name == "FitsNowhere") {
						b.Fatal(err)
					}
				}
				one() // the first of a class looks at all nodes
				for b.Loop() {
					one()
				}
			})
		}
	}
}
