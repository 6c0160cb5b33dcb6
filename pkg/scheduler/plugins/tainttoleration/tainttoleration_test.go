package tainttoleration

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func node(taints ...corev1.Taint) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{Spec: corev1.NodeSpec{Taints: taints}})
}

func pod(tolerations ...corev1.Toleration) *model.PodInfo {
	return model.NewPodInfo(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations}})
}

const (
	noSchedule = corev1.TaintEffectNoSchedule
	prefer     = corev1.TaintEffectPreferNoSchedule
	noExecute  = corev1.TaintEffectNoExecute
)

// TestFilter: which toleration covers which taint (Kubernetes documentation, "Taints and Tolerations").
func TestFilter(t *testing.T) {
	t.Parallel()
	taint := func(e corev1.TaintEffect) corev1.Taint { return corev1.Taint{Key: "k", Value: "v", Effect: e} }
	exists, equal := corev1.TolerationOpExists, corev1.TolerationOpEqual
	for _, c := range []struct {
		name string
		pod  *model.PodInfo
		node *model.NodeInfo
		fits bool
	}{
		{"no taints", pod(), node(), true},
		{"NoSchedule", pod(), node(taint(noSchedule)), false},
		{"NoExecute", pod(), node(taint(noExecute)), false},
		{"PreferNoSchedule only prefers", pod(), node(taint(prefer)), true},
		{"Equal", pod(corev1.Toleration{Key: "k", Operator: equal, Value: "v", Effect: noSchedule}),
			node(taint(noSchedule)), true},
		{"no operator is Equal", pod(corev1.Toleration{Key: "k", Value: "v", Effect: noSchedule}),
			node(taint(noSchedule)), true},
		{"Equal, another value", pod(corev1.Toleration{Key: "k", Value: "w", Effect: noSchedule}),
			node(taint(noSchedule)), false},
		{"Equal, no value", pod(corev1.Toleration{Key: "k", Effect: noSchedule}), node(taint(noSchedule)), false},
		{"Exists", pod(corev1.Toleration{Key: "k", Operator: exists, Effect: noSchedule}), node(taint(noSchedule)),
			true},
		{"another key", pod(corev1.Toleration{Key: "l", Operator: exists}), node(taint(noSchedule)), false},
		{"another effect", pod(corev1.Toleration{Key: "k", Operator: exists, Effect: noExecute}),
			node(taint(noSchedule)), false},
		{"no effect is every effect", pod(corev1.Toleration{Key: "k", Operator: exists}),
			node(taint(noSchedule), taint(noExecute)), true},
		{"Exists without a key is everything", pod(corev1.Toleration{Operator: exists}),
			node(taint(noSchedule), taint(noExecute)), true},
		{"Exists without a key, of one effect", pod(corev1.Toleration{Operator: exists, Effect: noExecute}),
			node(taint(noExecute), taint(noSchedule)), false},
		{"every taint must be tolerated", pod(corev1.Toleration{Key: "k", Operator: exists}),
			node(taint(noSchedule), corev1.Taint{Key: "l", Effect: noSchedule}), false},
	} {
		st := Plugin{}.Filter(nil, c.pod, c.node)
		if st.IsSuccess() != c.fits {
			t.Errorf("%s: %+v, want fits %v", c.name, st, c.fits)
		}
		if !c.fits && st.Code != framework.UnschedulableAndUnresolvable {
			t.Errorf("%s: code %d: preempting pods takes no taint away", c.name, st.Code)
		}
	}
	st := Plugin{}.Filter(nil, pod(),
		node(taint(prefer), corev1.Taint{Key: "a", Effect: noSchedule}, taint(noSchedule)))
	if st.Message() != "node(s) had untolerated taint(s)" || st.Detail != "{a: }" {
		t.Errorf("reason %q, detail %q: want the first taint that stands in the way", st.Message(), st.Detail)
	}
}

func TestScoreCountsWhatIsNotPreferred(t *testing.T) {
	t.Parallel()
	soft := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: prefer} }
	nodes := []*model.NodeInfo{
		node(), node(soft("a")), node(soft("a"), soft("b")), node(soft("a"), soft("b"), soft("c")),
		node(corev1.Taint{Key: "a", Effect: noSchedule}),
	}
	p := pod(corev1.Toleration{Key: "c", Operator: corev1.TolerationOpExists, Effect: prefer},
		corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists, Effect: noSchedule})
	var scores []int64
	for _, n := range nodes {
		scores = append(scores, Plugin{}.Score(nil, p, n))
	}
	if want := []int64{0, 1, 2, 2, 0}; !slices.Equal(scores, want) {
		t.Errorf("scores %v, want %v", scores, want)
	}
	Plugin{}.NormalizeScore(nil, p, nodes, scores)
	if want := []int64{100, 50, 0, 0, 100}; !slices.Equal(scores, want) {
		t.Errorf("normalized %v, want %v", scores, want)
	}
	alike := []int64{0, 0}
	Plugin{}.NormalizeScore(nil, p, nil, alike)
	if want := []int64{100, 100}; !slices.Equal(alike, want) {
		t.Errorf("without such taints %v, want %v", alike, want)
	}
}

func TestWakes(t *testing.T) {
	t.Parallel()
	tainted := node(corev1.Taint{Key: "k", Effect: noSchedule}).Node
	for _, c := range []struct {
		name string
		e    clusterevent.Event
		want bool
	}{
		{"a node without taints comes",
			clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add, New: node().Node}, true},
		{"a tainted node comes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add, New: tainted},
			false},
		{"the taint goes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateTaints, Old: tainted,
			New: node().Node}, true},
		{"labels change", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateLabels,
			New: node().Node}, false},
		{"the pod gets a toleration",
			clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateTolerations}, true},
		{"the pod gets a label", clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateLabels},
			false},
	} {
		got := slices.ContainsFunc(Plugin{}.EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(pod(), c.e)
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
