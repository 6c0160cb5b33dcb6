package dynamicresources

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// slice is what the driver of a class has on a node.
func slice(class, node string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: class + node},
		Spec: resourcev1.ResourceSliceSpec{Driver: class, NodeName: &node,
			Pool:    resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "d"}}}}
}

// claim asks for one device of each list, of the first class of it that a node has.
func claim(lists ...[]string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c"}}
	for i, classes := range lists {
		r := resourcev1.DeviceRequest{Name: string(rune('a' + i))}
		for _, class := range classes {
			r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{Name: class,
				DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1})
		}
		if len(classes) == 1 {
			r.FirstAvailable, r.Exactly = nil, &resourcev1.ExactDeviceRequest{DeviceClassName: classes[0],
				AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, r)
	}
	return c
}

// TestScore: nodes with better alternatives for a pod's claims score more (KEP-4816); pods without alternatives are not
// scored. The scores are those that a kube-scheduler v1.37.2 logs, without the weight.
func TestScore(t *testing.T) {
	t.Parallel()
	sizes := []string{"big", "mid", "small"}
	for name, c := range map[string]struct {
		claim *resourcev1.ResourceClaim
		has   [][]string // by node, the classes
		want  []int64    // nil: not scored
	}{
		"no alternatives": {claim([]string{"big"}), [][]string{{"big"}, {"big"}}, nil},
		"three":           {claim(sizes), [][]string{{"mid"}, {"small"}, {"big"}}, []int64{87, 75, 100}},
		"all alike":       {claim(sizes), [][]string{{"small"}, {"small"}}, []int64{100, 100}},
		"both":            {claim(sizes), [][]string{{"small", "big"}, {"mid"}}, []int64{100, 87}},
		"another list": {claim([]string{"net", "small"}, sizes),
			[][]string{{"net", "mid"}, {"net", "small"}, {"net", "big"}}, []int64{93, 87, 100}},
		"one without": {claim([]string{"net"}, sizes),
			[][]string{{"net", "mid"}, {"net", "small"}, {"net", "big"}}, []int64{87, 75, 100}},
	} {
		known := devices.New(nil, time.Now)
		for _, class := range []string{"big", "mid", "small", "net"} {
			known.ClassChanged(nil, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class},
				Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
					{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + class + `"`}}}}})
		}
		known.ClaimChanged(nil, c.claim)
		pod := model.NewPodInfo(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: types.UID("p")},
			Spec: corev1.PodSpec{
				ResourceClaims: []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: new("c")}}}})
		plugin, state := &Plugin{FilterTimeout: time.Minute, Devices: known}, framework.NewCycleState()
		if _, st := plugin.PreFilter(state, pod, nil); !st.IsSuccess() {
			t.Fatalf("%s: %v", name, st)
		}
		if st := plugin.PreScore(state, pod, nil, nil); st.IsSkip() != (c.want == nil) {
			t.Errorf("%s: PreScore %+v", name, st)
		}
		var scores []int64
		for i, has := range c.has {
			node := string(rune('k' + i))
			for _, class := range has {
				known.SliceChanged(nil, slice(class, node))
			}
			info := &model.NodeInfo{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}
			scores = append(scores, plugin.Score(state, pod, info))
		}
		if plugin.NormalizeScore(state, pod, nil, scores); c.want != nil && !slices.Equal(scores, c.want) {
			t.Errorf("%s: %v, want %v", name, scores, c.want)
		}
	}
}
