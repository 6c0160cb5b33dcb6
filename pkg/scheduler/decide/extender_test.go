package decide

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
)

// extender refuses nodes, likes one, and counts how often it is asked.
type extender struct {
	concerns  bool
	refuses   map[string]string // by node, the reason; "" is no word about it
	likes     string
	err       error
	ignorable bool
	asked     int
}

func (*extender) Name() string                   { return "http://x" }
func (e *extender) Concerns(*model.PodInfo) bool { return e.concerns }
func (e *extender) Ignorable() bool              { return e.ignorable }
func (*extender) Preempts() bool                 { return false }
func (*extender) Binds() bool                    { return false }
func (*extender) SparePods(context.Context, *model.PodInfo, map[string]framework.Victims) (map[string]framework.Victims,
	error) {
	return nil, errors.New("not asked for")
}
func (*extender) Bind(context.Context, *model.PodInfo, string) error {
	return errors.New("not asked for")
}

func (e *extender) FilterNodes(_ context.Context, _ *model.PodInfo, nodes []*model.NodeInfo) (kept []*model.NodeInfo,
	refused map[*model.NodeInfo]*framework.Status, err error) {
	e.asked++
	refused = map[*model.NodeInfo]*framework.Status{}
	for _, n := range nodes {
		switch why, no := e.refuses[n.Name()]; {
		case !no:
			kept = append(kept, n)
		case why != "":
			refused[n] = framework.NewStatus(framework.Unschedulable, why)
		}
	}
	return kept, refused, e.err
}

func (e *extender) ScoreNodes(_ context.Context, _ *model.PodInfo, nodes []*model.NodeInfo, totals []int64) error {
	for i, n := range nodes {
		if n.Name() == e.likes {
			totals[i] += 1000
		}
	}
	return e.err
}

// TestExtendersAreAskedAfterThePlugins: about the pods that concern them, all nodes at once, and only of the nodes that
// are left.
func TestExtendersAreAskedAfterThePlugins(t *testing.T) {
	t.Parallel()
	decide := func(extenders ...framework.Extender) (Result, error) {
		p, err := profile.New("s", plugins.Default(plugins.Config{}), extenders...)
		if err != nil {
			t.Fatal(err)
		}
		var nodes []*model.NodeInfo
		for _, name := range []string{"a", "b", "c", "cordoned"} {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.NodeSpec{Unschedulable: name == "cordoned"}}
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
			nodes = append(nodes, model.NewNodeInfo(n))
		}
		pod := model.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}})
		return NewIncremental(model.NewNominator(), func(int) int {
			return 0
		}).Decide(t.Context(), p, framework.NewCycleState(), pod, model.NewSnapshot(nodes...))
	}
	broken := errors.New("gone")
	for _, c := range []struct {
		name      string
		extenders []framework.Extender
		best      []string
		err       string
	}{
		{"one that has no interest",
			[]framework.Extender{&extender{refuses: map[string]string{"a": "no"}, err: broken}},
			[]string{"a", "b", "c"}, ""},
		{"filters", []framework.Extender{&extender{concerns: true, refuses: map[string]string{"a": "no", "b": ""}}},
			[]string{"c"}, ""},
		{"scores", []framework.Extender{&extender{concerns: true, likes: "b"}}, []string{"b"}, ""},
		{"one after the other", []framework.Extender{&extender{concerns: true, refuses: map[string]string{"a": "no"}},
			&extender{concerns: true, refuses: map[string]string{"b": "no"}}}, []string{"c"}, ""},
		{"gone", []framework.Extender{&extender{concerns: true, err: broken}}, nil, "gone"},
		{"gone and ignorable", []framework.Extender{
			&extender{concerns: true, err: broken, ignorable: true, refuses: map[string]string{"a": "no"}}},
			[]string{"a", "b", "c"}, ""},
		{"nothing left", []framework.Extender{
			&extender{concerns: true, refuses: map[string]string{"a": "busy", "b": "busy", "c": ""}}}, nil,
			"0/4 nodes are available: 1 node(s) were unschedulable, 2 busy."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := decide(c.extenders...)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				var fit *framework.FitError
				if errors.As(err, &fit) && !fit.Diagnosis.Plugins[framework.ExtenderName] {
					t.Errorf("nobody blames the extender: %v", fit.Diagnosis.Plugins)
				}
				return
			}
			if err != nil || len(c.best) > 1 && r.Feasible != len(c.best) || len(c.best) == 1 && r.Node != c.best[0] {
				t.Errorf("%+v: %v, want one of %v", r, err, c.best)
			}
			if !slices.Contains(c.best, r.Node) {
				t.Errorf("node %s, want one of %v", r.Node, c.best)
			}
		})
	}
}

// TestAPluginThatOnlyScoresRefusesNothing: kept counts answer as the plug-in does where it is not called to filter.
func TestAPluginThatOnlyScoresRefusesNothing(t *testing.T) {
	t.Parallel()
	list := plugins.Default(plugins.Config{Namespaces: services{}})
	for i := range list {
		list[i].Off = map[profile.Point]bool{profile.FilterPoint: true, profile.PreFilterPoint: true}
	}
	p, err := profile.New("s", list)
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
	apart := model.NewPodInfo(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u",
			Labels: map[string]string{"app": "x"}},
			Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{
						MatchLabels: map[string]string{"app": "x"}}}}}}}})
	s := model.NewSnapshot(model.NewNodeInfo(n, apart),
		model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: n.Labels}}))
	nominator, first := model.NewNominator(), func(int) int { return 0 }
	want, err := (&Plain{Nominator: nominator, Random: first}).Decide(t.Context(), p, framework.NewCycleState(), apart,
		s)
	if err != nil || want.Feasible != 2 {
		t.Fatalf("%+v: %v", want, err)
	}
	got, err := NewIncremental(nominator, first).Decide(t.Context(), p, framework.NewCycleState(), apart, s)
	if err != nil || got.Feasible != want.Feasible || got.Score != want.Score {
		t.Errorf("%+v: %v, plainly %+v", got, err, want)
	}
}
