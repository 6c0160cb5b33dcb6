package devices

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"bonsai/pkg/kubelet/cm"
)

// testPlugin is a device plug-in: of each device it gives the file, a variable and a CDI device.
type testPlugin struct {
	pluginapi.UnimplementedDevicePluginServer
	options *pluginapi.DevicePluginOptions
	lists   chan []*pluginapi.Device
	ended   chan struct{}

	mu      sync.Mutex
	refuse  error
	prefers []string
	hangs   chan struct{} // takes that it is asked what it prefers, and then that it may answer
	started []string
	asked   []string
}

func (p *testPlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return p.options, nil
}

func (p *testPlugin) ListAndWatch(_ *pluginapi.Empty,
	s grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		select {
		case <-s.Context().Done():
			return nil
		case <-p.ended:
			return nil
		case list := <-p.lists:
			if err := s.Send(&pluginapi.ListAndWatchResponse{Devices: list}); err != nil {
				return err
			}
		}
	}
}

func (p *testPlugin) GetPreferredAllocation(_ context.Context,
	q *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	p.mu.Lock()
	hangs := p.hangs
	p.mu.Unlock()
	if hangs != nil {
		hangs <- struct{}{}
		hangs <- struct{}{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return &pluginapi.PreferredAllocationResponse{
		ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{{DeviceIDs: p.prefers}}}, nil
}

func (p *testPlugin) Allocate(_ context.Context, q *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := q.ContainerRequests[0].DevicesIds
	p.asked = append(p.asked, strings.Join(ids, ","))
	if p.refuse != nil {
		return nil, p.refuse
	}
	r := &pluginapi.ContainerAllocateResponse{Envs: map[string]string{"DEVICES": strings.Join(ids, ",")},
		Annotations: map[string]string{"a": ids[0]},
		Mounts:      []*pluginapi.Mount{{ContainerPath: "/lib", HostPath: "/host/lib", ReadOnly: true}}}
	for _, id := range ids {
		r.Devices = append(r.Devices,
			&pluginapi.DeviceSpec{ContainerPath: "/dev/" + id, HostPath: "/dev/host-" + id, Permissions: "rw"})
		r.CdiDevices = append(r.CdiDevices, &pluginapi.CDIDevice{Name: "example.com/foo=" + id})
	}
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{r}}, nil
}

func (p *testPlugin) PreStartContainer(_ context.Context,
	q *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, strings.Join(q.DevicesIds, ","))
	return &pluginapi.PreStartContainerResponse{}, p.refuse
}

// took are the devices that Allocate was asked for, since the last time.
func (p *testPlugin) took() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := strings.Join(p.asked, " ")
	p.asked = nil
	return out
}

// node is the test's kubelet and its plug-ins.
type node struct {
	t   *testing.T
	dir string
	now func() time.Time

	mu    sync.Mutex
	woken []types.UID
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "dev") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &node{t: t, dir: dir, now: time.Now}
}

func (n *node) wake(uid types.UID) { n.mu.Lock(); defer n.mu.Unlock(); n.woken = append(n.woken, uid) }
func (n *node) waken() []types.UID { n.mu.Lock(); defer n.mu.Unlock(); return slices.Clone(n.woken) }

type uncounted struct{}

func (uncounted) PluginRegistered(string)                {}
func (uncounted) DevicesAllocated(string, time.Duration) {}

// kubelet starts one; it runs until the test ends or stop is called.
func (n *node) kubelet() (m *Manager, stop func()) {
	n.t.Helper()
	m, err := New(Config{RootDir: n.dir, Nodes: cm.NodesOf(0, 1), Changed: func() {}, Wake: n.wake,
		Metrics: uncounted{}, Now: n.now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				n.t.Error(err)
			}
		})
	}
	n.t.Cleanup(stop)
	until(n.t, "the kubelet listens", func() bool { // its socket's file is there a moment before
		conn, err := net.Dial("unix", filepath.Join(n.dir, "device-plugins", socketName))
		return err == nil && conn.Close() == nil
	})
	return m, stop
}

// plugin has one listen, at a path beneath the kubelet's directory.
func (n *node) plugin(socket string, options *pluginapi.DevicePluginOptions) *testPlugin {
	n.t.Helper()
	p := &testPlugin{options: options, lists: make(chan []*pluginapi.Device, 4), ended: make(chan struct{})}
	l, err := net.Listen("unix", filepath.Join(n.dir, socket))
	if err != nil {
		n.t.Fatal(err)
	}
	s := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(s, p)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	n.t.Cleanup(func() { s.Stop(); <-done })
	return p
}

// register registers a plug-in at the kubelet's socket.
func (n *node) register(q *pluginapi.RegisterRequest) error {
	n.t.Helper()
	conn, err := grpc.NewClient("unix:"+filepath.Join(n.dir, "device-plugins", socketName),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	defer conn.Close()
	_, err = pluginapi.NewRegistrationClient(conn).Register(n.t.Context(), q)
	return err
}

// devices starts a plug-in of example.com/foo with healthy devices, and waits until they can be had.
func (n *node) devices(m *Manager, options *pluginapi.DevicePluginOptions, ids ...string) *testPlugin {
	n.t.Helper()
	p := n.plugin("device-plugins/foo.sock", options)
	if err := n.register(&pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "foo.sock",
		ResourceName: "example.com/foo", Options: options}); err != nil {
		n.t.Fatal(err)
	}
	p.lists <- healthy(ids...)
	n.has(m, len(ids), len(ids))
	return p
}

func healthy(ids ...string) (out []*pluginapi.Device) {
	for _, id := range ids {
		out = append(out, &pluginapi.Device{ID: id, Health: pluginapi.Healthy})
	}
	return out
}

// has waits until the node has so many devices.
func (n *node) has(m *Manager, capacity, allocatable int) {
	n.t.Helper()
	until(n.t, "the node has its devices", func() bool {
		all, free := m.Capacity()
		a, b := all["example.com/foo"], free["example.com/foo"]
		return a.Value() == int64(capacity) && b.Value() == int64(allocatable)
	})
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.After(20 * time.Second); !ok(); {
		select {
		case <-deadline:
			t.Fatal("not in 20 s: " + what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

var errBusy = errors.New("busy")
