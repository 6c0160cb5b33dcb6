package eviction

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/runtime"
)

func TestObserve(t *testing.T) {
	t.Parallel()
	root, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"sys/kernel/pid_max": "4194304\n", "sys/kernel/threads-max": "1000\n",
		"loadavg": "0.1 0.2 0.3 1/77 9\n"} {
		path := filepath.Join(root, "proc", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Observer{Root: root, Dir: dir, Memory: func() (int64, int64, error) { return 100, 30, nil },
		Pods: func() (int64, int64, bool, error) { return 10, 20, true, nil },
		Filesystems: func(context.Context) (runtime.Filesystems, error) {
			return runtime.Filesystems{Images: dir, Containers: "/proc"}, nil
		}}
	seen, disks, err := o.Observe(t.Context())
	if err != nil || disks != (Disks{LayersApart: true}) {
		t.Errorf("%+v %v", disks, err)
	}
	if seen[pressure.MemoryAvailable] != (pressure.Observation{Available: 70, Capacity: 100}) ||
		seen[pressure.PIDAvailable] != (pressure.Observation{Available: 923, Capacity: 1000}) ||
		seen[pressure.AllocatableMemoryAvailable] != (pressure.Observation{Available: 20, Capacity: 30}) {
		t.Error(seen)
	}
	if n, i := seen[pressure.NodeFsAvailable],
		seen[pressure.ImageFsAvailable]; n.Capacity == 0 || n.Capacity != i.Capacity {
		t.Error("one file system:", n, i)
	}
	used := int64(90)
	o.Memory = func() (int64, int64, error) { return 100, used, nil }
	o.Filesystems = func(context.Context) (runtime.Filesystems, error) {
		used = 10
		return runtime.Filesystems{}, errors.New("down")
	}
	if seen, _, err = o.Observe(t.Context()); err == nil || len(seen) < 4 {
		t.Error("a runtime that is down hides what else is to be seen:", seen, err)
	}
	if left := seen[pressure.MemoryAvailable].Available; left != 90 {
		t.Error("the memory before the runtime answered:", left)
	}
}
