package emptydir

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestFileSystem: what an emptyDir is made on, by its medium and what its pod asks for.
func TestFileSystem(t *testing.T) {
	t.Parallel()
	pod := func(pages ...corev1.ResourceName) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}},
			InitContainers: []corev1.Container{{}}}}
		for i, name := range pages {
			list := corev1.ResourceList{name: resource.MustParse("4Mi")}
			if i == 0 {
				p.Spec.Containers[0].Resources.Requests = list
			} else {
				p.Spec.InitContainers[0].Resources.Requests = list
			}
		}
		return p
	}
	for _, c := range []struct {
		name   string
		medium corev1.StorageMedium
		pod    *corev1.Pod
		want   string
	}{
		{"disk", "", pod(), "disk"},
		{"memory", "Memory", pod(), "tmpfs mode=1777,size=1048576"},
		{"huge pages", "HugePages", pod("hugepages-2Mi"), "hugetlbfs pagesize=2097152"},
		{"huge pages of a size", "HugePages-1Gi", pod("hugepages-2Mi", "hugepages-1Gi"),
			"hugetlbfs pagesize=1073741824"},
		{"huge pages of the same size in other words", "HugePages-2048Ki", pod("hugepages-2Mi"),
			"hugetlbfs pagesize=2097152"},
		{"huge pages of several sizes", "HugePages", pod("hugepages-2Mi", "hugepages-1Gi"),
			"medium: HugePages can't be used if container requests multiple huge page sizes"},
		{"huge pages that nobody requests", "HugePages-1Gi", pod("hugepages-2Mi"),
			"medium: HugePages-1Gi can't be used: the pod requests no huge pages of that size"},
		{"unknown", "Tape", pod(), `unknown storage medium "Tape"`},
	} {
		on, err := New(func() int64 {
			return 1 << 20
		}).fileSystem(c.pod, &corev1.EmptyDirVolumeSource{Medium: c.medium})
		got := "disk"
		switch {
		case err != nil:
			got = err.Error()
		case on != nil:
			got = on.Type + " " + on.Options
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
