package proxy

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// results is a backend whose rounds return the errors that a test has listed.
type results struct{ err error }

func (r *results) Apply(context.Context, Update) error { return r.err }

// TestArrivals: a pod's endpoint has arrived when a round has succeeded that has it, once, and not because the proxy
// has just begun.
func TestArrivals(t *testing.T) {
	t.Parallel()
	changed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	slice := func(ready ...string) *discoveryv1.EndpointSlice {
		o := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		o.Namespace, o.Name = "ns", "web-1"
		o.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
		o.Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: changed.Format(time.RFC3339Nano)}
		for _, ip := range ready {
			yes := true
			o.Endpoints = append(o.Endpoints, discoveryv1.Endpoint{Addresses: []string{ip},
				Conditions: discoveryv1.EndpointConditions{Ready: &yes},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: "p" + ip, UID: "uid-" + "x"}})
		}
		return o
	}
	var got []string
	s, backend := NewState("n1"), &results{}
	s.Arrivals = true
	l := &Loop{State: s, Backends: []Backend{backend}, Begin: func(int) {},
		Done: func(int, time.Duration, int, error) {}, Log: slog.New(slog.DiscardHandler),
		Arrived: func(all []Arrival, _ time.Time) {
			for _, a := range all {
				if a.Service != (Name{Namespace: "ns", Name: "web"}) || !a.At.Equal(changed) || a.UID != "uid-x" {
					t.Errorf("%+v", a)
				}
				got = append(got, a.Pod.Name)
			}
		}}
	round := func(what string, err error, want ...string) {
		t.Helper()
		got, backend.err = nil, err
		if gotErr := l.round(t.Context()); !errors.Is(gotErr, err) {
			t.Errorf("%s: %v", what, gotErr)
		}
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("%s: %q arrived, want %q", what, got, want)
		}
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}}}
	s.Services().Replace([]*corev1.Service{svc})
	s.Slices().Replace([]*discoveryv1.EndpointSlice{slice("10.1.0.1")})
	round("the first list", nil)
	s.Slices().Set(slice("10.1.0.1", "10.1.0.2"))
	round("a round that fails", errors.New("no kernel"))
	round("the next one", nil, "p10.1.0.2")
	round("another one", nil)
	s.Slices().Set(slice("10.1.0.1"))
	round("one that leaves", nil)
	s.Arrivals = false
	s.Slices().Set(slice("10.1.0.1", "10.1.0.3"))
	round("nobody asks", nil)
}
