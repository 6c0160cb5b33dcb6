package emptydir

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
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

// TestFree: what a pod keeps in memory goes, with its mount, and what it keeps on the disk stays.
func TestFree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	memory, disk := Path(dir, "memory"), Path(dir, "disk")
	for _, d := range []string{memory, disk} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		if err := unix.Mount("tmpfs", memory, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(memory, unix.MNT_DETACH) }) // if Free has not
	}
	for _, d := range []string{memory, disk} {
		if err := os.WriteFile(filepath.Join(d, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "memory", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "other", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}},
	}}}
	for range 2 { // again is no error
		if err := Free(t.Context(), dir, pod); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(memory); !os.IsNotExist(err) {
		t.Errorf("the volume in memory: %v", err)
	}
	if _, err := os.Stat(filepath.Join(disk, "file")); err != nil {
		t.Errorf("the volume on the disk: %v", err)
	}
}
