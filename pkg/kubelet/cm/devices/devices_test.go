package devices

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cmtest"
	"bonsai/pkg/kubelet/runtime"
)

// wanting is a container that wants so many devices.
func wanting(name string, n int64) corev1.Container {
	return corev1.Container{Name: name,
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"example.com/foo": *resource.NewQuantity(n, resource.DecimalSI)}}}
}

func podOf(uid types.UID, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid)},
		Spec: corev1.PodSpec{Containers: containers}}
}

// admit has the pod admitted; "" if it is, else why not.
func admit(t *testing.T, m *Manager, pod *corev1.Pod) string {
	t.Helper()
	err := (&cm.Manager{Providers: []cm.Provider{m}}).Admit(t.Context(), pod)
	if err == nil {
		return ""
	}
	var why *cm.Refusal
	if !errors.As(err, &why) {
		t.Fatal(err)
	}
	return why.Reason + ": " + why.Message
}

// ids are the devices that a container has.
func ids(m *Manager, uid types.UID, container string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.pods[uid][container]["example.com/foo"]; a != nil {
		return strings.Join(a.ids, ",")
	}
	return ""
}

func TestContract(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	stop := func() {}
	cmtest.Run(t, func() cm.Provider {
		stop()
		m, s := n.kubelet()
		stop = s
		n.devices(m, nil, "d1", "d2")
		return m
	}, podOf("u", wanting("c", 1)))
}

// What a plug-in gives gets into the container, after what it gives to no other; the pod's own variables come last.
func TestDevicesGetIntoContainers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m, _ := n.kubelet()
	p := n.devices(m, &pluginapi.DevicePluginOptions{PreStartRequired: true}, "d1", "d2", "d3")
	pod := podOf("u", wanting("c", 2), corev1.Container{Name: "none"})
	if why := admit(t, m, pod); why != "" {
		t.Fatal(why)
	}
	got := runtime.ContainerOptions{Env: []runtime.KeyValue{{Name: "OWN", Value: "1"}}}
	if err := m.Container(pod, &pod.Spec.Containers[0], &got); err != nil {
		t.Fatal(err)
	}
	want := runtime.ContainerOptions{
		Env:    []runtime.KeyValue{{Name: "DEVICES", Value: "d1,d2"}, {Name: "OWN", Value: "1"}},
		Mounts: []runtime.Mount{{ContainerPath: "/lib", HostPath: "/host/lib", ReadOnly: true}},
		Devices: []runtime.Device{{ContainerPath: "/dev/d1", HostPath: "/dev/host-d1", Permissions: "rw"},
			{ContainerPath: "/dev/d2", HostPath: "/dev/host-d2", Permissions: "rw"}},
		CDIDevices: []string{"example.com/foo=d1", "example.com/foo=d2"}, Annotations: map[string]string{"a": "d1"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if h := m.Held(pod)["c"].Devices; len(h) != 2 || h[0].ResourceName != "example.com/foo" ||
		h[1].DeviceIds[0] != "d2" {
		t.Errorf("the container is said to have %v", h)
	}
	if all := m.Holdings().Devices; len(all) != 3 {
		t.Errorf("containers may have %v", all)
	}
	var none runtime.ContainerOptions
	if err := m.Container(pod, &pod.Spec.Containers[1],
		&none); err != nil || !reflect.DeepEqual(none, runtime.ContainerOptions{}) {
		t.Errorf("a container without devices gets %+v, %v", none, err)
	}
	for i := range pod.Spec.Containers {
		if err := m.Starting(t.Context(), pod, &pod.Spec.Containers[i]); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(p.started, []string{"d1,d2"}) {
		t.Errorf("told of starts with %q", p.started)
	}
	p.mu.Lock()
	p.refuse = errBusy
	p.mu.Unlock()
	if err := m.Starting(t.Context(), pod,
		&pod.Spec.Containers[0]); err == nil ||
		!strings.Contains(err.Error(), "device plugin PreStartContainer rpc failed with err") {
		t.Error(err)
	}
}

// A plug-in that does not answer holds up the pods that want devices, and no other.
func TestAPluginThatHangs(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m, _ := n.kubelet()
	p := n.devices(m, &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}, "d1", "d2")
	hangs := make(chan struct{})
	p.mu.Lock()
	p.hangs = hangs
	p.mu.Unlock()
	all := &cm.Manager{Providers: []cm.Provider{m}}
	admitted := func(pod *corev1.Pod) chan error {
		done := make(chan error, 1)
		go func() { done <- all.Admit(t.Context(), pod) }()
		return done
	}
	with := admitted(podOf("with", corev1.Container{Name: "none"}, wanting("c", 1)))
	<-hangs
	select {
	case err := <-admitted(podOf("without", corev1.Container{Name: "none"})):
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a pod without devices waits for the plug-in")
	}
	<-hangs
	if err := <-with; err != nil || ids(m, "with", "c") != "d1" {
		t.Error(err, ids(m, "with", "c"))
	}
}

// A pod for which there are no devices, or whose plug-in refuses, is not admitted, and has nothing then.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m, _ := n.kubelet()
	p := n.devices(m, nil, "d1", "d2")
	if why := admit(t, m, podOf("a", wanting("c", 1))); why != "" {
		t.Fatal(why)
	}
	if got, want := admit(t, m, podOf("b", wanting("c", 1), wanting("d", 1))),
		"UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for example.com/foo. Requested: 1, Available: 0, which is unexpected"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.mu.Lock()
	p.refuse = errBusy
	p.mu.Unlock()
	if got, want := admit(t, m, podOf("b", wanting("c", 1))),
		"UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unknown desc = busy, which is unexpected"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.mu.Lock()
	p.refuse = nil
	p.mu.Unlock()
	if why := admit(t, m, podOf("b", wanting("c", 1))); why != "" {
		t.Error("the device of a pod that was refused is not free:", why)
	}
	m.Release("a")
	if why := admit(t, m, podOf("c", wanting("c", 1))); why != "" || ids(m, "c", "c") != "d1" {
		t.Error("the device of a pod that has ended is not free:", why)
	}
	if why := admit(t, m, podOf("huge", wanting("c", 1<<40))); !strings.Contains(why, "Available: 0") {
		t.Error(why)
	}
	if why := admit(t, m, podOf("other",
		corev1.Container{Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"example.com/other": resource.MustParse("1")}}})); why != "" {
		t.Error("a resource that nobody here has to do with:", why)
	}
}

// The devices of init containers that have ended are given to those after them; sidecars keep theirs.
func TestInitContainers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m, _ := n.kubelet()
	n.devices(m, nil, "d1", "d2", "d3", "d4")
	always := corev1.ContainerRestartPolicyAlways
	sidecar := wanting("sidecar", 1)
	sidecar.RestartPolicy = &always
	pod := podOf("u", wanting("a", 1), wanting("b", 1))
	pod.Spec.InitContainers = []corev1.Container{wanting("first", 3), sidecar, wanting("second", 2)}
	if why := admit(t, m, pod); why != "" {
		t.Fatal(why)
	}
	for container, want := range map[string]string{"first": "d1,d2,d3", "sidecar": "d1", "second": "d2,d3", "a": "d2",
		"b": "d3"} {
		if got := ids(m, "u", container); got != want {
			t.Errorf("%s has %s, want %s", container, got, want)
		}
	}
	if why := admit(t, m, podOf("other", wanting("c", 1))); why != "" || ids(m, "other", "c") != "d4" {
		t.Error("the others are not free:", why)
	}
}

// While its plug-in is gone nothing of a resource can be had; pods keep what they have, over a restart of the kubelet
// too, and may not begin again with devices that are not healthy.
func TestPluginGone(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	began, late := time.Now(), time.Duration(0)
	n.now = func() time.Time { return began.Add(late) }
	m, stop := n.kubelet()
	p := n.devices(m, nil, "d1", "d2")
	pod := podOf("u", wanting("c", 1))
	if why := admit(t, m, pod); why != "" {
		t.Fatal(why)
	}
	health := func(m *Manager) corev1.ResourceHealthStatus {
		return m.Health(pod)["c"][0].Resources[0].Health
	}
	p.lists <- []*pluginapi.Device{{ID: "d1", Health: pluginapi.Unhealthy}, {ID: "d2", Health: pluginapi.Healthy}}
	n.has(m, 2, 1)
	if health(m) != corev1.ResourceHealthStatusUnhealthy {
		t.Error(health(m))
	}
	if !slices.Contains(n.waken(), "u") {
		t.Error("the pod is not told that its device is not healthy")
	}
	if got := admit(t, m, pod); !strings.Contains(got,
		"previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/foo") {
		t.Error(got)
	}
	if got := ids(m, "u", "c"); got != "" {
		t.Error("what was refused has", got)
	}
	p.lists <- healthy("d1", "d2")
	n.has(m, 2, 2)
	if why := admit(t, m, pod); why != "" {
		t.Fatal(why)
	}
	close(p.ended)
	n.has(m, 2, 0)
	if health(m) != corev1.ResourceHealthStatusUnknown {
		t.Error(health(m))
	}
	m.mu.Lock()
	late = keepGone
	m.mu.Unlock()
	n.has(m, 0, 0)
	stop()
	if _, err := os.Stat(filepath.Join(n.dir, "device-plugins", "foo.sock")); err != nil {
		t.Fatal(err)
	}
	m, _ = n.kubelet()
	if _, err := os.Stat(filepath.Join(n.dir, "device-plugins", "foo.sock")); err == nil {
		t.Error("the socket of before is still there: its plug-in does not hear that it is to register again")
	}
	if !m.Manages("example.com/foo") {
		t.Error("the resource is not known any more")
	}
	n.has(m, 0, 0)
	if ids(m, "u", "c") != "d1" || health(m) != corev1.ResourceHealthStatusUnknown {
		t.Error("the pod has", ids(m, "u", "c"))
	}
	n.devices(m, nil, "d1", "d2")
	if why := admit(t, m, podOf("other", wanting("c", 1))); why != "" || ids(m, "other", "c") != "d2" {
		t.Error("another pod has", ids(m, "other", "c"), why)
	}
}

// A plug-in may go while it is chosen what a pod gets of its devices.
func TestPluginGoesInBetween(t *testing.T) {
	t.Parallel()
	m, _ := newNode(t).kubelet()
	const resource = "example.com/foo"
	k, p := &kind{}, &plugin{resource: resource}
	comes := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		k.plugin, k.devices = p, map[string]device{}
		for i := range 500 { // to choose takes its time
			k.devices[strconv.Itoa(i)] = device{healthy: true}
		}
		m.resources[resource] = k
	}
	comes()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			m.gone(p)
			comes()
		}
	}()
	pod := podOf("u", wanting("c", 2))
	for range 100 {
		if err := m.Allocate(t.Context(), pod, &pod.Spec.Containers[0],
			0); err != nil && !strings.Contains(err.Error(), "unavailable") {
			t.Error(err)
		}
		m.Release("u")
	}
	<-done
}

// A plug-in that registers once more takes the place of the one before; and nothing of it can be had from one whose
// list is not acceptable.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m, _ := n.kubelet()
	n.devices(m, nil, "d1")
	second := n.plugin("device-plugins/second.sock", nil)
	if err := n.register(&pluginapi.RegisterRequest{Version: "v1beta1", Endpoint: "second.sock",
		ResourceName: "example.com/foo"}); err != nil {
		t.Fatal(err)
	}
	second.lists <- healthy("d1", "d2", "d3")
	n.has(m, 3, 3)
	watched := n.plugin("w.sock", &pluginapi.DevicePluginOptions{})
	if err := m.Register(t.Context(), "example.com/foo", filepath.Join(n.dir, "w.sock"),
		[]string{"v1beta1"}); err != nil {
		t.Fatal(err)
	}
	watched.lists <- healthy("d1", "d2")
	n.has(m, 2, 2)
	watched.lists <- []*pluginapi.Device{{ID: strings.Repeat("x", maxID+1)}}
	n.has(m, 2, 0)
	m.Deregister(t.Context(), "example.com/foo", filepath.Join(n.dir, "other.sock"))
	outside := filepath.Join(filepath.Dir(n.dir), "outside.sock")
	if err := os.Symlink(outside, filepath.Join(n.dir, "device-plugins", "link.sock")); err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*pluginapi.RegisterRequest{
		`requested API version "v0" is not supported by kubelet. Supported version is ["v1beta1"]`: {Version: "v0",
			Endpoint: "second.sock", ResourceName: "example.com/foo"},
		`the ResourceName "cpu" is invalid`: {Version: "v1beta1", Endpoint: "second.sock",
			ResourceName: "cpu"},
		`the ResourceName "x.kubernetes.io/a" is invalid`: {Version: "v1beta1", Endpoint: "second.sock",
			ResourceName: "x.kubernetes.io/a"},
		`the endpoint "../w.sock" is no socket in`: {Version: "v1beta1", Endpoint: "../w.sock",
			ResourceName: "example.com/foo"},
		`path escapes from parent`: {Version: "v1beta1", Endpoint: "link.sock",
			ResourceName: "example.com/foo"},
		`no such file`: {Version: "v1beta1", Endpoint: "none.sock",
			ResourceName: "example.com/foo"},
		`is no socket`: {Version: "v1beta1", Endpoint: "kubelet_internal_checkpoint",
			ResourceName: "example.com/foo"},
	} {
		if err := n.register(q); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.Register(t.Context(), "example.com/foo", outside,
		[]string{"v1beta1"}); err == nil || !strings.Contains(err.Error(), "is not beneath") {
		t.Error(err)
	}
}

// A checkpoint that was changed is not believed.
func TestCorruptCheckpoint(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	m, stop := n.kubelet()
	n.devices(m, nil, "d1")
	if why := admit(t, m, podOf("u", wanting("c", 1))); why != "" {
		t.Fatal(why)
	}
	stop()
	path := filepath.Join(n.dir, "device-plugins", "kubelet_internal_checkpoint")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"d1"`, `"d2"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.load(); err == nil || !strings.Contains(err.Error(), "checkpoint is corrupted") {
		t.Error(err)
	}
}
