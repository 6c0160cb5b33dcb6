package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"bonsai/pkg/kubelet/kubelettest"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
)

type fakeRuntime struct {
	mu    sync.Mutex
	state runtime.Health
}

func (f *fakeRuntime) Health(context.Context) (runtime.Health, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, nil
}

func (*fakeRuntime) Version() runtime.Version {
	return runtime.Version{Name: "containerd", Version: "1.6.20"}
}

func (f *fakeRuntime) set(s runtime.Health) { f.mu.Lock(); defer f.mu.Unlock(); f.state = s }

type fakeMachine struct{}

func (fakeMachine) Info() corev1.NodeSystemInfo { return corev1.NodeSystemInfo{MachineID: "m"} }
func (fakeMachine) Capacity() corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"),
		"ephemeral-storage": resource.MustParse("10Gi"), "hugepages-2Mi": resource.MustParse("4Mi")}
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.After(10 * time.Second); !ok(); {
		select {
		case <-deadline:
			t.Fatal("not in 10 s: " + what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// startupSteps are the steps that a node has told of.
type startupSteps chan string

func (s startupSteps) Registering(time.Time) { s <- "registering" }
func (s startupSteps) Registered(time.Time)  { s <- "registered" }
func (s startupSteps) Ready(time.Time)       { s <- "ready" }

// TestLife takes a node from registration over its podCIDR to Ready, and counts its PATCHes.
func TestLife(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	client, rt, steps := fake.NewClientset(), &fakeRuntime{}, make(startupSteps, 4)
	numberVersions(client)
	rt.set(runtime.Health{RuntimeReady: true, NetworkReason: "NetworkPluginNotReady",
		NetworkMessage: "cni plugin not initialized"})
	n, err := New(Config{Client: kubelettest.Client{Interface: client}, Name: "n1",
		IPs: []net.IP{net.ParseIP("10.1.2.3"), net.ParseIP("fd00::3")}, Labels: map[string]string{"zone": "a"},
		Taints:  []corev1.Taint{{Key: "t", Effect: "NoSchedule"}},
		Runtime: rt, Machine: fakeMachine{}, Version: "v1.36.3", Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Startup:   steps,
		MaxImages: 50, Images: func(context.Context) ([]corev1.ContainerImage, error) {
			return []corev1.ContainerImage{{Names: []string{"b"}, SizeBytes: 1}, {Names: []string{"a"}, SizeBytes: 9}},
				nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	<-n.Registered()
	get := func() *corev1.Node {
		node, err := client.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	node := get()
	if node.Labels["kubernetes.io/hostname"] != "n1" || node.Labels["zone"] != "a" ||
		node.Labels["beta.kubernetes.io/os"] != "linux" || len(node.Spec.Taints) != 1 {
		t.Error("registered:", node.Labels, node.Spec)
	}
	if conditionTrue(node.Status.Conditions, corev1.NodeReady) ||
		node.Status.NodeInfo.ContainerRuntimeVersion != "containerd://1.6.20" || node.Status.Images[0].Names[0] != "a" {
		t.Error("status:", node.Status)
	}
	cidrs := []byte(`{"spec":{"podCIDR":"10.244.1.0/24","podCIDRs":["10.244.1.0/24"]}}`)
	waitUntil(t, "the podCIDR seen", func() bool {
		// The fake watch may start after the change: write again until it is seen.
		if _, err := client.CoreV1().Nodes().Patch(ctx, "n1", types.MergePatchType, cidrs,
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		return n.Object().Spec.PodCIDR != ""
	})
	if conditionTrue(get().Status.Conditions, corev1.NodeReady) {
		t.Error("ready before the runtime's network is")
	}
	rt.set(runtime.Health{RuntimeReady: true, NetworkReady: true})
	waitUntil(t, "the node Ready", func() bool { return conditionTrue(n.Object().Status.Conditions, corev1.NodeReady) })
	if got := []string{<-steps, <-steps, <-steps}; !slices.Equal(got, []string{"registering", "registered", "ready"}) {
		t.Errorf("steps of the start: %q", got)
	}
	waitUntil(t, "the lease", func() bool {
		l, err := client.CoordinationV1().Leases("kube-node-lease").Get(ctx, "n1", metav1.GetOptions{})
		return err == nil && *l.Spec.LeaseDurationSeconds == 40 && *l.Spec.HolderIdentity == "n1" &&
			len(l.OwnerReferences) == 1
	})
	before := patches(client)
	for range 3 {
		if ready, err := n.syncStatus(ctx); err != nil || !ready {
			t.Fatal(ready, err)
		}
	}
	if after := patches(client); after != before {
		t.Errorf("%d PATCHes without a change", after-before)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"10.1.2.3", "fd00::3"}, n.HostIPs()); d != "" {
		t.Error(d)
	}
}

// numberVersions has each change of a Node give it a higher resourceVersion, which the fake API server does not: by it
// the kubelet tells old news from new.
func numberVersions(c *fake.Clientset) {
	var last atomic.Int64
	change := ktesting.ObjectReaction(c.Tracker())
	number := func(action ktesting.Action) (bool, apiruntime.Object, error) {
		handled, obj, err := change(action)
		if node, ok := obj.(*corev1.Node); ok && err == nil {
			node.ResourceVersion = strconv.FormatInt(last.Add(1), 10)
			err = c.Tracker().Update(action.GetResource(), node, "")
		}
		return handled, obj, err
	}
	for _, verb := range []string{"create", "update", "patch"} {
		c.PrependReactor(verb, "nodes", number)
	}
}

func patches(c *fake.Clientset) (n int) {
	for _, a := range c.Actions() {
		if a.GetVerb() == "patch" && a.GetSubresource() == "status" {
			n++
		}
	}
	return n
}

func TestTakesOverAnExistingNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID("old"),
			Labels: map[string]string{"own": "x", "kubernetes.io/hostname": "other"}},
			Spec: corev1.NodeSpec{Unschedulable: true}})
	n, err := New(Config{Client: kubelettest.Client{Interface: client}, Name: "n1",
		IPs: []net.IP{net.ParseIP("10.1.2.3")}, Runtime: &fakeRuntime{}, Machine: fakeMachine{}, Now: time.Now,
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if !n.register(ctx) {
		t.Fatal("not registered")
	}
	got := n.Object()
	if got.UID != "old" || !got.Spec.Unschedulable || got.Labels["own"] != "x" ||
		got.Labels["kubernetes.io/hostname"] != "n1" {
		t.Error(got)
	}
}

// The labels that describe the node follow the kubelet, as upstream's does; those of --node-labels are its
// administrators' once the Node exists.
func TestKeepsLabelsOfAnExistingNode(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
			Labels: map[string]string{"team": "blue", "kubernetes.io/arch": "other",
				"topology.kubernetes.io/zone": "a"}}})
	n, err := New(Config{Client: kubelettest.Client{Interface: client}, Name: "n1",
		IPs: []net.IP{net.ParseIP("10.1.2.3")}, Runtime: &fakeRuntime{}, Machine: fakeMachine{}, Now: time.Now,
		Log:    slog.New(slog.DiscardHandler),
		Labels: map[string]string{"team": "red", "removed": "x", "topology.kubernetes.io/zone": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if !n.register(t.Context()) {
		t.Fatal("not registered")
	}
	got := n.Object()
	if l := got.Labels; l["team"] != "blue" || l["removed"] != "" || l["topology.kubernetes.io/zone"] != "b" ||
		l["kubernetes.io/arch"] != goruntime.GOARCH || l["kubernetes.io/hostname"] == "" {
		t.Errorf("labels: %v", l)
	}
	if got.Annotations[managedAttachment] != "true" {
		t.Errorf("who attaches its volumes: %v", got.Annotations)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration")
	}
	cfg := Config{Client: kubelettest.Client{Interface: fake.NewClientset()}, Name: "n", Runtime: &fakeRuntime{},
		Machine: fakeMachine{}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		IPs: []net.IP{net.IPv4zero, net.IPv6zero}}
	if _, err := New(cfg); err == nil {
		t.Error("0.0.0.0 as a node's address")
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	then, now := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	got := conditions([]corev1.NodeCondition{{Type: "Other", Status: "True"}}, Pressure{}, "why", then)
	got = conditions(got, Pressure{Memory: true, Disk: true, PID: true}, "", now)
	got = conditions(got, Pressure{Memory: true}, "", metav1.NewTime(time.Unix(300, 0)))
	want := []string{"Other True  ",
		"MemoryPressure True KubeletHasInsufficientMemory kubelet has insufficient memory available",
		"DiskPressure False KubeletHasNoDiskPressure kubelet has no disk pressure",
		"PIDPressure False KubeletHasSufficientPID kubelet has sufficient PID available",
		"Ready True KubeletReady kubelet is posting ready status"}
	for i, c := range got {
		if s := strings.Join([]string{string(c.Type), string(c.Status), c.Reason, c.Message}, " "); s != want[i] {
			t.Errorf("%q, want %q", s, want[i])
		}
		if c.Type == corev1.NodeReady && (!c.LastTransitionTime.Equal(&now) || c.LastHeartbeatTime.Unix() != 300) {
			t.Error("times:", c)
		}
	}
	for want, got := range map[string]string{
		"": notReady(runtime.Health{RuntimeReady: true, NetworkReady: true}, nil, nil,
			nil),
		"container runtime is down: gone": notReady(runtime.Health{}, errors.New("gone"), nil, nil),
		"container runtime network not ready: NetworkReady=false reason:R message:M": notReady(
			runtime.Health{RuntimeReady: true, NetworkReason: "R", NetworkMessage: "M"}, nil, nil, nil),
		"PLEG is not healthy: pleg has yet to be successful": notReady(
			runtime.Health{RuntimeReady: true, NetworkReady: true}, nil, errors.New("pleg has yet to be successful"),
			nil),
		"[container runtime not ready: RuntimeReady=false reason:R message:M, PLEG is not healthy: P]": notReady(
			runtime.Health{NetworkReady: true, RuntimeReason: "R", RuntimeMessage: "M"}, nil, errors.New("P"), nil),
		"node is shutting down": notReady(runtime.Health{RuntimeReady: true, NetworkReady: true}, nil, nil,
			errors.New("node is shutting down")),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAllocatable(t *testing.T) {
	t.Parallel()
	r := Resources{Reserved: corev1.ResourceList{"cpu": resource.MustParse("500m"),
		"memory": resource.MustParse("100Mi")},
		Kept: corev1.ResourceList{"memory": resource.MustParse("100Mi"),
			"ephemeral-storage": resource.MustParse("1Gi")}}
	got := r.Allocatable(fakeMachine{}.Capacity())
	for name, want := range map[corev1.ResourceName]string{"cpu": "1500m", "memory": "820Mi", "pods": "110",
		"ephemeral-storage": "9Gi", "hugepages-2Mi": "4Mi"} {
		if q := got[name]; q.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s: %s, want %s", name, q.String(), want)
		}
	}
	all := Resources{MaxPods: 5,
		Reserved: corev1.ResourceList{"cpu": resource.MustParse("8")}}.Allocatable(fakeMachine{}.Capacity())
	if all.Cpu().Sign() != 0 || all.Pods().Value() != 5 || all.StorageEphemeral().Value() != 10<<30 {
		t.Error(all)
	}
}

// After a restart with another --max-pods the Node shows the old figure until the first status is written; pods are
// admitted meanwhile.
func TestAllocatableIsThisKubelets(t *testing.T) {
	t.Parallel()
	n := &Node{cfg: Config{Machine: fakeMachine{}, Resources: Resources{MaxPods: 9}}}
	if got := n.Allocatable(); got.Pods().Value() != 9 || got.Cpu().Value() != 2 {
		t.Errorf("before the Node is known: %v", got)
	}
	earlier := Resources{MaxPods: 5}.Allocatable(fakeMachine{}.Capacity())
	earlier["example.com/dongle"] = resource.MustParse("3")
	n.object.Store(&corev1.Node{Status: corev1.NodeStatus{Allocatable: earlier}})
	got := n.Allocatable()
	if dongles := got["example.com/dongle"]; got.Pods().Value() != 9 || dongles.Value() != 3 {
		t.Errorf("beside a Node of an earlier kubelet: %v", got)
	}
}

// A pod of the pod network asks the runtime until it is ready once; that the network has come is news for the Node.
func TestNetworkReady(t *testing.T) {
	t.Parallel()
	rt := &fakeRuntime{}
	rt.set(runtime.Health{RuntimeReady: true, NetworkReason: "R", NetworkMessage: "M"})
	n := &Node{cfg: Config{Runtime: rt, Now: time.Now, Changed: notify.New()}}
	if err := n.NetworkReady(t.Context()); err == nil ||
		err.Error() != "container runtime network not ready: NetworkReady=false reason:R message:M" ||
		len(n.cfg.Changed) != 0 {
		t.Errorf("without a network: %v", err)
	}
	rt.set(runtime.Health{RuntimeReady: true, NetworkReady: true})
	if err := n.NetworkReady(t.Context()); err != nil || len(n.cfg.Changed) != 1 {
		t.Errorf("with a network: %v, poked %d times", err, len(n.cfg.Changed))
	}
	n.cfg.Runtime = &deadRuntime{}
	if err := n.NetworkReady(t.Context()); err != nil {
		t.Errorf("asked again although it was ready: %v", err)
	}
}

// What the runtime can do is the Node's to tell: pods are placed and refused by it. A runtime that says nothing has
// nothing told of it.
func TestRuntimeFeatures(t *testing.T) {
	t.Parallel()
	rt := &fakeRuntime{}
	n := &Node{cfg: Config{Runtime: rt, Machine: fakeMachine{}, Now: time.Now}}
	h := runtime.Health{SupplementalGroupsPolicy: new(true),
		Handlers: []runtime.Handler{{Name: "runc", UserNamespaces: true}, {Name: ""}}}
	s := n.status(t.Context(), corev1.NodeStatus{}, h, nil)
	if len(s.RuntimeHandlers) != 2 || s.RuntimeHandlers[0].Name != "" ||
		*s.RuntimeHandlers[0].Features.UserNamespaces || !*s.RuntimeHandlers[1].Features.UserNamespaces {
		t.Errorf("handlers %+v", s.RuntimeHandlers)
	}
	if s.Features == nil || !*s.Features.SupplementalGroupsPolicy {
		t.Errorf("features %+v", s.Features)
	}
	if kept := n.status(t.Context(), s, runtime.Health{},
		errors.New("silent")); len(kept.RuntimeHandlers) != 2 || kept.Features == nil {
		t.Errorf("a runtime that does not answer: %+v", kept)
	}
	if old := n.status(t.Context(), s, runtime.Health{}, nil); old.RuntimeHandlers != nil || old.Features != nil {
		t.Errorf("a runtime that says nothing: %+v, %+v", old.RuntimeHandlers, old.Features)
	}
}

func TestStatusPatchReplacesAddresses(t *testing.T) {
	t.Parallel()
	a := corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: "InternalIP", Address: "1.1.1.1"}},
		Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}}
	b := *a.DeepCopy()
	if p, err := statusPatch(&a, &b); err != nil || string(p) != "{}" {
		t.Error(string(p), err)
	}
	b.Addresses = append(b.Addresses, corev1.NodeAddress{Type: "InternalIP", Address: "::1"})
	p, err := statusPatch(&a, &b)
	var got struct {
		Status struct{ Addresses []map[string]string }
	}
	if err != nil || json.Unmarshal(p, &got) != nil || len(got.Status.Addresses) != 3 ||
		got.Status.Addresses[0]["$patch"] != "replace" {
		t.Error(string(p), err)
	}
	if changed(&a, &a) || !changed(&a, &b) {
		t.Error("changed")
	}
}

func TestLinux(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{"var/lib/dbus/machine-id": "abc\n",
		"proc/sys/kernel/random/boot_id": "booted\n", "proc/self/uid_map": "0 1000 1\n1 100000 65536\n",
		"etc/os-release":            "NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
		"proc/sys/kernel/osrelease": "6.1\n", "proc/meminfo": "MemTotal:  2048 kB\nSwapTotal: 1024 kB\n",
		"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3\n"} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := newLinux(root, root)
	if swap := l.Info().Swap; swap == nil || *swap.Capacity != 1<<20 {
		t.Error("swap", swap)
	}
	if without := newLinux(t.TempDir(), root).Info().Swap; without != nil {
		t.Error("a machine without swap tells of it", without)
	}
	if i := l.Info(); i.MachineID != "abc" || i.SystemUUID != "abc" || i.OSImage != "Debian GNU/Linux 12 (bookworm)" ||
		i.KernelVersion != "6.1" || i.BootID != "booted" || !*i.RunningInUserNamespace {
		t.Error(i)
	}
	c := l.Capacity()
	if huge := c["hugepages-2Mi"]; c.Memory().Value() != 2<<20 || huge.Value() != 6<<20 || c.Cpu().Value() < 1 ||
		c.StorageEphemeral().Value() == 0 || c.StorageEphemeral().Format != resource.DecimalSI {
		t.Error(c)
	}
	if real := NewLinux(root).Info(); real.KernelVersion == "" || real.RunningInUserNamespace == nil {
		t.Error("not all is read from this machine", real)
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	var many []corev1.ContainerImage
	for i := range 60 {
		many = append(many, corev1.ContainerImage{Names: make([]string, 7), SizeBytes: int64(i)})
	}
	got := shorten(many, 50)
	if len(got) != 50 || got[0].SizeBytes != 59 || len(got[0].Names) != 5 || len(many[59].Names) != 7 {
		t.Error(len(got), got[0])
	}
	if all, none := shorten(many, -1), shorten(many, 0); len(all) != 60 || len(none) != 0 {
		t.Error(len(all), len(none))
	}
}
