package dra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	healthapi "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
	drav1beta1 "k8s.io/kubelet/pkg/apis/dra/v1beta1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cmtest"
	"bonsai/pkg/kubelet/runtime"
)

// testDriver prepares for each claim one device for the request "a" and one for "b".
type testDriver struct {
	drav1.UnimplementedDRAPluginServer
	healthapi.UnimplementedDRAResourceHealthServer
	socket string
	health chan *healthapi.NodeWatchResourcesResponse

	mu    sync.Mutex
	notes []string
	fail  string
}

func (d *testDriver) note(s string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, s)
	return d.fail
}

func (d *testDriver) failing(why string) { d.mu.Lock(); defer d.mu.Unlock(); d.fail = why }

func (d *testDriver) took() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := strings.Join(d.notes, ", ")
	d.notes = nil
	return out
}

func (d *testDriver) NodePrepareResources(_ context.Context,
	q *drav1.NodePrepareResourcesRequest) (*drav1.NodePrepareResourcesResponse, error) {
	r := &drav1.NodePrepareResourcesResponse{Claims: map[string]*drav1.NodePrepareResourceResponse{}}
	for _, c := range q.Claims {
		if why := d.note("prepare " + c.Name); why != "" {
			r.Claims[c.Uid] = &drav1.NodePrepareResourceResponse{Error: why}
			continue
		}
		r.Claims[c.Uid] = &drav1.NodePrepareResourceResponse{Devices: []*drav1.Device{
			{RequestNames: []string{"a"}, PoolName: "pool", DeviceName: "d1",
				CdiDeviceIds: []string{"x.org/d=" + c.Name + "-a"}},
			{RequestNames: []string{"b/sub"}, PoolName: "pool", DeviceName: "d2",
				CdiDeviceIds: []string{"x.org/d=" + c.Name + "-b"}}}}
	}
	return r, nil
}

func (d *testDriver) NodeUnprepareResources(_ context.Context,
	q *drav1.NodeUnprepareResourcesRequest) (*drav1.NodeUnprepareResourcesResponse, error) {
	r := &drav1.NodeUnprepareResourcesResponse{Claims: map[string]*drav1.NodeUnprepareResourceResponse{}}
	for _, c := range q.Claims {
		r.Claims[c.Uid] = &drav1.NodeUnprepareResourceResponse{Error: d.note("unprepare " + c.Name)}
	}
	return r, nil
}

func (d *testDriver) NodeWatchResources(_ *healthapi.NodeWatchResourcesRequest,
	s grpc.ServerStreamingServer[healthapi.NodeWatchResourcesResponse]) error {
	for {
		select {
		case <-s.Context().Done():
			return nil
		case r := <-d.health:
			if err := s.Send(r); err != nil {
				return err
			}
		}
	}
}

// node is the test's kubelet, API server and driver.
type node struct {
	t      *testing.T
	dir    string
	mu     sync.Mutex
	claims map[string]*resourcev1.ResourceClaim
	wiped  []string
	woken  chan types.UID
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "dra") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &node{t: t, dir: dir, claims: map[string]*resourcev1.ResourceClaim{}, woken: make(chan types.UID, 64)}
}

func (n *node) ResourceClaim(_ context.Context, _, name string) (*resourcev1.ResourceClaim, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := n.claims[name]; c != nil {
		return c.DeepCopy(), nil
	}
	return nil, errors.New("not found")
}

func (n *node) DeleteResourceSlices(_ context.Context, fields string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wiped = append(n.wiped, fields)
	return nil
}

// deleted are the selectors of the ResourceSlices that were deleted.
func (n *node) deleted() []string { n.mu.Lock(); defer n.mu.Unlock(); return slices.Clone(n.wiped) }

type uncounted struct{}

func (uncounted) DRAOperation(string, time.Duration, error)     {}
func (uncounted) DRACall(string, string, string, time.Duration) {}
func (uncounted) DRAClaims(map[string]int)                      {}

func (n *node) kubelet() *Manager {
	n.t.Helper()
	m, err := New(Config{RootDir: n.dir, Node: "n1", Client: n, Wake: func(uid types.UID) {
		n.woken <- uid
	}, Metrics: uncounted{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(m.close)
	return m
}

// driver has one listen; it speaks one version.
func (n *node) driver(socket, service string) *testDriver {
	n.t.Helper()
	d := &testDriver{socket: filepath.Join(n.dir, socket), health: make(chan *healthapi.NodeWatchResourcesResponse, 4)}
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		n.t.Fatal(err)
	}
	s := grpc.NewServer()
	healthapi.RegisterDRAResourceHealthServer(s, d)
	if service == drav1beta1.DRAPluginService {
		s.RegisterService(&grpc.ServiceDesc{ServiceName: drav1beta1.DRAPlugin_ServiceDesc.ServiceName,
			HandlerType: (*drav1.DRAPluginServer)(nil), Methods: drav1.DRAPlugin_ServiceDesc.Methods}, d)
	} else {
		drav1.RegisterDRAPluginServer(s, d)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	n.t.Cleanup(func() { s.Stop(); <-done })
	return d
}

func (n *node) register(m *Manager, d *testDriver, service string) {
	n.t.Helper()
	if err := m.Register(n.t.Context(), "drv.x.org", d.socket, []string{service}); err != nil {
		n.t.Fatal(err)
	}
}

// claim is allocated and reserved for pods.
func (n *node) claim(name string, pods ...types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)}}
	c.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "a", Driver: "drv.x.org", Pool: "pool", Device: "d1"}}}}
	for _, uid := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor,
			resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: string(uid), UID: uid})
	}
	n.claims[name] = c
}

// podOf uses a claim, its first container all of it, the second one the request "b".
func podOf(uid types.UID, claim string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), Namespace: "ns", UID: uid},
		Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "it", ResourceClaimName: &claim}},
			Containers: []corev1.Container{
				{Name: "all", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "it"}}}},
				{Name: "b", Resources: corev1.ResourceRequirements{
					Claims: []corev1.ResourceClaim{{Name: "it", Request: "b"}}}}, {Name: "none"}}}}
}

func devicesIn(t *testing.T, m *Manager, pod *corev1.Pod) string {
	t.Helper()
	var out []string
	for i := range pod.Spec.Containers {
		var o runtime.ContainerOptions
		if err := m.Container(pod, &pod.Spec.Containers[i], &o); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Join(o.CDIDevices, ","))
	}
	return strings.Join(out, " ")
}

func TestContract(t *testing.T) {
	t.Parallel()
	for _, service := range []string{drav1.DRAPluginService, drav1beta1.DRAPluginService} {
		n := newNode(t)
		n.claim("c", "u")
		d := n.driver("d.sock", service)
		cmtest.Run(t, func() cm.Provider {
			m := n.kubelet()
			n.register(m, d, service)
			return m
		}, podOf("u", "c"))
		if got := d.took(); !strings.HasPrefix(got, "prepare c") || !strings.HasSuffix(got, "unprepare c") {
			t.Errorf("%s: %s", service, got)
		}
	}
}

// A claim of several pods is prepared once, and unprepared after the last one; each container gets the devices of what
// it names.
func TestSharedClaim(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m := n.kubelet()
	d := n.driver("d.sock", drav1.DRAPluginService)
	n.register(m, d, drav1.DRAPluginService)
	n.claim("c", "p1", "p2")
	var wg sync.WaitGroup
	for _, uid := range []types.UID{"p1", "p2"} {
		wg.Go(func() {
			if err := m.Prepare(t.Context(), podOf(uid, "c")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := d.took(); got != "prepare c" {
		t.Error(got)
	}
	if got := devicesIn(t, m, podOf("p1", "c")); got != "x.org/d=c-a,x.org/d=c-b x.org/d=c-b " {
		t.Errorf("%q", got)
	}
	if h := m.Held(podOf("p2", "c")); len(h) != 2 || len(h["all"].DynamicResources[0].ClaimResources) != 2 ||
		h["b"].DynamicResources[0].ClaimResources[0].DeviceName != "d2" {
		t.Errorf("held: %v", h)
	}
	if err := m.Unprepare(t.Context(), "p1"); err != nil || d.took() != "" {
		t.Error("the first of two ends:", err)
	}
	d.failing("busy")
	if err := m.Unprepare(t.Context(),
		"p2"); err == nil || err.Error() != "NodeUnprepareResources failed for ResourceClaim c: busy" ||
		d.took() != "unprepare c" {
		t.Error(err)
	}
	if uids, _ := m.Prepared(); !slices.Equal(uids, []types.UID{"p2"}) {
		t.Error("a pod whose claim could not be unprepared has", uids)
	}
	d.failing("")
	restarted := n.kubelet()
	if err := restarted.Unprepare(t.Context(),
		"p2"); err == nil || err.Error() != "DRA driver drv.x.org is not registered" {
		t.Error(err)
	}
	n.register(restarted, d, drav1.DRAPluginService)
	if err := restarted.Unprepare(t.Context(), "p2"); err != nil || d.took() != "unprepare c" {
		t.Error("after a restart:", err)
	}
	if uids, _ := restarted.Prepared(); len(uids) > 0 {
		t.Error("left:", uids)
	}
}

// What was prepared before a restart of the kubelet is there also while the driver is not.
func TestRestartWithoutDriver(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.claim("c", "u")
	m := n.kubelet()
	n.register(m, n.driver("d.sock", drav1.DRAPluginService), drav1.DRAPluginService)
	if err := m.Prepare(t.Context(), podOf("u", "c")); err != nil {
		t.Fatal(err)
	}
	restarted := n.kubelet()
	if err := restarted.Prepare(t.Context(), podOf("u", "c")); err != nil {
		t.Fatal(err)
	}
	if a, b := devicesIn(t, m, podOf("u", "c")), devicesIn(t, restarted, podOf("u", "c")); a != b {
		t.Errorf("before %q, after %q", a, b)
	}
	if err := restarted.Prepare(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "other", Namespace: "ns"},
			Spec: podOf("u", "c").Spec}); err == nil || !strings.Contains(err.Error(), "not allowed to use") {
		t.Error(err)
	}
}

// Why claims are not prepared; what a driver was asked for is undone all the same.
func TestProblems(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m := n.kubelet()
	n.claim("c", "u")
	n.claim("others", "x")
	n.claim("waiting")
	n.claims["waiting"].Status.Allocation = nil
	for claim, want := range map[string]string{
		"none":    "Failed to prepare dynamic resources: fetch ResourceClaim none: not found",
		"waiting": "Failed to prepare dynamic resources: resource claim waiting is not allocated",
		"others":  "Failed to prepare dynamic resources: pod u (u) is not allowed to use resource claim others (uid-others)",
		"c":       "Failed to prepare dynamic resources: DRA driver drv.x.org is not registered",
	} {
		if err := m.Prepare(t.Context(), podOf("u", claim)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", claim, err)
		}
	}
	d := n.driver("d.sock", drav1.DRAPluginService)
	n.register(m, d, drav1.DRAPluginService)
	d.failing("no more")
	if err := m.Prepare(t.Context(),
		podOf("u", "c")); err == nil ||
		err.Error() != "Failed to prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: no more" {
		t.Error(err)
	}
	if err := m.Container(podOf("u", "c"), &podOf("u", "c").Spec.Containers[0],
		&runtime.ContainerOptions{}); err == nil {
		t.Error("a container gets devices of a claim that is not prepared")
	}
	d.failing("")
	d.took()
	if err := m.Unprepare(t.Context(), "u"); err != nil || d.took() != "unprepare c" {
		t.Error(err)
	}
	if err := m.Register(t.Context(), "drv.x.org", d.socket, []string{"v1alpha3.Node"}); err == nil {
		t.Error("a driver of an old version is taken")
	}
	if err := m.Register(t.Context(), "drv.x.org", "/run/other.sock",
		[]string{drav1.DRAPluginService}); err == nil || !strings.Contains(err.Error(), "is not beneath") {
		t.Error(err)
	}
}

// A pod whose driver is not on the node, and may never come, can be ended.
func TestADriverThatNeverCame(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.claim("c", "u")
	m := n.kubelet()
	if err := m.Prepare(t.Context(),
		podOf("u", "c")); err == nil || !strings.HasSuffix(err.Error(), "DRA driver drv.x.org is not registered") {
		t.Error(err)
	}
	for _, m := range []*Manager{m, n.kubelet()} { // also by a kubelet that was started meanwhile
		if err := m.Unprepare(t.Context(), "u"); err != nil {
			t.Error(err)
		}
	}
}

// While two drivers of a name are there the newer one is asked; when it goes, the other one is.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m := n.kubelet()
	before, after := n.driver("d1.sock", drav1.DRAPluginService), n.driver("d2.sock", drav1.DRAPluginService)
	for i, step := range []struct {
		do            func()
		before, after string
	}{
		{func() { n.register(m, before, drav1.DRAPluginService) }, "prepare c0", ""},
		{func() { n.register(m, after, drav1.DRAPluginService) }, "", "prepare c1"},
		{func() { m.Deregister(t.Context(), "drv.x.org", before.socket) }, "", "prepare c2"},
	} {
		step.do()
		name := fmt.Sprintf("c%d", i)
		n.claim(name, types.UID(name))
		if err := m.Prepare(t.Context(), podOf(types.UID(name), name)); err != nil {
			t.Fatal(err)
		}
		if a, b := before.took(), after.took(); a != step.before || b != step.after {
			t.Errorf("step %d: %q, %q", i, a, b)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m := n.kubelet()
	n.claim("c", "u")
	d := n.driver("d.sock", drav1.DRAPluginService)
	n.register(m, d, drav1.DRAPluginService)
	pod := podOf("u", "c")
	if err := m.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if h := m.Health(pod)["all"]; len(h) != 1 || h[0].Name != "claim:it" || len(h[0].Resources) != 2 ||
		h[0].Resources[0].Health != corev1.ResourceHealthStatusUnknown {
		t.Errorf("%+v", h)
	}
	d.health <- &healthapi.NodeWatchResourcesResponse{
		Devices: []*healthapi.DeviceHealth{{Device: &healthapi.DeviceIdentifier{PoolName: "pool", DeviceName: "d2"},
			Health: healthapi.HealthStatus_UNHEALTHY, Message: strings.Repeat("ö", 1000)}}}
	if uid := <-n.woken; uid != "u" {
		t.Error(uid)
	}
	h := m.Health(pod)["b"]
	if len(h) != 1 || h[0].Name != "claim:it/b" || len(h[0].Resources) != 1 ||
		h[0].Resources[0].ResourceID != "drv.x.org/pool/d2" ||
		h[0].Resources[0].Health != corev1.ResourceHealthStatusUnhealthy || len(*h[0].Resources[0].Message) != 1023 {
		t.Errorf("%+v", h)
	}
}

// The slices of drivers that do not come back are taken away, and of those that do not come back after a restart of the
// kubelet.
func TestResourceSlices(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	synctest.Test(t, func(t *testing.T) {
		m, err := New(Config{RootDir: n.dir, Node: "n1", Client: n, Metrics: uncounted{}, Now: time.Now,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		m.mu.Lock()
		m.left["gone"] = time.Now()
		m.mu.Unlock()
		<-time.After(29 * time.Second)
		synctest.Wait()
		if got := n.deleted(); len(got) > 0 {
			t.Error("too soon:", got)
		}
		<-time.After(12 * time.Second)
		synctest.Wait()
		if want := []string{"spec.nodeName=n1", "spec.nodeName=n1,spec.driver=gone"}; !slices.Equal(n.deleted(), want) {
			t.Error(n.deleted())
		}
		<-time.After(time.Minute)
		synctest.Wait()
		if got := n.deleted(); len(got) != 2 {
			t.Error("again:", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
