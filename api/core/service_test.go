package core

import (
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
			change: func(s *corev1.ServiceSpec) { s.Type, s.ExternalName = corev1.ServiceTypeExternalName, "x.example" },
			want: func(s *corev1.ServiceSpec) {
				s.Type, s.ExternalName, s.ExternalTrafficPolicy = corev1.ServiceTypeExternalName, "x.example", ""
				s.ClusterIP, s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy, s.InternalTrafficPolicy = "", nil, nil, nil, nil
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

func TestNodeRoles(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{}
	n.Labels = map[string]string{"node-role.kubernetes.io/b": "", "node-role.kubernetes.io/a": "x", "kubernetes.io/role": "a", "node-role.kubernetes.io/": "", "other": "c"}
	if diff := cmp.Diff([]string{"a", "b"}, NodeRoles(n)); diff != "" {
		t.Error(diff)
	}
}
