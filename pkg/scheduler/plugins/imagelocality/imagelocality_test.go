package imagelocality

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func node(name string, images map[string]int64) *model.NodeInfo {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for image, size := range images {
		n.Status.Images = append(n.Status.Images,
			corev1.ContainerImage{Names: []string{image, image + "-alias"}, SizeBytes: size})
	}
	return model.NewNodeInfo(n)
}

func pod(init []string, images ...string) *model.PodInfo {
	p := &corev1.Pod{}
	for _, i := range init {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Image: i})
	}
	for _, i := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Image: i})
	}
	return model.NewPodInfo(p)
}

func withVolumes(p *model.PodInfo, images ...string) *model.PodInfo {
	for _, i := range images {
		p.Pod.Spec.Volumes = append(p.Pod.Spec.Volumes,
			corev1.Volume{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: i}}})
	}
	return p
}

func TestScore(t *testing.T) {
	t.Parallel()
	digest := "r.example/app@sha256:0123"
	n1 := node("n1", map[string]int64{"smaller:1": 1000 * mb, "big:1": 511*mb + mb/2, "web:latest": 1000 * mb,
		"small:1": 22 * mb, digest: 511*mb + mb/2, "r.example:5000/app:latest": 2000 * mb})
	n2 := node("n2", map[string]int64{"smaller:1": 10 * mb, "web:latest": 1000 * mb, "huge:1": 40_000 * mb})
	s := model.NewSnapshot(n1, n2)
	for _, c := range []struct {
		name string
		pod  *model.PodInfo
		want [2]int64
	}{
		// One of two nodes has it, so half of the size counts: 255.75 MB of (23, 1000] MB.
		{"half of the nodes have it", pod(nil, "big:1"), [2]int64{23, 0}},
		{"smaller on one of the nodes", pod(nil, "smaller:1"), [2]int64{100, 100}},
		{"by digest", pod(nil, digest), [2]int64{23, 0}},
		{"another name of it", pod(nil, "big:1-alias"), [2]int64{23, 0}},
		{"no tag is latest", pod(nil, "web"), [2]int64{100, 100}},
		{"a port is no tag", pod(nil, "r.example:5000/app"), [2]int64{100, 0}},
		{"more than the most", pod(nil, "huge:1"), [2]int64{0, 100}},
		{"small images count nothing", pod(nil, "small:1"), [2]int64{0, 0}},
		// 1000 MB of (23, 2000] MB.
		{"containers add up", pod(nil, "web", "small:2"), [2]int64{49, 49}},
		{"init containers too", pod([]string{"web"}, "small:2"), [2]int64{49, 49}},
		{"volumes like containers", withVolumes(pod(nil, "small:2"), "web"), [2]int64{49, 49}},
		{"volumes of nodes and others", withVolumes(pod(nil, "web"), "unknown:1", "web"), [2]int64{66, 66}},
	} {
		state := framework.NewCycleState()
		if st := (Plugin{}).PreScore(state, c.pod, s, nil); !st.IsSuccess() {
			t.Errorf("%s: %+v", c.name, st)
			continue
		}
		if got := [2]int64{Plugin{}.Score(state, c.pod, n1), Plugin{}.Score(state, c.pod, n2)}; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if st := (Plugin{}).PreScore(framework.NewCycleState(), pod(nil, "unknown:1", "web:2"), s, nil); !st.IsSkip() {
		t.Errorf("images that no node has: %+v, want Skip", st)
	}
}
