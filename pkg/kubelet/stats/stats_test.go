package stats

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/psi"
	"bonsai/pkg/kubelet/runtime"
)

func procDir(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"stat":               "cpu  100 1 50 9999 77 2 3 4 5 6\ncpu0 1\n",
		"loadavg":            "0.20 0.18 0.12 1/80 11206\n",
		"meminfo":            "SwapTotal: 100 kB\nSwapFree: 60 kB\nMemTotal: 1000 kB\nMemFree: 400 kB\nMemAvailable: 700 kB\nInactive(file): 100 kB\nAnonPages: 50 kB\n",
		"vmstat":             "pgfault 12\npgmajfault 3\n",
		"net/dev":            "Inter-| Receive\n face |bytes\n    lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n  eth0: 100 1 2 0 0 0 0 0 300 1 4 0 0 0 0 0\n",
		"pressure/cpu":       "some avg10=5.00 avg60=0.00 avg300=0.00 total=8\n",
		"pressure/io":        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2\nfull avg10=0.00 avg60=0.25 avg300=0.00 total=1\n",
		"sys/kernel/pid_max": "32768\n",
		"net/route":          "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU\neth0 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0\n",
	} {
		p := filepath.Join(root, "proc", name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestSummary(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	used := map[string]uint64{"u1": 1e9, "c1": 5e8}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	pods := []*corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u1"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "a", ContainerID: "containerd://c1", State: running},
				{Name: "gone", ContainerID: "containerd://c2", State: running}, {Name: "ended"}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "done"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
	}
	read := func(id string) (Usage, error) {
		if v, ok := used[id]; ok {
			return Usage{CPUNanoseconds: v, MemoryBytes: 10, WorkingSetBytes: 7, MemoryLimitBytes: 20, MemoryAvail: 13},
				nil
		}
		return Usage{}, errors.New("gone")
	}
	c, err := New(Config{NodeName: "n", Dir: t.TempDir(), Root: procDir(t), Now: func() time.Time {
		return now
	}, Pods: func() []*corev1.Pod { return pods },
		Pod: func(p *corev1.Pod) (Usage, error) {
			return read(string(p.UID))
		}, Container: func(_ *corev1.Pod, id string) (Usage, error) { return read(id) },
		Network: func(p *corev1.Pod) []Interface { return []Interface{{Name: "eth0", RxBytes: 7}, {Name: "net1"}} }})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	sum, err := c.Summary(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	n := sum.Node
	if *n.CPU.UsageCoreNanoSeconds != 160*1e7 || n.CPU.UsageNanoCores != nil || *n.Memory.WorkingSetBytes != 500<<10 ||
		*n.Memory.AvailableBytes != 500<<10 || *n.Memory.PageFaults != 12 {
		t.Errorf("node: %+v %+v", n.CPU, n.Memory)
	}
	if n.Network.Name != "eth0" || *n.Network.RxBytes != 100 || *n.Network.TxErrors != 4 ||
		len(n.Network.Interfaces) != 1 || *n.Fs.CapacityBytes == 0 {
		t.Errorf("network: %+v", n.Network)
	}
	if n := sum.Pods[0].Network; n.Name != "eth0" || *n.RxBytes != 7 || len(n.Interfaces) != 2 {
		t.Errorf("a pod's network: %+v", n)
	}
	if len(sum.Pods) != 1 || len(sum.Pods[0].Containers) != 2 || sum.Pods[0].Containers[1].CPU != nil ||
		*sum.Pods[0].Memory.AvailableBytes != 13 {
		t.Errorf("pods: %+v", sum.Pods)
	}
	used["c1"], now = 15e8, now.Add(2*time.Second)
	for range 2 { // the second summary comes too soon for a rate of its own
		if sum, err = c.Summary(ctx, false); err != nil || *sum.Pods[0].Containers[0].CPU.UsageNanoCores != 5e8 {
			t.Fatal(err, sum.Pods[0].Containers[0].CPU)
		}
		now = now.Add(time.Millisecond)
	}
	used["c1"], now = 1, now.Add(10*time.Second)
	if sum, err = c.Summary(ctx, false); err != nil || sum.Pods[0].Containers[0].CPU.UsageNanoCores != nil {
		t.Error("a counter that went back has no rate", err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration")
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Summary(stopped, false); err == nil {
		t.Error("a summary for a client that left")
	}
}

// TestSummaryOfDisks: a whole summary shows layers, logs and volumes on the file systems that they are on; one of CPU
// and memory asks nobody for them, nor for the network.
func TestSummaryOfDisks(t *testing.T) {
	t.Parallel()
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u1"},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "scratch"}, {Name: "secret"}, {Name: "data"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "a", State: running}, {Name: "new", State: running}}}}
	asked, images := 0, t.TempDir()
	usage := func() (Usage, error) {
		return Usage{CPUNanoseconds: 3, Swap: 9, SwapAvail: 4, SwapLimited: true,
			MemoryPressure: &psi.Pressure{Some: psi.Stall{Avg60: 0.5, Total: 6}}}, nil
	}
	c, err := New(Config{NodeName: "n", Dir: t.TempDir(), Root: procDir(t), Now: time.Now, Pressures: true,
		Pods: func() []*corev1.Pod { return []*corev1.Pod{pod} },
		Pod: func(*corev1.Pod) (Usage, error) {
			return usage()
		}, Container: func(*corev1.Pod, string) (Usage, error) {
			return usage()
		}, AllPods: func() (Usage, error) { return Usage{CPUNanoseconds: 3, Swap: 9}, nil },
		Network: func(*corev1.Pod) []Interface { asked++; return []Interface{{Name: "eth0"}} },
		Filesystems: func(context.Context) (runtime.Filesystems, error) {
			asked++
			return runtime.Filesystems{Images: images, Containers: images,
				ImagesUse:     runtime.DiskUse{Bytes: 500, Inodes: 50},
				ContainersUse: runtime.DiskUse{Bytes: 600, Inodes: 60}}, nil
		},
		Disk: func(_ context.Context, pods []*corev1.Pod) map[types.UID]Disk {
			asked++
			return map[types.UID]Disk{
				pods[0].UID: {Layers: map[string]runtime.DiskUse{"a": {Bytes: 10, Inodes: 1}},
					Logs:      map[string]runtime.DiskUse{"a": {Bytes: 20, Inodes: 2}},
					EmptyDirs: map[string]runtime.DiskUse{"scratch": {Bytes: 40, Inodes: 3}},
					Claims:    map[string]Claim{"data": {Name: "c", Capacity: 100, Used: 60}}}}
		}})
	if err != nil {
		t.Fatal(err)
	}
	few, err := c.Summary(t.Context(), true)
	if err != nil || asked != 0 || few.Node.Fs != nil || few.Node.Network != nil || few.Pods[0].Network != nil ||
		few.Pods[0].EphemeralStorage != nil || *few.Pods[0].CPU.UsageCoreNanoSeconds != 3 {
		t.Errorf("CPU and memory: %+v, asked for the rest %d times, %v", few, asked, err)
	}
	sum, err := c.Summary(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	n, p := sum.Node, sum.Pods[0]
	if *n.Rlimit.MaxPID != 32768 || *n.Rlimit.NumOfRunningProcesses != 80 || *n.Swap.SwapUsageBytes != 40<<10 ||
		*n.Swap.SwapAvailableBytes != 60<<10 {
		t.Errorf("node: %+v %+v", n.Rlimit, n.Swap)
	}
	if p := n.CPU.PSI; p == nil || p.Some.Total != 8 || p.Some.Avg10 != 5 || n.Memory.PSI != nil ||
		n.IO.PSI.Full.Avg60 != 0.25 {
		t.Errorf("the node's pressures: %+v %+v %+v", n.CPU.PSI, n.Memory.PSI, n.IO)
	}
	if r := n.Runtime; *r.ImageFs.UsedBytes != 500 || *r.ImageFs.InodesUsed != 50 || *r.ImageFs.CapacityBytes == 0 ||
		*r.ContainerFs.UsedBytes != 600 || *r.ContainerFs.InodesUsed != 60 {
		t.Errorf("the runtime: %+v %+v", r.ImageFs, r.ContainerFs)
	}
	if s := n.SystemContainers; len(s) != 1 || s[0].Name != "pods" || *s[0].CPU.UsageCoreNanoSeconds != 3 {
		t.Errorf("all pods: %+v", s)
	}
	a := p.Containers[0]
	if *a.Rootfs.UsedBytes != 10 || *a.Rootfs.CapacityBytes == 0 || *a.Logs.UsedBytes != 20 ||
		*a.Logs.InodesUsed != 2 || *a.Swap.SwapUsageBytes != 9 || *a.Swap.SwapAvailableBytes != 4 ||
		*p.Swap.SwapAvailableBytes != 4 || sum.Node.SystemContainers[0].Swap.SwapAvailableBytes != nil ||
		p.Containers[1].Logs != nil || a.Memory.PSI.Some.Total != 6 || p.Memory.PSI.Some.Avg60 != 0.5 ||
		a.CPU.PSI != nil || a.IO != nil {
		t.Errorf("containers: %+v", p.Containers)
	}
	if *p.EphemeralStorage.UsedBytes != 70 || *p.EphemeralStorage.InodesUsed != 6 || len(p.VolumeStats) != 2 {
		t.Fatalf("pod: %+v %+v", p.EphemeralStorage, p.VolumeStats)
	}
	if v := p.VolumeStats[0]; v.Name != "scratch" || *v.UsedBytes != 40 || v.PVCRef != nil {
		t.Errorf("emptyDir: %+v", v)
	}
	if v := p.VolumeStats[1]; v.Name != "data" || *v.UsedBytes != 60 || *v.CapacityBytes != 100 ||
		v.PVCRef.Name != "c" || v.PVCRef.Namespace != "ns" {
		t.Errorf("claim: %+v", v)
	}
}

// TestWithoutFilesystemsOfTheRuntime: nothing stands in for what the runtime does not tell, or that is not there.
func TestWithoutFilesystemsOfTheRuntime(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(context.Context) (runtime.Filesystems, error){
		"nobody to ask": nil,
		"a runtime that is down": func(context.Context) (runtime.Filesystems, error) {
			return runtime.Filesystems{}, errors.New("down")
		},
		"directories that are not here": func(context.Context) (runtime.Filesystems, error) {
			return runtime.Filesystems{Images: "/no/such", Containers: "/no/such"}, nil
		},
	} {
		c, err := New(Config{NodeName: "n", Dir: t.TempDir(), Root: procDir(t), Now: time.Now,
			Pods: func() []*corev1.Pod {
				return nil
			}, Pod: func(*corev1.Pod) (Usage, error) { return Usage{}, nil },
			Container: func(*corev1.Pod, string) (Usage, error) {
				return Usage{}, nil
			}, Network: func(*corev1.Pod) []Interface { return nil }, Filesystems: tell})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := c.Summary(t.Context(), false)
		if err != nil {
			t.Fatal(name, err)
		}
		if sum.Node.Fs == nil || sum.Node.Runtime.ImageFs != nil || sum.Node.Runtime.ContainerFs != nil {
			t.Errorf("%s: %+v", name, sum.Node.Runtime)
		}
	}
}
