package serviceip

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	service := func(name string, ips ...string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ips[0], ClusterIPs: ips}}
	}
	address := func(ip, service string, age time.Duration) *networkingv1.IPAddress {
		a := addressOf(netip.MustParseAddr(ip), "ns", service)
		a.CreationTimestamp = metav1.NewTime(now.Add(-age))
		return a
	}
	foreign := address("10.0.0.8", "nobody", time.Hour)
	foreign.Labels = nil
	going := address("10.0.0.9", "nobody", time.Hour)
	going.DeletionTimestamp = &metav1.Time{Time: now}
	r := compare([]*corev1.Service{service("right", "10.0.0.1", "fd00::1"), service("missing", "10.0.0.2"),
		service("thief", "10.0.0.1"), service("headless", "None"), service("second", "10.0.0.2")},
		[]*networkingv1.IPAddress{address("10.0.0.1", "right", time.Hour), address("fd00::1", "right", 0),
			address("10.0.0.3", "right", time.Hour),
			address("10.0.0.4", "gone", 61*time.Second), address("10.0.0.5", "young", 40*time.Second),
			address("10.0.0.6", "younger", 5*time.Second), foreign, going}, now)
	names := func(list []*networkingv1.IPAddress) []string {
		var out []string
		for _, a := range list {
			out = append(out, a.Name+" "+a.Spec.ParentRef.Name)
		}
		return out
	}
	if got, want := names(r.missing), []string{"10.0.0.2 missing"}; !slices.Equal(got, want) {
		t.Errorf("missing %q, want %q", got, want)
	}
	if got, want := names(r.leaked), []string{"10.0.0.3 right", "10.0.0.4 gone"}; !slices.Equal(got, want) {
		t.Errorf("leaked %q, want %q", got, want)
	}
	if want := []string{"10.0.0.1 of ns/thief", "10.0.0.2 of ns/second"}; !slices.Equal(r.conflicts, want) {
		t.Errorf("conflicts %q, want %q", r.conflicts, want)
	}
	if want := now.Add(20 * time.Second); !r.again.Equal(want) {
		t.Errorf("again at %s, want %s", r.again, want)
	}
}
