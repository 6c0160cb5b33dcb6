package preemption

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/volumes"
)

// budgeted has disruption budgets.
type budgeted struct {
	list []*policyv1.PodDisruptionBudget
}

func (b *budgeted) Budgets() []*policyv1.PodDisruptionBudget { return b.list }

type oneTeam struct{}

func (oneTeam) NamespaceLabels(string) labels.Set { return nil }
func (oneTeam) Epoch() int64                      { return 0 }

// slow is a plug-in that declares nothing of its results: with it nothing can be kept.
type slow struct{}

func (slow) Name() string { return "slow" }
func (slow) Filter(*framework.CycleState, *model.PodInfo, *model.NodeInfo) *framework.Status {
	return nil
}

// TestWhatIsKeptOfEarlierPodsHolds runs random histories: with what was found for earlier pods the same victims are
// chosen as without.
func TestWhatIsKeptOfEarlierPodsHolds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3))
			one := func(list ...string) string { return list[r.IntN(len(list))] }
			list := plugins.Default(plugins.Config{Namespaces: oneTeam{}, Volumes: volumes.New(nil)})
			prof, err := profile.New("s", list)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := profile.New("s", append(list, profile.Enabled{Plugin: slow{}}))
			if err != nil {
				t.Fatal(err)
			}
			old, _ := plugin(t)
			world := &budgeted{}
			old.Budgets, old.profile, old.MinNodes = world, prof.Handle(nil), 4
			known, snapshot := cache.New(), model.NewSnapshot()
			var nodes []string
			var pods []*model.PodInfo
			random := func(name string, priority int32) *corev1.Pod {
				p := pod(name, priority, one("1", "2"), r.IntN(5)-1).Pod
				p.Labels = map[string]string{"app": one("web", "db")}
				if r.IntN(10) == 0 {
					p.Spec.Affinity = &corev1.Affinity{
						PodAntiAffinity: &corev1.PodAntiAffinity{
							RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
								TopologyKey: corev1.LabelHostname,
								LabelSelector: &metav1.LabelSelector{
									MatchLabels: map[string]string{"app": one("web", "db")}}}}}}
				}
				return p
			}
			found, again := 0, 0
			for step := range 600 {
				switch k := r.IntN(20); {
				case k < 2 || len(nodes) < 3:
					name := fmt.Sprint("n", len(nodes))
					nodes = append(nodes, name)
					n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
						Labels: map[string]string{corev1.LabelHostname: name}}}
					n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(one("3", "4")),
						"pods": resource.MustParse("20"), "memory": resource.MustParse("8Gi")}
					if len(nodes) <= 20 {
						known.SetNode(n)
					}
				case k < 8:
					p := random(fmt.Sprint("p", step), int32(r.IntN(4)))
					p.Spec.NodeName = one(nodes...)
					pods = append(pods, model.NewPodInfo(p))
					known.Add(pods[len(pods)-1])
				case k < 10 && len(pods) > 0:
					i := r.IntN(len(pods))
					known.Remove(pods[i].Pod.UID)
					pods = append(pods[:i], pods[i+1:]...)
				case k < 11 && len(pods) > 0:
					i := r.IntN(len(pods))
					p := pods[i].Pod.DeepCopy()
					p.Status.StartTime = new(metav1.NewTime(start.Add(time.Duration(r.IntN(9)) * time.Minute)))
					pods[i] = model.NewPodInfo(p)
					known.Add(pods[i])
				case k < 12:
					old.Nominator.Set(model.NewPodInfo(random(fmt.Sprint("w", r.IntN(3)), int32(r.IntN(6)))),
						one(append(nodes, "")...))
				case k < 13:
					world.list = []*policyv1.PodDisruptionBudget{
						{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: "b", ResourceVersion: fmt.Sprint(step)},
							Spec: policyv1.PodDisruptionBudgetSpec{
								Selector: &metav1.LabelSelector{
									MatchLabels: map[string]string{"app": one("web", "db")}}},
							Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(r.IntN(2))}}}
				}
				known.Refresh(snapshot)
				preemptor := model.NewPodInfo(random(fmt.Sprint("new", step), int32(3+r.IntN(3))))
				d, state := framework.NewDiagnosis(snapshot), framework.NewCycleState()
				if _, _, st := prof.RunPreFilter(state, preemptor, snapshot); !st.IsSuccess() {
					t.Fatal(st)
				}
				for n := range snapshot.All {
					if st := prof.RunFilter(state, preemptor, n); !st.IsSuccess() {
						d.Reject(n, st)
					}
				}
				fresh, _ := plugin(t)
				fresh.Budgets, fresh.profile, fresh.MinNodes, fresh.Nominator = world, plain.Handle(nil), 4,
					old.Nominator
				show := func(p trial) string {
					list, refusals, st := p.candidates(state.Clone(), preemptor, d)
					if !st.IsSuccess() {
						t.Fatal(st)
					}
					var out strings.Builder
					for _, c := range list {
						fmt.Fprintf(&out, "%s: %s, %d broken\n", c.node, names(c.victims), c.violations)
					}
					found += len(list)
					return out.String() + refusals.Message()
				}
				want := show(fresh)
				if got := show(old); got != want {
					t.Fatalf("step %d\n got %s\nwant %s", step, got, want)
				}
				for _, tr := range old.memory.kinds {
					again += len(*tr)
				}
			}
			if found < 500 || again < 500 {
				t.Errorf("too little to mean much: %d candidates, %d findings kept", found, again)
			}
		})
	}
}
