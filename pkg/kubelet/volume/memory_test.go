package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestMemorySize(t *testing.T) {
	t.Parallel()
	const node = 8 << 20
	for _, tc := range []struct {
		volume, container, pod string
		allocatable, want      int64
	}{{"", "", "", 0, 0}, {"", "", "", node, node}, {"1Mi", "", "", node, 1 << 20}, {"", "2Mi", "", node, 2 << 20},
		{"1Mi", "2Mi", "", node, 1 << 20}, {"4Mi", "2Mi", "", node, 2 << 20},
		{"16Mi", "", "", node, node}, {"", "", "3Mi", node, 3 << 20}, {"1Mi", "", "3Mi", 0, 1 << 20}} {
		limits := func(memory string) corev1.ResourceRequirements {
			if memory == "" {
				return corev1.ResourceRequirements{}
			}
			return corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse(memory)}}
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Resources: limits(tc.container)}},
			Resources:  new(limits(tc.pod))}}
		var limit *resource.Quantity
		if tc.volume != "" {
			limit = new(resource.MustParse(tc.volume))
		}
		if got := MemorySize(pod, limit, tc.allocatable); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// A volume in memory is open to all, who take away only their own, is as large as was asked for, and is not swapped out
// where the kernel can do that.
func TestVolumeInMemory(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := filepath.Join(t.TempDir(), "v")
	if err := MakeDir(dir, Tmpfs(1<<20)); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, 0)
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.TMPFS_MAGIC || int64(st.Blocks)*st.Bsize != 1<<20 {
		t.Errorf("%+v, %v", st, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%v, %v", info, err)
	}
	probe := t.TempDir()
	if err := unix.Mount("tmpfs", probe, "tmpfs", 0, "noswap"); err != nil {
		t.Skip("the kernel swaps what is in memory:", err)
	}
	defer unix.Unmount(probe, 0)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " "+dir+" ") && !strings.Contains(line, "noswap") {
			t.Errorf("it may be swapped: %s", line)
		}
	}
}
