package equal_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"bonsai/api/equal"
)

func spec(change func(*corev1.PodSpec)) *corev1.PodSpec {
	s := &corev1.PodSpec{
		NodeName: "n", NodeSelector: map[string]string{"a": "1", "b": "2", "c": "3"},
		TerminationGracePeriodSeconds: ptr.To[int64](0),
		Containers: []corev1.Container{
			{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"),
					"memory": resource.MustParse("1Gi")}}}},
	}
	change(s)
	return s
}

// TestSemantic: it is apimachinery's semantic equality, of the same and of other encodings.
func TestSemantic(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"nothing":           {func(*corev1.PodSpec) {}, true},
		"a string":          {func(s *corev1.PodSpec) { s.NodeName = "m" }, false},
		"a longer one":      {func(s *corev1.PodSpec) { s.NodeName = "mm" }, false},
		"empty, not nil":    {func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{} }, true},
		"a pointer to zero": {func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = nil }, false},
		"in other words": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1.5"),
				"memory": resource.MustParse("1Gi")}
		}, true},
		"another quantity": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1501m")
		}, false},
	} {
		a, b := spec(func(*corev1.PodSpec) {}), spec(c.change)
		if got := equal.Semantic(a, b); got != c.want || got != apiequality.Semantic.DeepEqual(a, b) {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	if one, none := (*corev1.PodSpec)(nil), (*corev1.PodSpec)(nil); !equal.Semantic(one, none) ||
		equal.Semantic(one, &corev1.PodSpec{}) {
		t.Error("nothing is not like nothing, or like something")
	}
}

// BenchmarkSemantic compares equal specs.
func BenchmarkSemantic(b *testing.B) {
	one, other := spec(func(*corev1.PodSpec) {}), spec(func(*corev1.PodSpec) {})
	b.ReportAllocs()
	for b.Loop() {
		equal.Semantic(one, other)
	}
}
