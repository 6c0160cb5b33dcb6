package node

import (
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
	"bonsai/pkg/kubelet/runtime"
)

// TestExternalCloud: what a kubelet v1.36.3 registers with --cloud-provider=external, with and without --node-ip.
func TestExternalCloud(t *testing.T) {
	t.Parallel()
	hostname := corev1.NodeAddress{Type: corev1.NodeHostName, Address: "n1"}
	internal := func(ip string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip}
	}
	taint := corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true",
		Effect: corev1.TaintEffectNoSchedule}
	own := corev1.Taint{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		external   bool
		ips        []net.IP
		taints     []corev1.Taint
		addresses  []corev1.NodeAddress
		taintsWant []corev1.Taint
		provided   string
	}{
		"no cloud": {false, []net.IP{net.ParseIP("10.9.9.9")}, []corev1.Taint{own},
			[]corev1.NodeAddress{internal("10.9.9.9"), hostname}, []corev1.Taint{own}, ""},
		"no addresses": {true, nil, []corev1.Taint{own}, []corev1.NodeAddress{hostname}, []corev1.Taint{own, taint},
			""},
		"an address": {true, []net.IP{net.ParseIP("10.9.9.9")}, nil,
			[]corev1.NodeAddress{internal("10.9.9.9"), hostname}, []corev1.Taint{taint}, "10.9.9.9"},
		"two": {true, []net.IP{net.ParseIP("10.9.9.9"), net.ParseIP("fd00::9")}, []corev1.Taint{taint},
			[]corev1.NodeAddress{internal("10.9.9.9"), internal("fd00::9"), hostname}, []corev1.Taint{taint},
			"10.9.9.9,fd00::9"},
	} {
		client := fake.NewClientset()
		n := cloudNode(t, client, c.external, c.ips, c.taints)
		node, err := n.tryRegister(t.Context())
		if err != nil {
			t.Fatal(name, err)
		}
		if !slices.Equal(node.Status.Addresses, c.addresses) ||
			!slices.EqualFunc(node.Spec.Taints, c.taintsWant, func(a, b corev1.Taint) bool {
				return a == b
			}) ||
			node.Annotations["alpha.kubernetes.io/provided-node-ip"] != c.provided {
			t.Errorf("%s: addresses %v, taints %v, annotations %v", name, node.Status.Addresses, node.Spec.Taints,
				node.Annotations)
		}
	}
}

// Addresses that the cloud's controller manager has set stay, and are those of the node's pods. A changed --node-ip
// changes the annotation.
func TestAddressesOfTheCloud(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset()
	cloud := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"},
		{Type: corev1.NodeExternalIP, Address: "192.0.2.7"}}
	have := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1",
		Annotations: map[string]string{providedIP: "10.9.9.9", "other": "stays"}},
		Status: corev1.NodeStatus{Addresses: cloud}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), have, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ips  []net.IP
		want string
	}{{[]net.IP{net.ParseIP("10.0.0.7")}, "10.0.0.7"}, {nil, ""}} {
		n := cloudNode(t, client, true, c.ips, nil)
		node, err := n.tryRegister(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := node.Annotations[providedIP]; got != c.want || ok != (c.want != "") ||
			node.Annotations["other"] != "stays" || len(node.Spec.Taints) != 0 {
			t.Errorf("with --node-ip %v: %v, taints %v", c.ips, node.Annotations, node.Spec.Taints)
		}
		n.seen(node)
		if _, err := n.syncStatus(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(n.Object().Status.Addresses, cloud) || !slices.Equal(n.HostIPs(), []string{"10.0.0.7"}) {
			t.Errorf("with --node-ip %v: %v, the pods' %v", c.ips, n.Object().Status.Addresses, n.HostIPs())
		}
	}
	if before := cloudNode(t, client, true, nil, nil); len(before.HostIPs()) != 0 {
		t.Error("addresses before the cloud told them:", before.HostIPs())
	}
}

func cloudNode(t *testing.T, client *fake.Clientset, external bool, ips []net.IP, taints []corev1.Taint) *Node {
	t.Helper()
	rt := &fakeRuntime{}
	rt.set(runtime.Health{RuntimeReady: true, NetworkReady: true})
	n, err := New(Config{Client: kubelettest.Client{Interface: client}, Name: "n1", IPs: ips, ExternalCloud: external,
		Taints:  taints,
		Runtime: rt, Machine: fakeMachine{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// One unspecified address says the family of the address that is found.
func TestFamilyOfTheAddress(t *testing.T) {
	t.Parallel()
	got, err := findAddresses([]net.IP{net.IPv4zero}, "n1", true)
	if err != nil {
		t.Skip("SKIPPED: this machine has no default route:", err)
	}
	if ip := net.ParseIP(got[0].Address); len(got) != 2 || ip == nil || ip.To4() == nil || ip.IsUnspecified() {
		t.Error(got)
	}
	n := &Node{cfg: Config{ExternalCloud: true, IPs: []net.IP{net.IPv6unspecified}}}
	if n.provided() != "" {
		t.Error("a family is not an address:", n.provided())
	}
}
