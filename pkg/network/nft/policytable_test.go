package nft_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/knftables"

	"bonsai/pkg/network"
	"bonsai/pkg/network/nft"
	"bonsai/pkg/network/policy"
)

// policyTables are those of both families over fake kernels.
type policyTables struct {
	fakes  map[bool]*knftables.Fake
	tables []*nft.PolicyTable
}

func newPolicyTables() *policyTables {
	p := &policyTables{fakes: map[bool]*knftables.Fake{
		true:  knftables.NewFake(knftables.IPv4Family, "bonsai-network-policies"),
		false: knftables.NewFake(knftables.IPv6Family, "bonsai-network-policies"),
	}}
	for four, fake := range p.fakes {
		p.tables = append(p.tables, nft.NewPolicyTable(fake, !four, slog.New(slog.DiscardHandler)))
	}
	return p
}

func (p *policyTables) apply(t *testing.T, u network.PolicyUpdate) {
	t.Helper()
	for _, table := range p.tables {
		if err := table.Apply(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *policyTables) dump() string {
	lines := append(strings.Split(p.fakes[true].Dump(), "\n"), strings.Split(p.fakes[false].Dump(), "\n")...)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestPoliciesAsDocumented plays random histories of policies, pods and namespaces, changes after which the kernel must
// let through exactly what the API's documentation says, and hold what it would hold had it been told of everything at
// once.
func TestPoliciesAsDocumented(t *testing.T) {
	t.Parallel()
	open := func() []netip.Prefix { return nil }
	verdicts := map[bool]int{}
	for seed := range uint64(40) {
		l := lot{rand.New(rand.NewPCG(seed, 1))}
		c := &cluster{namespaces: map[string]*corev1.Namespace{}, pods: map[string]*corev1.Pod{},
			policies: map[string]*networkingv1.NetworkPolicy{}}
		state, kernel := policy.NewState("here", open), newPolicyTables()
		for round := range 40 {
			for range 1 + l.IntN(4) {
				l.step(c, state)
			}
			kernel.apply(t, state.Take())
			for range 60 {
				a := l.attempt()
				want := c.allowed(a)
				verdicts[want]++
				if got := (&interpreter{t: t, fake: kernel.fakes[a.to.Is4()], attempt: a}).forwards(); got != want {
					t.Fatalf("seed %d, round %d: %s: allowed %v, want %v\n%s", seed, round, a, got, want, kernel.dump())
				}
			}
		}
		again, fresh := policy.NewState("here", open), newPolicyTables()
		c.tell(again)
		fresh.apply(t, again.Take())
		if diff := cmp.Diff(fresh.dump(), kernel.dump()); diff != "" {
			t.Fatalf("seed %d: (-told at once +history)\n%s", seed, diff)
		}
	}
	if verdicts[true] < 1000 || verdicts[false] < 1000 {
		t.Errorf("the world is too simple: %v", verdicts)
	}
}

// TestStartingPodIsClosed: while a pod that policies will isolate has no address yet, what may be it is held up, and no
// longer; pods that are known, and other directions, are not.
func TestStartingPodIsClosed(t *testing.T) {
	t.Parallel()
	state := policy.NewState("here", func() []netip.Prefix {
		return []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	})
	pod := func(name, address string, l map[string]string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: name, Labels: l},
			Spec: corev1.PodSpec{NodeName: "here", Containers: []corev1.Container{{}}}}
		if address != "" {
			p.Status.PodIPs = []corev1.PodIP{{IP: address}}
		}
		return p
	}
	isolated := map[string]string{"a": "x"}
	state.Policies().Replace(
		[]*networkingv1.NetworkPolicy{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "n"}, Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: isolated},
				PolicyTypes: []networkingv1.PolicyType{"Egress"}}}})
	state.Namespaces().Replace(nil)
	state.Pods().Replace([]*corev1.Pod{pod("known", "10.0.0.2", nil)})
	kernel := newPolicyTables()
	for _, step := range []struct {
		name        string
		set         *corev1.Pod
		unknown, at bool // whether an address that nobody is known to have may send, and the starting pod's
	}{
		{"nothing starts", nil, true, true},
		{"an open pod starts", pod("open", "", nil), true, true},
		{"an isolated pod starts", pod("new", "", isolated), false, false},
		{"it has its address", pod("new", "10.0.0.9", isolated), true, false},
	} {
		if step.set != nil {
			state.Pods().Set(step.set)
		}
		kernel.apply(t, state.Take())
		for from, want := range map[string]bool{"10.0.0.2": true, "10.0.0.7": step.unknown, "10.0.0.9": step.at,
			"10.0.1.1": true} {
			out := attempt{netip.MustParseAddr(from), netip.MustParseAddr("192.0.2.1"), corev1.ProtocolTCP, 80}
			if got := (&interpreter{t: t, fake: kernel.fakes[true], attempt: out}).forwards(); got != want {
				t.Errorf("%s: %s allowed %v, want %v", step.name, out, got, want)
			}
			in := attempt{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr(from), corev1.ProtocolTCP, 80}
			if !(&interpreter{t: t, fake: kernel.fakes[true], attempt: in}).forwards() {
				t.Errorf("%s: %s refused, although ingress is open", step.name, in)
			}
		}
	}
}

// refusing is a fake nft that refuses what mentions a text.
type refusing struct {
	*knftables.Fake
	refuse string
}

func (r *refusing) Run(ctx context.Context, tx *knftables.Transaction) error {
	if err := r.check(tx); err != nil {
		return err
	}
	return r.Fake.Run(ctx, tx)
}

func (r *refusing) Check(ctx context.Context, tx *knftables.Transaction) error {
	if err := r.check(tx); err != nil {
		return err
	}
	return r.Fake.Check(ctx, tx)
}

func (r *refusing) check(tx *knftables.Transaction) error {
	if r.refuse != "" && strings.Contains(tx.String(), r.refuse) {
		return errors.New("refused")
	}
	return nil
}

// TestRefusedPolicy: a policy whose rules the kernel refuses isolates its pods and allows nothing; all others are
// written, and it is too once the kernel takes it.
func TestRefusedPolicy(t *testing.T) {
	t.Parallel()
	rec := &refusing{Fake: knftables.NewFake(knftables.IPv4Family, "bonsai-network-policies"),
		refuse: "198.51.100.0/24"}
	table := nft.NewPolicyTable(rec, false, slog.New(slog.DiscardHandler))
	state := policy.NewState("here", func() []netip.Prefix { return nil })
	policy := func(name, app, cidr string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: name},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
				PolicyTypes: []networkingv1.PolicyType{"Ingress"},
				Ingress: []networkingv1.NetworkPolicyIngressRule{
					{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}}}}}}
	}
	pod := func(app, address string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: app,
			Labels: map[string]string{"app": app}},
			Spec: corev1.PodSpec{NodeName: "here"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: address}}}}
	}
	state.Policies().Replace(
		[]*networkingv1.NetworkPolicy{policy("bad", "bad", "198.51.100.0/24"), policy("good", "good", "192.0.2.0/24")})
	state.Namespaces().Replace(nil)
	state.Pods().Replace([]*corev1.Pod{pod("bad", "10.0.0.2"), pod("good", "10.0.0.3")})
	check := func(when string, from, to string, want bool) {
		t.Helper()
		a := attempt{netip.MustParseAddr(from), netip.MustParseAddr(to), corev1.ProtocolTCP, 80}
		if got := (&interpreter{t: t, fake: rec.Fake, attempt: a}).forwards(); got != want {
			t.Errorf("%s: %s allowed %v, want %v", when, a, got, want)
		}
	}
	err := table.Apply(t.Context(), state.Take())
	if err == nil || !strings.Contains(err.Error(), "policy one/bad:") || strings.Contains(err.Error(), "good") ||
		strings.Contains(err.Error(), "pod") {
		t.Errorf("error %v, want one that names the policy alone", err)
	}
	check("refused", "198.51.100.1", "10.0.0.2", false)
	check("refused", "192.0.2.1", "10.0.0.3", true)
	check("refused", "198.51.100.1", "10.0.0.3", false)
	rec.refuse = ""
	if err := table.Apply(t.Context(), state.Take()); err != nil {
		t.Fatal(err)
	}
	check("taken", "198.51.100.1", "10.0.0.2", true)
}
