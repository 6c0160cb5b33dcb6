package network

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/plan"
)

// TestLocalBalancers: only Services of policy Local have routes of their own, and only to addresses of the cluster's
// range.
func TestLocalBalancers(t *testing.T) {
	t.Parallel()
	c := plan.Config{NodeSubnet: netip.MustParsePrefix("10.77.0.0/24")}
	service := func(kind corev1.ServiceType, policy corev1.ServiceExternalTrafficPolicy, port int32,
		ips ...string) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, ExternalTrafficPolicy: policy,
			HealthCheckNodePort: port}}
		for _, ip := range ips {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
		}
		return s
	}
	const local, whole = corev1.ServiceExternalTrafficPolicyLocal, corev1.ServiceExternalTrafficPolicyCluster
	got := localBalancers(c, []*corev1.Service{
		service(corev1.ServiceTypeLoadBalancer, local, 31000, "10.77.0.200", "192.0.2.1", "10.77.0.11", ""),
		service(corev1.ServiceTypeLoadBalancer, whole, 0, "10.77.0.201"),
		service(corev1.ServiceTypeNodePort, local, 31001, "10.77.0.202"),
		service(corev1.ServiceTypeLoadBalancer, local, 31002, "192.0.2.2"),
		service(corev1.ServiceTypeLoadBalancer, local, 31003),
	})
	if len(got) != 1 || got[0].healthCheck != 31000 || fmt.Sprint(got[0].addresses) != "[10.77.0.200]" {
		t.Errorf("%v", got)
	}
}

// TestAskHealth: a node has endpoints if it says so at the port; others, and those that do not answer or lead
// elsewhere, have none.
func TestAskHealth(t *testing.T) {
	t.Parallel()
	var nodes []netip.Addr
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := first.Addr().(*net.TCPAddr).Port
	for i, code := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusFound, http.StatusOK} {
		a := netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)})
		nodes = append(nodes, a)
		listener := first
		if i > 0 {
			if listener, err = net.Listen("tcp", netip.AddrPortFrom(a, uint16(port)).String()); err != nil {
				t.Fatal(err)
			}
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:"+fmt.Sprint(port))
			w.WriteHeader(code)
		}))
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		defer server.Close()
	}
	nodes = append(nodes, netip.MustParseAddr("127.0.0.9")) // nobody listens there
	if got := askHealth(t.Context(), nodes, int32(port)); fmt.Sprint(got) != "[127.0.0.1 127.0.0.4]" {
		t.Errorf("%v", got)
	}
}
