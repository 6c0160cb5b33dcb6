package preemption

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
)

// BenchmarkCandidates: the choice of victims for a pod that could take the place of any pod on any node, ten on each;
// for the first pod of its kind, and for one more.
func BenchmarkCandidates(b *testing.B) {
	prof, err := profile.New("s", plugins.Default(plugins.Config{}))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		first bool
		nodes int
	}{{"first", true, 1000}, {"again", false, 1000}, {"first", true, 5000}, {"again", false, 5000}} {
		b.Run(fmt.Sprint(c.name, "/", c.nodes), func(b *testing.B) {
			p, _ := plugin(b)
			p.profile = prof.Handle(nil)
			var list []*model.NodeInfo
			for i := range c.nodes {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i),
					Labels: map[string]string{corev1.LabelHostname: fmt.Sprint("n", i)}}}
				n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("10"),
					"memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
				info := model.NewNodeInfo(n)
				info.Version = 1
				for k := range 10 {
					info.AddPod(pod(fmt.Sprint(i, "-", k), int32(k%3), "1", k))
				}
				list = append(list, info)
			}
			s := model.NewSnapshot(list...)
			full := &framework.Status{Code: framework.Unschedulable, Plugin: "NodeResourcesFit",
				Reasons: []string{"Insufficient cpu"}}
			i := 0
			for b.Loop() {
				if i++; c.first {
					p.memory = memory{}
				}
				preemptor := pod(fmt.Sprint("preemptor", i), 1000, "1", -1)
				d := framework.NewDiagnosis(s)
				for n := range s.All {
					d.Reject(n, full)
				}
				state := framework.NewCycleState()
				prof.RunPreFilter(state, preemptor, s)
				if out, _, st := p.candidates(state, preemptor, d); len(out) == 0 || !st.IsSuccess() {
					b.Fatal(st)
				}
			}
		})
	}
}
