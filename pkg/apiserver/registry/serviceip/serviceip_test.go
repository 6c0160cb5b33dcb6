package serviceip_test

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry/registrytest"
	"bonsai/pkg/apiserver/registry/serviceip"
)

func allocator(t *testing.T, stored []runtime.Object, ranges ...string) *serviceip.Allocator {
	t.Helper()
	cfg := serviceip.Config{Stores: registrytest.Stores{registrytest.Of(t, "services", stored...)}, FirstNodePort: 30000, LastNodePort: 30003, Random: rand.New(rand.NewPCG(1, 2))}
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

func update(t *testing.T, a *serviceip.Allocator, s, old *corev1.Service) *corev1.Service {
	t.Helper()
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
		if _, ok := seen[s.Spec.ClusterIP]; ok || !netip.MustParsePrefix("10.0.0.0/29").Contains(netip.MustParseAddr(s.Spec.ClusterIP)) {
			t.Errorf("got %s after %v", s.Spec.ClusterIP, seen)
		}
		seen[s.Spec.ClusterIP] = s
	}
	refused(t, a, svc(corev1.ServiceSpec{}), "failed to allocate a serviceIP: range is full")
	a.AfterDelete(seen["10.0.0.3"])
	if s := create(t, a, svc(corev1.ServiceSpec{})); s.Spec.ClusterIP != "10.0.0.3" {
		t.Errorf("got %s, want what was freed", s.Spec.ClusterIP)
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
	if len(s.Spec.ClusterIPs) != 1 || s.Spec.ClusterIPs[0] != "10.96.0.10" || *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		t.Errorf("spec %+v", s.Spec)
	}
	refused(t, a, svc(fixed), `spec.clusterIPs: Invalid value: ["10.96.0.10"]: failed to allocate IP 10.96.0.10: provided IP is already allocated`)
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "::1"}), "spec.clusterIPs[0]: Invalid value: [\"::1\"]: IPv6 is not configured on this cluster")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.77"}}), "must be empty when `clusterIP` is not specified")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.0.77", IPFamilies: []corev1.IPFamily{"IPv6"}}), "expected an IPv6 value as indicated by `ipFamilies[0]`")
	refused(t, a, svc(corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{"IPv4", "IPv4"}}), "spec.ipFamilies[1]: Duplicate value")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.97.0.1"}), "failed to allocate IP 10.97.0.1: the provided IP (10.97.0.1) is not in the valid range. The range of valid IPs is ")
	refused(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.255.255"}), "is not in the valid range")
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	require, prefer := corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicyPreferDualStack
	single := allocator(t, nil, "10.96.0.0/16")
	refused(t, single, svc(corev1.ServiceSpec{IPFamilyPolicy: &require}), "this cluster is not configured for dual-stack services")
	refused(t, single, svc(corev1.ServiceSpec{IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol}}), `spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`)
	if s := create(t, single, svc(corev1.ServiceSpec{ClusterIP: "None"})); len(s.Spec.IPFamilies) != 2 || *s.Spec.IPFamilyPolicy != require || s.Spec.ClusterIPs[0] != "None" {
		t.Errorf("headless without selector: %+v", s.Spec)
	}
	if s := create(t, single, svc(corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"a": "b"}})); len(s.Spec.IPFamilies) != 1 {
		t.Errorf("headless: %+v", s.Spec)
	}
	if s := create(t, single, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName})); s.Spec.ClusterIP != "" || s.Spec.IPFamilies != nil {
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
	again := create(t, dual, svc(corev1.ServiceSpec{IPFamilyPolicy: &require, ClusterIP: "10.96.7.7", ClusterIPs: []string{"10.96.7.7", s.Spec.ClusterIPs[1]}, IPFamilies: []corev1.IPFamily{"IPv4", "IPv6"}}))
	if again.Spec.ClusterIPs[1] != s.Spec.ClusterIPs[1] {
		t.Errorf("the second address was not given back: %v", again.Spec.ClusterIPs)
	}
}

func TestNodePorts(t *testing.T) {
	t.Parallel()
	a := allocator(t, nil, "10.96.0.0/16")
	ports := func(n int32) []corev1.ServicePort {
		return []corev1.ServicePort{{Name: "t", Port: 53, Protocol: corev1.ProtocolTCP, NodePort: n}, {Name: "u", Port: 53, Protocol: corev1.ProtocolUDP}}
	}
	s := create(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(30002)}))
	if s.Spec.Ports[1].NodePort != 30002 {
		t.Errorf("the two protocols of a port share no node port: %+v", s.Spec.Ports)
	}
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(30002)}), "spec.ports[0].nodePort: Invalid value: 30002: provided port is already allocated")
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: ports(80)}), "The range of valid ports is 30000-30003")

	twice := []corev1.ServicePort{{Name: "a", Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30003}, {Name: "b", Port: 81, Protocol: corev1.ProtocolTCP, NodePort: 30003}}
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: twice}), "spec.ports[1].nodePort: Invalid value: 30003: provided port is already allocated")

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
	// The type alone changes: node ports go, and are free again.
	plain := put.DeepCopy()
	plain.Spec.Type = corev1.ServiceTypeClusterIP
	if plain = update(t, a, plain, put); plain.Spec.Ports[0].NodePort != 0 || plain.Spec.ClusterIP != s.Spec.ClusterIP {
		t.Errorf("as ClusterIP: %+v", plain.Spec)
	}
	for range 4 {
		create(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}))
	}
	refused(t, a, svc(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}), "failed to allocate a nodePort: range is full")
}

func TestExternalNameGivesTheAddressBack(t *testing.T) {
	t.Parallel()
	a := allocator(t, nil, "10.96.0.0/16")
	s := create(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.0.9"}))
	ext := s.DeepCopy()
	ext.Spec.Type, ext.Spec.ExternalName = corev1.ServiceTypeExternalName, "x.y"
	if ext = update(t, a, ext, s); ext.Spec.ClusterIP != "" || ext.Spec.ClusterIPs != nil || ext.Spec.IPFamilies != nil {
		t.Errorf("external name: %+v", ext.Spec)
	}
	create(t, a, svc(corev1.ServiceSpec{ClusterIP: "10.96.0.9"}))
}
