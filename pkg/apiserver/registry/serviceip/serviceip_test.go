package serviceip_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/core"
	"bonsai/pkg/apiserver/registry/registrytest"
	"bonsai/pkg/apiserver/registry/serviceip"
	"bonsai/pkg/apiserver/storage/memory"
)

func allocator(t *testing.T, stored []runtime.Object, ranges ...string) *serviceip.Allocator {
	t.Helper()
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
	return on(t, registrytest.Stores{registrytest.Of(t, "services", stored...),
		registrytest.Of(t, "ipaddresses.networking.k8s.io"),
		registrytest.Of(t, "servicecidrs.networking.k8s.io", cidr)}, memory.New(nil), ranges...)
}

// on is the allocator of one of the servers on the same storage.
func on(t *testing.T, stores registrytest.Stores, ports serviceip.Storage, ranges ...string) *serviceip.Allocator {
	t.Helper()
	cfg := serviceip.Config{Stores: stores, Storage: ports, FirstNodePort: 30000, LastNodePort: 30003,
		Random: rand.New(rand.NewPCG(1, 2)), Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	for _, r := range ranges {
		cfg.Ranges = append(cfg.Ranges, netip.MustParsePrefix(r))
	}
	a, err := serviceip.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func svc(spec corev1.ServiceSpec) *corev1.Service {
	if spec.Type == "" {
		spec.Type = corev1.ServiceTypeClusterIP
	}
	if spec.Ports == nil && spec.Type != corev1.ServiceTypeExternalName {
		spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "default"}, Spec: spec}
}

func create(t *testing.T, a *serviceip.Allocator, s *corev1.Service) *corev1.Service {
	t.Helper()
	done, err := a.BeforeCreate(t.Context(), s, false)
	if err != nil {
		t.Fatal(err)
	}
	done(true)
	return s
}

// update is an update as the store makes it: the strategy comes first.
func update(t *testing.T, a *serviceip.Allocator, s, old *corev1.Service) *corev1.Service {
	t.Helper()
	for _, row := range core.Rows(time.Hour, time.Now) {
		if row.Resource == "services" {
			row.Strategy.PrepareUpdate(s, old)
		}
	}
	done, err := a.BeforeUpdate(t.Context(), s, old, false)
	if err != nil {
		t.Fatal(err)
	}
	done(true)
	return s
}

func refused(t *testing.T, a *serviceip.Allocator, s *corev1.Service, message string) {
	t.Helper()
	if _, err := a.BeforeCreate(t.Context(), s, false); err == nil || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want …%s…", err, message)
	}
}

func TestTheRangeFillsAndEmpties(t *testing.T) {
	t.Parallel()
	a := allocator(t, []runtime.Object{svc(corev1.ServiceSpec{ClusterIP: "10.0.0.1"})}, "10.0.0.0/29")
	seen := map[string]*corev1.Service{"10.0.0.1": nil}
	for range 5 { // .1 is stored already, .0 and .7 are no addresses of hosts
		s := create(t, a, svc(corev1.ServiceSpec{}))
		if _, ok := seen[s.Spec.ClusterIP]; ok ||
			!netip.MustParsePrefix("10.0.0.0/29").Contains(netip.MustParseAddr(s.Spec.ClusterIP)) {
			t.Errorf("got %s after %v", s.Spec.ClusterIP, seen)
		}
		seen[s.Spec.ClusterIP] = s
	}
	full := svc(corev1.ServiceSpec{})
	refused(t, a, full, fmt.Sprintf("failed to allocate a serviceIP for Service %q: range is full", full.Name))
	a.AfterDelete(t.Context(), seen["10.0.0.3"])
	if s := create(t, a, svc(corev1.ServiceSpec{})); s.Spec.ClusterIP != "10.0.0.3" {
		t.Errorf("got %s, want what was freed", s.Spec.ClusterIP)
	}
}

// A name that no IPAddress can have as its parent's is the client's fault, also where the server chooses the address.
func TestNamesOfNoParent(t *testing.T) {
	t.Parallel()
	a := allocator(t, nil, "10.96.0.0/16")
	for name, cause := range map[string]string{"": "Required value",
		"a/b": `Invalid value: "a/b": may not contain '/'`} {
		s := svc(corev1.ServiceSpec{})
		s.Name = name
		refused(t, a, s, fmt.Sprintf(
			`Service %q is invalid: spec.clusterIPs: Invalid value: [""]: failed to allocate IP: IPAddress.networking.k8s.io`, name))
		refused(t, a, s, " is invalid: spec.parentRef.name: "+cause)
	}
}

func TestChosenAddresses(t *testing.T) {
	t.Parallel()
	a := allocator(t, nil, "10.96.0.0/16")
	fixed := corev1.ServiceSpec{ClusterIP: "10.96.0.10"}
	done, err := a.BeforeCreate(t.Context(), svc(fixed), true)
	if err != nil {
		t.Fatal(err)
	}
	done(true) // a dry run took nothing
	done, err = a.BeforeCreate(t.Context(), svc(fixed), false)
	if err != nil {
		t.Fatal(err)
	}
	done(false) // the write failed: given back
	s := create(t, a, svc(fixed))
	if len(s.Spec.ClusterIPs) != 1 || s.Spec.ClusterIPs[0] != "10.96.0.10" ||
		*s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		t.Errorf("spec %+v", s.Spec)
	}
	refused(t, a, svc(fixed),
		`spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: provided IP is already allocated`)
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "::1"}),
		"spec.clusterIPs[0]: Invalid value: [\"::1\"]: IPv6 is not configured on this cluster")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.77"}}),
		"must be empty when `clusterIP` is not specified")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.0.77", IPFamilies: []corev1.IPFamily{"IPv6"}}),
		"expected an IPv6 value as indicated by `ipFamilies[0]`")
	refused(t, a, svc(corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{"IPv4", "IPv4"}}),
		"spec.ipFamilies[1]: Duplicate value")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.97.0.1"}),
		"failed to allocate IP 10.97.0.1: the provided network does not match the current range")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.255.255"}),
		"the provided network does not match the current range")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.0.0"}),
		"the provided network does not match the current range")
	_, err = a.BeforeCreate(t.Context(), svc(corev1.ServiceSpec{ClusterIP: "10.97.0.1"}), true)
	if err == nil || !strings.Contains(err.Error(),
		"the provided IP (10.97.0.1) is not in the valid range. The range of valid IPs is 10.96.0.0/16") {
		t.Errorf("a dry run outside of the range: %v", err)
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	require, prefer := corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicyPreferDualStack
	single := allocator(t, nil, "10.96.0.0/16")
	refused(t, single, svc(corev1.ServiceSpec{IPFamilyPolicy: &require}),
		"this cluster is not configured for dual-stack services")
	refused(t, single, svc(corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}}),
		`spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`)
	if s := create(t, single, svc(corev1.ServiceSpec{ClusterIP: "None"})); len(s.Spec.IPFamilies) != 2 ||
		*s.Spec.IPFamilyPolicy != require || s.Spec.ClusterIPs[0] != "None" {
		t.Errorf("headless without selector: %+v", s.Spec)
	}
	if s := create(t, single,
		svc(corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"a": "b"}})); len(
		s.Spec.IPFamilies) != 1 {
		t.Errorf("headless: %+v", s.Spec)
	}
	if s := create(t, single, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName})); s.Spec.ClusterIP != "" ||
		s.Spec.IPFamilies != nil {
		t.Errorf("external name: %+v", s.Spec)
	}
	dual := allocator(t, nil, "10.96.0.0/16", "fd00::/108")
	s := create(t, dual, svc(corev1.ServiceSpec{IPFamilyPolicy: &prefer}))
	if len(s.Spec.ClusterIPs) != 2 || !strings.HasPrefix(s.Spec.ClusterIPs[1], "fd00::") {
		t.Errorf("dual stack: %v", s.Spec.ClusterIPs)
	}
	down := s.DeepCopy()
	down.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	if down = update(t, dual, down, s); len(down.Spec.ClusterIPs) != 1 || len(down.Spec.IPFamilies) != 1 {
		t.Errorf("back to single stack: %+v", down.Spec)
	}
	again := create(t, dual,
		svc(corev1.ServiceSpec{IPFamilyPolicy: &require, ClusterIP: "10.96.7.7",
			ClusterIPs: []string{"10.96.7.7", s.Spec.ClusterIPs[1]}, IPFamilies: []corev1.IPFamily{"IPv4", "IPv6"}}))
	if again.Spec.ClusterIPs[1] != s.Spec.ClusterIPs[1] {
		t.Errorf("the second address was not given back: %v", again.Spec.ClusterIPs)
	}
}

func TestNodePorts(t *testing.T) {
	t.Parallel()
	a := allocator(t, nil, "10.96.0.0/16")
	ports := func(n int32) []corev1.ServicePort {
		return []corev1.ServicePort{{Name: "t", Port: 53, Protocol: corev1.ProtocolTCP, NodePort: n},
			{Name: "u", Port: 53, Protocol: corev1.ProtocolUDP}}
	}
	s := create(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(30002)}))
	if s.Spec.Ports[1].NodePort != 30002 {
		t.Errorf("the two protocols of a port share no node port: %+v", s.Spec.Ports)
	}
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(30002)}),
		"spec.ports[0].nodePort: Invalid value: 30002: provided port is already allocated")
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(80)}),
		"The range of valid ports is 30000-30003")

	twice := []corev1.ServicePort{{Name: "a", Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30003},
		{Name: "b", Port: 81, Protocol: corev1.ProtocolTCP, NodePort: 30003}}
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: twice}),
		"spec.ports[1].nodePort: Invalid value: 30003: provided port is already allocated")

	// A PUT of the manifest keeps what the server had filled in.
	put := update(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(0)}), s)
	if put.Spec.Ports[0].NodePort != 30002 || put.Spec.ClusterIP != s.Spec.ClusterIP {
		t.Errorf("after PUT: %+v", put.Spec)
	}
	// A port keeps its node port under another number, by its name.
	moved := s.DeepCopy()
	moved.Spec.Ports[0].Port, moved.Spec.Ports[0].NodePort, moved.Spec.Ports[1].NodePort = 54, 0, 0
	if moved = update(t, a, moved, s); moved.Spec.Ports[0].NodePort != 30002 || moved.Spec.Ports[1].NodePort != 30002 {
		t.Errorf("after a change of number: %+v", moved.Spec.Ports)
	}
	// A port that comes later has one of its own.
	more := put.DeepCopy()
	more.Spec.Ports = append(more.Spec.Ports, corev1.ServicePort{Name: "s", Port: 53, Protocol: corev1.ProtocolSCTP})
	if more = update(t, a, more, put); more.Spec.Ports[2].NodePort == 30002 || more.Spec.Ports[2].NodePort == 0 {
		t.Errorf("with a port more: %+v", more.Spec.Ports)
	}
	put = update(t, a, put, more)
	// The type alone changes: node ports go, and are free again.
	plain := put.DeepCopy()
	plain.Spec.Type = corev1.ServiceTypeClusterIP
	if plain = update(t, a, plain, put); plain.Spec.Ports[0].NodePort != 0 || plain.Spec.ClusterIP != s.Spec.ClusterIP {
		t.Errorf("as ClusterIP: %+v", plain.Spec)
	}
	for range 4 {
		create(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}))
	}
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}),
		"failed to allocate a nodePort: range is full")
}

// TestNodePortsOfNew: a real kube-apiserver v1.36.3 gives, refuses and reserves the same.
func TestNodePortsOfNew(t *testing.T) {
	t.Parallel()
	const tcp, udp, sctp = corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP
	of := func(number int32, protocol corev1.Protocol, nodePort int32) corev1.ServicePort {
		return corev1.ServicePort{Port: number, Protocol: protocol, NodePort: nodePort}
	}
	const taken = ".nodePort: Invalid value: %d: provided port is already allocated"
	for name, c := range map[string]struct {
		ports  []corev1.ServicePort
		noneOf bool // allocateLoadBalancerNodePorts is false
		want   []int32
		fault  string
	}{
		"one for both protocols": {ports: []corev1.ServicePort{of(80, tcp, 0), of(80, udp, 30001)},
			want: []int32{30001, 30001}},
		"one of each, and the first": {
			ports: []corev1.ServicePort{of(80, tcp, 30001), of(80, udp, 30002), of(80, sctp, 0)},
			want:  []int32{30001, 30002, 30001}},
		"the first twice": {
			ports: []corev1.ServicePort{of(80, tcp, 30001), of(80, udp, 30002), of(80, sctp, 30001)},
			want:  []int32{30001, 30002, 30001}},
		"another twice": {
			ports: []corev1.ServicePort{of(80, tcp, 30001), of(80, udp, 30002), of(80, sctp, 30002)},
			fault: "spec.ports[2]" + fmt.Sprintf(taken, 30002)},
		"for ports of two numbers": {ports: []corev1.ServicePort{of(80, tcp, 30001), of(81, udp, 30001)},
			fault: "spec.ports[1]" + fmt.Sprintf(taken, 30001)},
		"taken": {ports: []corev1.ServicePort{of(80, tcp, 0), of(80, udp, 30000)},
			fault: "spec.ports[0]" + fmt.Sprintf(taken, 30000)},
		"twice for one port, as validation": {ports: []corev1.ServicePort{of(80, tcp, 30001), of(80, tcp, 0)},
			want: []int32{30001, 30001}},
		"none but those that are chosen": {
			ports: []corev1.ServicePort{of(80, tcp, 30001), of(80, udp, 0), of(81, tcp, 0)}, noneOf: true,
			want: []int32{30001, 0, 0}},
		"chosen, but taken": {ports: []corev1.ServicePort{of(80, tcp, 30000)}, noneOf: true,
			fault: "spec.ports[0]" + fmt.Sprintf(taken, 30000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := allocator(t, nil, "10.96.0.0/16")
			create(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort,
				Ports: []corev1.ServicePort{of(53, tcp, 30000)}}))
			spec := corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: c.ports}
			if c.noneOf {
				spec.Type, spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, new(bool)
			}
			if c.fault != "" {
				refused(t, a, svc(spec), c.fault)
				return
			}
			var got []int32
			for _, p := range create(t, a, svc(spec)).Spec.Ports {
				got = append(got, p.NodePort)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestExternalNameGivesTheAddressBack(t *testing.T) {
	t.Parallel()
	a := allocator(t, nil, "10.96.0.0/16")
	s := create(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.0.9"}))
	ext := s.DeepCopy()
	ext.Spec.Type, ext.Spec.ExternalName = corev1.ServiceTypeExternalName, "x.y"
	if ext = update(t, a, ext, s); ext.Spec.ClusterIP != "" || ext.Spec.ClusterIPs != nil ||
		ext.Spec.IPFamilies != nil {
		t.Errorf("external name: %+v", ext.Spec)
	}
	create(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.0.9"}))
}

// TestSharedByServers: several servers give no address twice, without hearing of each other but through the objects.
func TestSharedByServers(t *testing.T) {
	t.Parallel()
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.0.0.0/28"}}}
	stores := registrytest.Stores{registrytest.Of(t, "services"), registrytest.Of(t, "ipaddresses.networking.k8s.io"),
		registrytest.Of(t, "servicecidrs.networking.k8s.io", cidr)}
	ports := memory.New(nil)
	servers := []*serviceip.Allocator{on(t, stores, ports, "10.0.0.0/28"), on(t, stores, ports, "10.0.0.0/28")}
	made := map[string]*corev1.Service{}
	for i := range 14 {
		s := svc(corev1.ServiceSpec{})
		s.Name = fmt.Sprintf("s%d", i)
		s = create(t, servers[i%2], s)
		if made[s.Spec.ClusterIP] != nil {
			t.Errorf("%s was given twice", s.Spec.ClusterIP)
		}
		made[s.Spec.ClusterIP] = s
		obj, err := stores.Store(networkingv1.Resource("ipaddresses")).Get(t.Context(), "", s.Spec.ClusterIP)
		if err != nil {
			t.Fatal(err)
		}
		a := obj.(*networkingv1.IPAddress)
		if p := a.Spec.ParentRef; p.Resource != "services" || p.Namespace != "default" || p.Name != s.Name ||
			a.Labels["ipaddress.kubernetes.io/ip-family"] != "IPv4" ||
			a.Labels["ipaddress.kubernetes.io/managed-by"] != "ipallocator.k8s.io" {
			t.Errorf("%+v", a)
		}
	}
	refused(t, servers[0], svc(corev1.ServiceSpec{}), "range is full")
	refused(t, servers[0], svc(corev1.ServiceSpec{ClusterIP: "10.0.0.5"}), "provided IP is already allocated")
	servers[0].AfterDelete(t.Context(), made["10.0.0.5"])
	other := svc(corev1.ServiceSpec{})
	servers[1].AfterDelete(t.Context(), svc(corev1.ServiceSpec{ClusterIP: "10.0.0.6"})) // which never had it
	if other = create(t, servers[1], other); other.Spec.ClusterIP != "10.0.0.5" {
		t.Errorf("the other server has not heard that 10.0.0.5 is free: %s", other.Spec.ClusterIP)
	}
}

// TestRanges: addresses come of every range that is ready, the default one first.
func TestRanges(t *testing.T) {
	t.Parallel()
	cidr := func(name, prefix string, conditions ...metav1.Condition) *networkingv1.ServiceCIDR {
		return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:   networkingv1.ServiceCIDRSpec{CIDRs: []string{prefix}},
			Status: networkingv1.ServiceCIDRStatus{Conditions: conditions}}
	}
	ending := cidr("ending", "10.3.0.0/29", metav1.Condition{Type: "Ready", Status: "False"})
	stores := registrytest.Stores{registrytest.Of(t, "services"), registrytest.Of(t, "ipaddresses.networking.k8s.io"),
		registrytest.Of(t, "servicecidrs.networking.k8s.io", cidr("a", "10.2.0.0/30"),
			cidr("kubernetes", "10.1.0.0/30", metav1.Condition{Type: "Ready", Status: "True"}), ending,
			cidr("tiny", "10.4.0.0/32"))}
	a := on(t, stores, memory.New(nil), "10.1.0.0/30")
	var got []string
	for range 4 {
		got = append(got, create(t, a, svc(corev1.ServiceSpec{})).Spec.ClusterIP[:4])
	}
	if strings.Join(got, " ") != "10.1 10.1 10.2 10.2" {
		t.Errorf("%v", got)
	}
	refused(t, a, svc(corev1.ServiceSpec{}), "range is full")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.3.0.1"}),
		"the provided network does not match the current range")
}
