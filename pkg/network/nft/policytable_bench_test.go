package nft_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/knftables"

	"bonsai/pkg/network/nft"
	"bonsai/pkg/network/policy"
)

// counted is a fake nft that does nothing but count what it is told to do.
type counted struct {
	*knftables.Fake
	operations int
}

func (c *counted) Run(_ context.Context, tx *knftables.Transaction) error {
	c.operations += tx.NumOperations()
	return nil
}

// benchCluster is 1,000 policies in 50 namespaces, a third of them for ports of other namespaces, and 5,000 pods, 100
// of them on the node.
func benchCluster() (policies []*networkingv1.NetworkPolicy, pods []*corev1.Pod, namespaces []*corev1.Namespace) {
	const perNamespace = 20
	for n := range 50 {
		name := fmt.Sprintf("ns%d", n)
		namespaces = append(namespaces,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
				Labels: map[string]string{"team": fmt.Sprint(n % 10)}}})
		for p := range perNamespace {
			app := metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(p % 10)}}
			peer := networkingv1.NetworkPolicyPeer{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint((p + 1) % 10)}}}
			if p%3 == 0 {
				peer.NamespaceSelector = &metav1.LabelSelector{
					MatchLabels: map[string]string{"team": fmt.Sprint(p % 10)}}
			}
			policies = append(policies,
				&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprint("p", p)},
					Spec: networkingv1.NetworkPolicySpec{
						PodSelector: app, PolicyTypes: []networkingv1.PolicyType{"Ingress"},
						Ingress: []networkingv1.NetworkPolicyIngressRule{
							{From: []networkingv1.NetworkPolicyPeer{peer}, Ports: []networkingv1.NetworkPolicyPort{
								{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(8080))}}}}}})
		}
	}
	for i := range 5000 {
		pods = append(pods, benchPod(i, fmt.Sprint(i%10)))
	}
	return policies, pods, namespaces
}

func benchPod(i int, app string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns%d", i/100), Name: fmt.Sprint("pod", i),
		Labels: map[string]string{"app": app, "unit": "x"}}}
	p.Spec.NodeName = fmt.Sprint("node", i%50)
	p.Status.PodIPs = []corev1.PodIP{{IP: netip.AddrFrom4([4]byte{10, 244, byte(i / 250), byte(i%250 + 1)}).String()}}
	return p
}

// ListRules has the table look as if it were there.
func (c *counted) ListRules(context.Context, string) ([]*knftables.Rule, error) {
	return []*knftables.Rule{{}}, nil
}

func told(b *testing.B) (*policy.State, *nft.PolicyTable, *counted) {
	b.Helper()
	policies, pods, namespaces := benchCluster()
	state := policy.NewState("node7", func() []netip.Prefix { return nil })
	kernel := &counted{Fake: knftables.NewFake(knftables.IPv4Family, "bonsai-network-policies")}
	table := nft.NewPolicyTable(kernel, false, slog.New(slog.DiscardHandler))
	state.Policies().Replace(policies)
	state.Namespaces().Replace(namespaces)
	state.Pods().Replace(pods)
	if err := table.Apply(b.Context(), state.Take()); err != nil {
		b.Fatal(err)
	}
	return state, table, kernel
}

// BenchmarkPolicies is what the node computes for 1,000 policies and 5,000 pods: at first, for a pod elsewhere and one
// of its own whose label changes, and for a policy that changes; operations are the lines that nft gets, whose own work
// is not measured.
func BenchmarkPolicies(b *testing.B) {
	b.Run("first", func(b *testing.B) {
		var kernel *counted
		for b.Loop() {
			_, _, kernel = told(b)
		}
		b.ReportMetric(float64(kernel.operations), "operations")
	})
	policies, _, _ := benchCluster()
	for name, change := range map[string]func(*policy.State, int){
		"pod elsewhere": func(s *policy.State, i int) { s.Pods().Set(benchPod(1, fmt.Sprint(i%2+1))) },
		"pod here":      func(s *policy.State, i int) { s.Pods().Set(benchPod(7, fmt.Sprint(i%2+1))) },
		"policy": func(s *policy.State, i int) {
			policies[0].Spec.Ingress[0].From[0].PodSelector.MatchLabels["app"] = fmt.Sprint(i % 2)
			s.Policies().Set(policies[0])
		},
	} {
		b.Run(name, func(b *testing.B) {
			state, table, kernel := told(b)
			kernel.operations = 0
			i := 0
			for b.Loop() {
				i++
				change(state, i)
				if err := table.Apply(b.Context(), state.Take()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(kernel.operations)/float64(i), "operations/op")
		})
	}
}
