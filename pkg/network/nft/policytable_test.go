package nft_test

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/knftables"

	"bonsai/pkg/network"
	"bonsai/pkg/network/nft"
	"bonsai/pkg/network/policy"
)

// cluster is what the API has, as the oracle reads it.
type cluster struct {
	namespaces map[string]*corev1.Namespace
	pods       map[string]*corev1.Pod
	policies   map[string]*networkingv1.NetworkPolicy
}

// attempt is a connection.
type attempt struct {
	from, to netip.Addr
	protocol corev1.Protocol
	port     int
}

func (a attempt) String() string {
	return fmt.Sprintf("%s → %s %s/%d", a.from, a.to, a.protocol, a.port)
}

// podAt is the pod that has an address: none of the host's network, none that has ended.
func (c *cluster) podAt(a netip.Addr) *corev1.Pod {
	for _, p := range c.pods {
		if p.Spec.HostNetwork || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, ip := range p.Status.PodIPs {
			if netip.MustParseAddr(ip.IP) == a {
				return p
			}
		}
	}
	return nil
}

// allowed is the API's documentation in code: what the node "here" lets through.
func (c *cluster) allowed(a attempt) bool {
	from, to := c.podAt(a.from), c.podAt(a.to)
	if a.from == a.to {
		return true
	}
	if from != nil && from.Spec.NodeName == "here" && !c.consents(from, networkingv1.PolicyTypeEgress, a, a.to, to) {
		return false
	}
	return to == nil || to.Spec.NodeName != "here" || c.consents(to, networkingv1.PolicyTypeIngress, a, a.from, from)
}

// consents reports whether pod's policies of a type allow the connection with the peer, which is a pod or not.
func (c *cluster) consents(pod *corev1.Pod, t networkingv1.PolicyType, a attempt, peerAddr netip.Addr,
	peer *corev1.Pod) bool {
	isolated := false
	for _, p := range c.policies {
		if p.Namespace != pod.Namespace || !slices.Contains(p.Spec.PolicyTypes, t) ||
			!selects(&p.Spec.PodSelector, pod.Labels) {
			continue
		}
		isolated = true
		if t == networkingv1.PolicyTypeIngress {
			for _, r := range p.Spec.Ingress {
				if c.peers(r.From, p.Namespace, peerAddr, peer) && ports(r.Ports, a, pod) {
					return true
				}
			}
			continue
		}
		for _, r := range p.Spec.Egress {
			if c.peers(r.To, p.Namespace, peerAddr, peer) && ports(r.Ports, a, peer) {
				return true
			}
		}
	}
	return !isolated
}

func (c *cluster) peers(all []networkingv1.NetworkPolicyPeer, namespace string, addr netip.Addr, pod *corev1.Pod) bool {
	for _, p := range all {
		if b := p.IPBlock; b != nil {
			in := netip.MustParsePrefix(b.CIDR).Contains(addr)
			for _, e := range b.Except {
				in = in && !netip.MustParsePrefix(e).Contains(addr)
			}
			if in {
				return true
			}
			continue
		}
		if pod == nil {
			continue
		}
		there := pod.Namespace == namespace
		if p.NamespaceSelector != nil {
			ns := c.namespaces[pod.Namespace]
			there = ns != nil && selects(p.NamespaceSelector, ns.Labels)
		}
		if there && (p.PodSelector == nil || selects(p.PodSelector, pod.Labels)) {
			return true
		}
	}
	return len(all) == 0
}

// ports: a named one is the number that the pod which is connected to gives the name.
func ports(all []networkingv1.NetworkPolicyPort, a attempt, to *corev1.Pod) bool {
	for _, p := range all {
		if *p.Protocol != a.protocol {
			continue
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			if to != nil && slices.ContainsFunc(to.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool {
				return c.Name == p.Port.StrVal && c.Protocol == a.protocol && int(c.ContainerPort) == a.port
			}) {
				return true
			}
		case p.EndPort != nil && a.port >= p.Port.IntValue() && a.port <= int(*p.EndPort), a.port == p.Port.IntValue():
			return true
		}
	}
	return len(all) == 0
}

func selects(s *metav1.LabelSelector, l map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		panic(err)
	}
	return selector.Matches(labels.Set(l))
}

// lot draws objects of a small world, in which much matches.
type lot struct{ *rand.Rand }

func oneOf[T any](l lot, all ...T) T { return all[l.IntN(len(all))] }

func (l lot) labels() map[string]string {
	out := map[string]string{}
	for _, k := range []string{"a", "b"} {
		if v := oneOf(l, "", "x", "y"); v != "" {
			out[k] = v
		}
	}
	return out
}

func (l lot) selector() *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	switch l.IntN(4) {
	case 0:
	case 1:
		s.MatchLabels = map[string]string{oneOf(l, "a", "b"): oneOf(l, "x", "y")}
	case 2:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: oneOf(l, "a", "b"),
				Operator: oneOf(l, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)}}
	default:
		s.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: oneOf(l, "a", "b"), Operator: oneOf(l, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn),
				Values: []string{"x", "z"}}}
	}
	return s
}

func (l lot) protocol() corev1.Protocol {
	return oneOf(l, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

func (l lot) pod(name string, number int) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: oneOf(l, "one", "two", "three"), Name: name, Labels: l.labels()},
		Spec: corev1.PodSpec{NodeName: oneOf(l, "here", "here", "there"), HostNetwork: l.IntN(8) == 0,
			Containers: []corev1.Container{{}}},
		Status: corev1.PodStatus{
			Phase: oneOf(l, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed)},
	}
	for _, n := range []string{"http", "dns"} {
		if l.IntN(2) == 0 {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports,
				corev1.ContainerPort{Name: n, Protocol: l.protocol(), ContainerPort: int32(oneOf(l, 80, 81, 82))})
		}
	}
	if l.IntN(6) > 0 {
		p.Status.PodIPs = []corev1.PodIP{{IP: fmt.Sprintf("10.0.%d.%d", number%2, number)},
			{IP: fmt.Sprintf("fd00:%d::%d", number%2, number)}}
	}
	return p
}

func (l lot) peers() []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for range l.IntN(3) {
		switch l.IntN(5) {
		case 0:
			out = append(out, networkingv1.NetworkPolicyPeer{PodSelector: l.selector()})
		case 1:
			out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: l.selector()})
		case 2:
			out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: l.selector(),
				PodSelector: l.selector()})
		case 3:
			out = append(out, networkingv1.NetworkPolicyPeer{
				IPBlock: &networkingv1.IPBlock{CIDR: oneOf(l, "10.0.0.0/16", "0.0.0.0/0", "192.0.2.0/24"),
					Except: oneOf(l, nil, []string{"10.0.1.0/24"},
						[]string{"10.0.0.0/24", "10.0.0.4/30", "10.0.0.0/24"})}})
		default:
			out = append(out, networkingv1.NetworkPolicyPeer{
				IPBlock: &networkingv1.IPBlock{CIDR: oneOf(l, "fd00::/16", "::/0"),
					Except: oneOf(l, nil, []string{"fd00:1::/32"})}})
		}
	}
	return out
}

func (l lot) ports() []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for range l.IntN(4) {
		p := networkingv1.NetworkPolicyPort{Protocol: new(l.protocol())}
		switch l.IntN(5) {
		case 0:
		case 1:
			p.Port = new(intstr.FromString(oneOf(l, "http", "dns", "nobody")))
		case 2:
			p.Port, p.EndPort = new(intstr.FromInt32(oneOf[int32](l, 79, 80, 81))), new(oneOf[int32](l, 81, 82))
		default:
			p.Port = new(intstr.FromInt32(oneOf[int32](l, 80, 81, 82)))
		}
		out = append(out, p)
	}
	return out
}

func (l lot) policy(name string) *networkingv1.NetworkPolicy {
	p := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: oneOf(l, "one", "two", "three"), Name: name}}
	p.Spec.PodSelector = *l.selector()
	p.Spec.PolicyTypes = oneOf(l, []networkingv1.PolicyType{"Ingress"}, []networkingv1.PolicyType{"Egress"},
		[]networkingv1.PolicyType{"Egress", "Ingress"})
	for range l.IntN(3) {
		p.Spec.Ingress = append(p.Spec.Ingress,
			networkingv1.NetworkPolicyIngressRule{From: l.peers(), Ports: l.ports()})
	}
	for range l.IntN(3) {
		p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: l.peers(), Ports: l.ports()})
	}
	return p
}

// step changes one thing, in the API and in what the node is told.
func (l lot) step(c *cluster, s *policy.State) {
	switch n := l.IntN(9); l.IntN(5) {
	case 0:
		ns := &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: oneOf(l, "one", "two", "three"), Labels: l.labels()}}
		if l.IntN(4) == 0 {
			delete(c.namespaces, ns.Name)
			s.Namespaces().Delete(ns)
			return
		}
		c.namespaces[ns.Name] = ns
		s.Namespaces().Set(ns)
	case 1, 2:
		name := fmt.Sprintf("p%d", n)
		if old := c.pods[name]; old != nil {
			delete(c.pods, name)
			if l.IntN(3) == 0 {
				s.Pods().Delete(old)
				return
			}
			p := l.pod(name, n)
			if p.Namespace != old.Namespace {
				s.Pods().Delete(old)
			}
			c.pods[name] = p
			s.Pods().Set(p)
			return
		}
		c.pods[name] = l.pod(name, n)
		s.Pods().Set(c.pods[name])
	default:
		name := fmt.Sprintf("n%d", n%5)
		if old := c.policies[name]; old != nil {
			delete(c.policies, name)
			p := l.policy(name)
			if l.IntN(3) == 0 || p.Namespace != old.Namespace {
				s.Policies().Delete(old)
				return
			}
			c.policies[name] = p
			s.Policies().Set(p)
			return
		}
		c.policies[name] = l.policy(name)
		s.Policies().Set(c.policies[name])
	}
}

// tell gives a new state all that the API has.
func (c *cluster) tell(s *policy.State) {
	s.Policies().Replace(values(c.policies))
	s.Pods().Replace(values(c.pods))
	s.Namespaces().Replace(values(c.namespaces))
}

func values[K comparable, V any](m map[K]V) []V {
	var out []V
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

func (l lot) attempt() attempt {
	a := attempt{protocol: l.protocol(), port: oneOf(l, 79, 80, 81, 82, 83)}
	n, m := l.IntN(9), l.IntN(9)
	if l.IntN(2) == 0 {
		a.from, a.to = netip.AddrFrom4([4]byte{10, 0, byte(n % 2), byte(n)}),
			netip.AddrFrom4([4]byte{10, 0, byte(m % 2), byte(m)})
		outside := netip.MustParseAddr("192.0.2.1")
		a.from, a.to = oneOf(l, a.from, a.from, outside), oneOf(l, a.to, a.to, outside)
		return a
	}
	a.from, a.to = netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", n%2, n)),
		netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", m%2, m))
	return a
}

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
