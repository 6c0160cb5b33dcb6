package noderesources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
)

// TestScoreByArguments: weights of resources, and a function of what is used.
func TestScoreByArguments(t *testing.T) {
	t.Parallel()
	rising := points(0, 0, 100, 10)
	falling := Fit{Strategy: RequestedToCapacityRatio,
		Weights: []Weight{{corev1.ResourceCPU, 3}, {corev1.ResourceMemory, 1}},
		Shape:   points(0, 10, 30, 3, 100, 0)}
	for _, c := range []struct {
		name              string
		fit               Fit
		allocatable, want string
		score             int64
	}{
		{"half of both", Fit{}, "cpu=2 memory=4Gi", "cpu=1 memory=2Gi", 50},
		{"cpu counts three times", Fit{Weights: []Weight{{corev1.ResourceCPU, 3}, {corev1.ResourceMemory, 1}}},
			"cpu=4 memory=4Gi", "cpu=1 memory=4Gi", 56},
		{"a device", Fit{Weights: []Weight{{"a.b/gpu", 1}}}, "a.b/gpu=4", "a.b/gpu=1", 75},
		{"most of a device", Fit{Strategy: MostAllocated, Weights: []Weight{{"a.b/gpu", 1}}}, "a.b/gpu=4", "a.b/gpu=1",
			25},
		{"a device that the pod does not ask for", Fit{Weights: []Weight{{"a.b/gpu", 1}, {corev1.ResourceCPU, 1}}},
			"cpu=2 a.b/gpu=4", "cpu=1", 50},
		// 25 and 75
		{"along a line", Fit{Strategy: RequestedToCapacityRatio, Shape: rising}, "cpu=4 memory=4Gi", "cpu=1 memory=3Gi",
			50},
		{"before the first point", Fit{Strategy: RequestedToCapacityRatio, Shape: points(50, 7, 100, 0)},
			"cpu=4 memory=4Gi", "cpu=1 memory=1Gi", 70},
		{"behind the last point", Fit{Strategy: RequestedToCapacityRatio, Shape: points(0, 0, 10, 3)},
			"cpu=4 memory=4Gi", "cpu=1 memory=1Gi", 30},
		// Those below are of kube-scheduler 1.36.3.
		{"1.36.3: along a line", Fit{Strategy: RequestedToCapacityRatio, Shape: rising}, "cpu=4 memory=4Gi",
			"cpu=1300m memory=3Gi", 54},
		{"1.36.3: little used", Fit{Strategy: RequestedToCapacityRatio, Shape: rising}, "cpu=1 memory=4Gi",
			"cpu=300m memory=1Gi", 28},
		{"1.36.3: what scores nothing", Fit{Strategy: RequestedToCapacityRatio, Shape: points(50, 0, 100, 10)},
			"cpu=4 memory=4Gi", "cpu=1300m memory=3Gi", 50},
		{"1.36.3: nothing scores", Fit{Strategy: RequestedToCapacityRatio, Shape: points(50, 0, 100, 10)},
			"cpu=1 memory=4Gi", "cpu=300m memory=1Gi", 0},
		{"1.36.3: falling, cpu counts three times", falling, "cpu=4 memory=4Gi", "cpu=1300m memory=3Gi", 25},
		{"1.36.3: falling, cpu nearly used up", falling, "cpu=2 memory=4Gi", "cpu=1800m memory=2Gi", 9},
		{"1.36.3: falling, at a point", falling, "cpu=1 memory=4Gi", "cpu=300m memory=1Gi", 33},
		{"what scores nothing does not count",
			Fit{Strategy: RequestedToCapacityRatio, Shape: points(50, 0, 100, 10)}, "cpu=4 memory=4Gi",
			"cpu=1 memory=4Gi", 100},
	} {
		if got := c.fit.Score(nil, pod(c.want), node(c.allocatable)); got != c.score {
			t.Errorf("%s: %d, want %d", c.name, got, c.score)
		}
	}
}

// TestIgnoredResources: Filter leaves them to others.
func TestIgnoredResources(t *testing.T) {
	t.Parallel()
	f := Fit{Ignored: func(name corev1.ResourceName) bool { return name == "a.b/gpu" }}
	for want, code := range map[string]framework.Code{"a.b/gpu=1": framework.Success,
		"a.b/gpu=1 c.d/x=1": framework.UnschedulableAndUnresolvable} {
		if st := f.Filter(nil, pod(want), node("pods=1")); st.IsSuccess() != (code == framework.Success) {
			t.Errorf("%s: %v", want, st)
		}
	}
}

// points is a shape by its utilizations and scores.
func points(list ...int64) (out framework.Shape) {
	for i := 0; i < len(list); i += 2 {
		out = append(out, framework.ShapePoint{Utilization: list[i], Score: list[i+1]})
	}
	return out
}
