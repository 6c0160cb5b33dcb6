package cadvisor

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/psi"
	"bonsai/pkg/referencetest"
)

// The names, types and labels are those that a kubelet of Kubernetes 1.37.2 shows.
func TestCollect(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Namespace: "ns"},
		Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "i:1", ContainerID: "containerd://id"}}}}
	groups := []Group{{ID: "/", Usage: Usage{CPU: 5e9, WorkingSet: 7}, Network: []Interface{{Name: "eth0", RxBytes: 3}},
		Filesystems: []Filesystem{{Device: "/dev/vda", Limit: 10, Used: 4}}},
		{ID: "/kubepods", Usage: Usage{CPU: 2e9}}, {ID: "/kubepods/podu", Pod: "u"},
		{ID: "/kubepods/podu/id", Pod: "u", Container: "id", Started: time.Unix(50, 0), MaxFiles: new(int64(1024)),
			Usage: Usage{CPU: 1e9, Files: 20, Sockets: 3, WorkingSet: 9, RSS: 8, Quota: 1000, Throttled: 2,
				Reclaim: Reclaim{AboveHigh: 4, RefaultsFile: 6},
				MemoryPressure: &psi.Pressure{Some: psi.Stall{Total: 1_500_000},
					Full: psi.Stall{Total: 250_000}},
				Disks: []Disk{{Device: "/dev/vda", ReadBytes: 6}}}},
		{ID: "/kubepods/podu/box", Pod: "u", Container: "box", Network: []Interface{{Name: "eth0", TxBytes: 4}}}}
	var failure error
	c, err := New(Config{Groups: func() ([]Group, error) {
		return groups, failure
	}, Machine: func() Machine { return Machine{ID: "m", Cores: 2, MemoryBytes: 100} },
		Pods: func() []*corev1.Pod {
			return []*corev1.Pod{pod}
		}, Now: func() time.Time { return time.Unix(100, 0) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	want := `
# HELP container_cpu_cfs_throttled_periods_total Number of throttled period intervals.
# TYPE container_cpu_cfs_throttled_periods_total counter
container_cpu_cfs_throttled_periods_total{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 2 100000
# HELP container_cpu_usage_seconds_total Cumulative cpu time consumed in seconds.
# TYPE container_cpu_usage_seconds_total counter
container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 5 100000
container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods",image="",name="",namespace="",pod=""} 2 100000
container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/podu",image="",name="",namespace="ns",pod="p"} 0 100000
container_cpu_usage_seconds_total{container="",cpu="total",id="/kubepods/podu/box",image="",name="box",namespace="ns",pod="p"} 0 100000
container_cpu_usage_seconds_total{container="c",cpu="total",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 1 100000
# HELP container_fs_reads_bytes_total Cumulative count of bytes read
# TYPE container_fs_reads_bytes_total counter
container_fs_reads_bytes_total{container="c",device="/dev/vda",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 6 100000
# HELP container_memory_events_high_total Cumulative count of memory.high throttle events for the container
# TYPE container_memory_events_high_total counter
container_memory_events_high_total{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 4 100000
# HELP container_memory_workingset_refault_file_total Cumulative number of refaults of previously evicted file pages.
# TYPE container_memory_workingset_refault_file_total counter
container_memory_workingset_refault_file_total{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 6 100000
# HELP container_creation_time_seconds Container creation time since unix epoch in seconds.
# TYPE container_creation_time_seconds gauge
container_creation_time_seconds{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 50 100000
# TYPE container_file_descriptors gauge
container_file_descriptors{container="",id="/",image="",name="",namespace="",pod=""} 0 100000
container_file_descriptors{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 20 100000
# TYPE container_sockets gauge
container_sockets{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 3 100000
# TYPE container_ulimits_soft gauge
container_ulimits_soft{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p",ulimit="max_open_files"} 1024 100000
# HELP container_network_transmit_bytes_total Cumulative count of bytes transmitted
# TYPE container_network_transmit_bytes_total counter
container_network_transmit_bytes_total{container="",id="/",image="",interface="eth0",name="",namespace="",pod=""} 0 100000
container_network_transmit_bytes_total{container="",id="/kubepods/podu/box",image="",interface="eth0",name="box",namespace="ns",pod="p"} 4 100000
# HELP container_pressure_memory_stalled_seconds_total Total time duration no tasks in the container could make progress due to memory congestion.
# TYPE container_pressure_memory_stalled_seconds_total counter
container_pressure_memory_stalled_seconds_total{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 0.25 100000
# HELP container_pressure_memory_waiting_seconds_total Total time duration tasks in the container have waited due to memory congestion.
# TYPE container_pressure_memory_waiting_seconds_total counter
container_pressure_memory_waiting_seconds_total{container="c",id="/kubepods/podu/id",image="i:1",name="id",namespace="ns",pod="p"} 1.5 100000
# HELP container_scrape_error 1 if there was an error while getting container metrics, 0 otherwise
# TYPE container_scrape_error gauge
container_scrape_error 0
# HELP machine_cpu_cores Number of logical CPU cores.
# TYPE machine_cpu_cores gauge
machine_cpu_cores{boot_id="",machine_id="m",system_uuid=""} 2
`
	shown := func() string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w,
			httptest.NewRequest("GET", "/metrics/cadvisor", nil))
		return w.Body.String()
	}
	text := shown()
	for line := range strings.Lines(strings.TrimSpace(want)) {
		if !strings.Contains(text, strings.TrimSpace(line)+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Count(text, "\ncontainer_ulimits_soft{") != 1 ||
		strings.Count(text, "\ncontainer_network_transmit_bytes_total{") != 2 ||
		strings.Count(text, "\ncontainer_cpu_cfs_throttled_periods_total{") != 1 {
		t.Error("more than there is:", text)
	}
	if failure = errors.New("gone"); !strings.Contains(shown(), "\ncontainer_scrape_error 1\n") {
		t.Error("a failure is not told")
	}
}

func TestTopology(t *testing.T) {
	t.Parallel()
	two := "processor\t: 0\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor: 2\nphysical id: 1\ncore id: 0\n"
	if c, p, s := Topology(two); c != 3 || p != 2 || s != 2 {
		t.Error(c, p, s)
	}
	if c, p, s := Topology("processor: 0\nprocessor: 1\n"); c != 2 || p != 2 || s != 1 {
		t.Error(c, p, s)
	}
}

// TestReferenceMetrics: docs/reference has the metrics of machines, pods and containers as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Groups: func() ([]Group, error) {
		disk, files, waits := []Disk{{Device: "/dev/vda"}}, int64(1), &psi.Pressure{}
		node := Group{ID: "/", Network: []Interface{{Name: "eth0"}}, Filesystems: []Filesystem{{Device: "/dev/vda"}}}
		box := Group{ID: "/kubepods/podu/id", Pod: "u", Container: "id", Started: time.Unix(50, 0), MaxFiles: &files,
			Usage: Usage{Disks: disk, Quota: 1, Period: 1, Shares: 2, MemoryLimit: 1, SwapLimit: 1, ThreadsMax: 1,
				CPUPressure: waits, MemoryPressure: waits, IOPressure: waits}}
		return []Group{node, box}, nil
	}, Machine: func() Machine { return Machine{ID: "m", Cores: 2} }, Pods: func() []*corev1.Pod {
		return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Namespace: "ns"},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
				{Name: "c", Image: "i:1", ContainerID: "containerd://id"}}}}}
	}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	referencetest.MetricsPage(t, "kubelet-cadvisor", "Metrics of machines, pods and containers",
		"At `/metrics/cadvisor` of the kubelet.", "./pkg/kubelet/cadvisor", referencetest.Metrics(c))
}
