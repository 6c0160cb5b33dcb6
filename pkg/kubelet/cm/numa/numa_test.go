package numa

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/cm"
)

func TestRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, "sys/devices/system", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := Read(root, 2); err != nil || len(m.CPUs) != 2 || m.CPUs[1] != (cm.CPU{ID: 1, Core: 1, Cache: 1}) {
		t.Errorf("a system that tells nothing: %+v, %v", m, err)
	}
	// Two sockets, each a NUMA node of two cores with two threads; CPU 7 is offline.
	write("cpu/online", "0-6")
	write("node/online", "0-1")
	write("node/node0/cpulist", "0-1,4-5")
	write("node/node1/cpulist", "2-3,6-7")
	write("node/node0/meminfo", "Node 0 MemTotal:       2048 kB\nNode 0 MemFree: 1 kB")
	write("node/node1/meminfo", "Node 1 MemTotal:       1024 kB")
	write("node/node1/hugepages/hugepages-2048kB/nr_hugepages", "3")
	write("node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "0")
	write("node/node0/distance", "10 21")
	write("node/node1/distance", "21 10")
	for id := range 7 {
		write(fmt.Sprintf("cpu/cpu%d/topology/physical_package_id", id), fmt.Sprint(id%4/2))
		write(fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", id), fmt.Sprintf("%d,%d", id%4, id%4+4))
		write(fmt.Sprintf("cpu/cpu%d/cache/index3/shared_cpu_list", id), []string{"0-1,4-5", "2-3,6-7"}[id%4/2])
	}
	m, err := Read(root, 99)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.CPUs) != 7 || m.CPUs[6] != (cm.CPU{ID: 6, Core: 2, Cache: 2, Socket: 1, NUMA: 1}) ||
		m.Distances[0][1] != 21 || m.Nodes() != cm.NodesOf(0, 1) || m.PerCore() != 2 {
		t.Errorf("%+v", m)
	}
	if got := m.On(cm.NodesOf(1)).String(); got != "2-3,6" {
		t.Error(got)
	}
	if want := map[int]map[corev1.ResourceName]uint64{0: {"memory": 2 << 20},
		1: {"memory": 1 << 20, "hugepages-2Mi": 6 << 20, "hugepages-1Gi": 0}}; !reflect.DeepEqual(m.Memory, want) {
		t.Errorf("memory %v, want %v", m.Memory, want)
	}
	write("cpu/online", "0-x")
	if _, err := Read(root, 1); err == nil {
		t.Error("nonsense is read")
	}
}
