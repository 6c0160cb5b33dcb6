package core

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// nodePortService is a service as it is stored, with all that allocators gave it.
func nodePortService() *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack),
		Ports: []corev1.ServicePort{{Name: "a", Port: 80, NodePort: 30080}, {Name: "b", Port: 81, NodePort: 30081}},
	}}
	defaultService(s)
	return s
}

// TestServiceUpdateKeepsAllocations: what a PUT leaves out stays, what the new type has no use for goes.
func TestServiceUpdateKeepsAllocations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.ServiceSpec)
		want   func(*corev1.ServiceSpec)
	}{
		"addresses left out": {
			change: func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "", nil },
			want:   func(*corev1.ServiceSpec) {},
		},
		"node ports left out": {
			change: func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 0 },
			want:   func(*corev1.ServiceSpec) {},
		},
		"node port taken by another port": {
			change: func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 30080 },
			want:   func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 30080 },
		},
		"to ClusterIP": {
			change: func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeClusterIP },
			want: func(s *corev1.ServiceSpec) {
				s.Type, s.ExternalTrafficPolicy = corev1.ServiceTypeClusterIP, ""
				s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 0
			},
		},
		"to ExternalName": {
			change: func(s *corev1.ServiceSpec) {
				s.Type, s.ExternalName = corev1.ServiceTypeExternalName, "x.example"
			},
			want: func(s *corev1.ServiceSpec) {
				s.Type, s.ExternalName, s.ExternalTrafficPolicy = corev1.ServiceTypeExternalName, "x.example", ""
				s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy, s.InternalTrafficPolicy = "", nil, nil, nil,
					nil
				s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 0
			},
		},
		"to a load balancer that is given none": {
			change: func(s *corev1.ServiceSpec) {
				s.Type, s.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, new(bool)
			},
			want: func(s *corev1.ServiceSpec) {
				s.Type, s.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, new(bool)
			},
		},
		"to ExternalName, without the address": {
			change: func(s *corev1.ServiceSpec) {
				s.Type, s.ClusterIP, s.ClusterIPs = corev1.ServiceTypeExternalName, "", nil
			},
			want: func(s *corev1.ServiceSpec) {
				s.Type, s.ExternalTrafficPolicy = corev1.ServiceTypeExternalName, ""
				s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy, s.InternalTrafficPolicy = "", nil, nil, nil,
					nil
				s.Ports[0].NodePort, s.Ports[1].NodePort = 0, 0
			},
		},
		"clusterIP changed by a client that does not know the list": {
			change: func(s *corev1.ServiceSpec) { s.ClusterIP = "10.96.0.10" },
			want:   func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "10.96.0.10", []string{"10.96.0.10"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old, obj, want := nodePortService(), nodePortService(), nodePortService()
			c.change(&obj.Spec)
			c.want(&want.Spec)
			prepareServiceUpdate(obj, old)
			if diff := cmp.Diff(want.Spec, obj.Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestChosenNodePortsGoWithTheType: a load balancer that is given no node ports may have chosen ones, which a ClusterIP
// drops.
func TestChosenNodePortsGoWithTheType(t *testing.T) {
	t.Parallel()
	old := nodePortService()
	old.Spec.Type, old.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, new(bool)
	obj := old.DeepCopy()
	obj.Spec.Type = corev1.ServiceTypeClusterIP
	if prepareServiceUpdate(obj, old); obj.Spec.Ports[0].NodePort != 0 ||
		obj.Spec.AllocateLoadBalancerNodePorts != nil {
		t.Errorf("%+v", obj.Spec)
	}
}

// TestServiceWarnings: in the order of kube-apiserver 1.36.3.
func TestServiceWarnings(t *testing.T) {
	t.Parallel()
	const format = `: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`
	deprecated := "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
	for name, c := range map[string]struct {
		spec corev1.ServiceSpec
		want []string
	}{
		"external": {corev1.ServiceSpec{ExternalIPs: []string{"2001:DB8::1"}},
			[]string{"spec.externalIPs[0]" + format, deprecated}},
		"headless": {corev1.ServiceSpec{ClusterIP: "None", LoadBalancerIP: "2001:DB8::1",
			ExternalIPs: []string{"2001:DB8::1"}, SessionAffinity: corev1.ServiceAffinityClientIP}, []string{
			"spec.loadBalancerIP is ignored for headless services", "spec.externalIPs is ignored for headless services",
			"spec.SessionAffinity is ignored for headless services",
			"spec.externalIPs[0]" + format, "spec.loadBalancerIP" + format}},
		"by name": {corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "a.b",
			ExternalIPs: []string{"1.2.3.4"}},
			[]string{`spec.externalIPs is ignored when spec.type is "ExternalName"`}},
	} {
		if got := serviceWarnings(&corev1.Service{Spec: c.spec}, nil); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNodeRoles(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{}
	n.Labels = map[string]string{"node-role.kubernetes.io/b": "", "node-role.kubernetes.io/a": "x",
		"kubernetes.io/role": "a", "node-role.kubernetes.io/": "", "other": "c"}
	if diff := cmp.Diff([]string{"a", "b"}, nodeRoles(n)); diff != "" {
		t.Error(diff)
	}
}
