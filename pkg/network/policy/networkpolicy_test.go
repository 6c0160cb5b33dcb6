package policy

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/network"
)

func newState() *State { return NewState("here", func() []netip.Prefix { return nil }) }

// everyone is a policy that lets all pods of its namespace in.
func everyone(name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{"Ingress"},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}}}}
}

func there(n int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod", n)},
		Spec:   corev1.PodSpec{NodeName: "there"},
		Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: fmt.Sprint("10.0.0.", n)}}}}
}

// TestRoom: what selectors select together is bounded; who was left out is counted, and let in when others go.
func TestRoom(t *testing.T) {
	t.Parallel()
	s := newState()
	s.room = 3
	s.Policies().Set(everyone("p"))
	for n := range 5 {
		s.Pods().Set(there(n))
	}
	members := map[network.Name]bool{}
	take := func() int {
		u := s.Take()
		for name, p := range u.Pods {
			members[name] = p != nil && len(p.Groups) > 0
		}
		n := 0
		for _, in := range members {
			if in {
				n++
			}
		}
		if u.Left != 5-n && len(s.pods) == 5 {
			t.Errorf("%d pods left out, %d in", u.Left, n)
		}
		return n
	}
	if n := take(); n != 3 {
		t.Errorf("%d members, want 3", n)
	}
	gone := 0
	for n := range 5 {
		if name := nameOf(there(n)); members[name] && gone < 2 {
			s.Pods().Delete(there(n))
			gone++
		}
	}
	if n := take(); n != 3 {
		t.Errorf("%d members when two others went, want 3", n)
	}
	s.Policies().Delete(everyone("p"))
	if n := take(); n != 0 || s.members != 0 || len(s.groups) != 0 {
		t.Errorf("%d members are left, %d counted, %d groups", n, s.members, len(s.groups))
	}
}

// TestReady: without a policy pods and namespaces need not be known; with one they must, or their rules would be taken
// away.
func TestReady(t *testing.T) {
	t.Parallel()
	s := newState()
	if s.Ready() {
		t.Error("ready although nothing is known")
	}
	s.Policies().Replace(nil)
	select {
	case <-s.Needed():
		t.Error("pods are needed without a policy")
	default:
	}
	if !s.Ready() {
		t.Error("not ready without policies")
	}
	s.Policies().Set(everyone("p"))
	<-s.Needed()
	for step, list := range []func(){func() {}, func() {
		s.Pods().Replace(nil)
	}, func() { s.Namespaces().Replace(nil) }} {
		list()
		if got, want := s.Ready(), step == 2; got != want {
			t.Errorf("step %d: ready %v, want %v", step, got, want)
		}
	}
}
