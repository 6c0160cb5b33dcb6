package localbalancer

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func named(name, asks string, has ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.ServiceSpec{LoadBalancerIP: asks, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}}
	for _, ip := range has {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return s
}

// TestEnsure: 10.0.0.0/29 has the addresses 1 to 6.
func TestEnsure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s      *corev1.Service
		others []*corev1.Service
		want   string // or a part of the error
	}{
		"the lowest": {named("s", ""), nil, "10.0.0.1"},
		"the lowest that is free": {named("s", ""),
			[]*corev1.Service{named("a", "", "10.0.0.1"), named("b", "", "10.0.0.3")}, "10.0.0.2"},
		"its own": {named("s", "", "10.0.0.5"), []*corev1.Service{named("a", "", "10.0.0.1")},
			"10.0.0.5"},
		"its own, which another has": {named("s", "", "10.0.0.5"), []*corev1.Service{named("a", "", "10.0.0.5")},
			"10.0.0.1"},
		"its own of another range": {named("s", "", "10.9.0.5"), nil, "10.0.0.1"},
		"what it asks for":         {named("s", "10.0.0.6", "10.0.0.5"), nil, "10.0.0.6"},
		"another's": {named("s", "10.0.0.6"), []*corev1.Service{named("a", "", "10.0.0.6")},
			"another service's"},
		"out of range":    {named("s", "10.0.1.6"), nil, "not in"},
		"the network's":   {named("s", "10.0.0.0"), nil, "not in"},
		"the broadcast's": {named("s", "10.0.0.7"), nil, "not in"},
		"nothing left": {named("s", ""),
			[]*corev1.Service{named("a", "", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6")},
			"free"},
	} {
		b := New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/29")}, func() []*corev1.Service {
			return append(c.others, c.s)
		})
		status, err := b.Ensure(t.Context(), c.s, nil)
		got := fmt.Sprint(err)
		if err == nil {
			got = status.Ingress[0].IP
			if *status.Ingress[0].IPMode != corev1.LoadBalancerIPModeVIP {
				t.Errorf("%s: %+v", name, status)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestNothingIsGivenTwice: an address is not free while the status that says so is not yet seen, and is when its
// service is gone.
func TestNothingIsGivenTwice(t *testing.T) {
	t.Parallel()
	all := []*corev1.Service{named("a", ""), named("b", ""), named("c", "")}
	b := New([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/30")}, func() []*corev1.Service { return all })
	is := func(s *corev1.Service, want string) {
		t.Helper()
		status, err := b.Ensure(t.Context(), s, nil)
		if (err != nil) != (want == "") || err == nil && status.Ingress[0].IP != want {
			t.Errorf("%s: %v, %v", s.Name, status, err)
		}
	}
	a, c := all[0], all[2]
	is(a, "10.0.0.1")
	is(all[1], "10.0.0.2")
	is(a, "10.0.0.1")
	is(c, "")
	all = all[1:]
	is(c, "10.0.0.1")
	if err := b.Release(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	all = append(all, a)
	is(a, "10.0.0.1")
	if len(b.given) != 2 {
		t.Errorf("%v is remembered", b.given)
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	s := named("s", "")
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	list := func() []*corev1.Service { return nil }
	both := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/29"), netip.MustParsePrefix("fd00::/64")}
	status, err := New(both, list).Ensure(t.Context(), s, nil)
	if err != nil || len(status.Ingress) != 2 || status.Ingress[0].IP != "fd00::1" ||
		status.Ingress[1].IP != "10.0.0.1" {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := New(both[1:], list).Ensure(t.Context(), named("t", ""), nil); err == nil {
		t.Error("an address of the wrong family")
	}
}
