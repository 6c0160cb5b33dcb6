package proxy

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// ep describes an endpoint 10.244.0.<last> in a few letters: r ready, s serving, t terminating, h on this node.
func ep(last byte, flags string) sliceEndpoint {
	has := func(c rune) bool { return slices.Contains([]rune(flags), c) }
	e := sliceEndpoint{Addr: netip.AddrFrom4([4]byte{10, 244, 0, last}), Node: "there", Ready: has('r'),
		Serving: has('r') || has('s'), Terminating: has('t')}
	if has('h') {
		e.Node = "here"
	}
	return e
}

func zoned(e sliceEndpoint, zones ...string) sliceEndpoint { e.ForZones = zones; return e }
func noded(e sliceEndpoint, nodes ...string) sliceEndpoint { e.ForNodes = nodes; return e }

// TestChoose covers the documented rules of traffic policies, terminating endpoints (KEP-1669) and hints (KEP-2433,
// KEP-3015).
func TestChoose(t *testing.T) {
	t.Parallel()
	internalLocal := func(s *serviceFacts) { s.InternalLocal = true }
	externalLocal := func(s *serviceFacts) { s.ExternalLocal, s.Ports[0].NodePort = true, 30000 }
	for name, c := range map[string]struct {
		change         func(*serviceFacts)
		endpoints      []sliceEndpoint
		cluster, local []byte
		anywhere       bool
	}{
		"ready only": {nil, []sliceEndpoint{ep(1, "r"), ep(2, ""), ep(3, "st")}, []byte{1}, nil,
			true},
		"none ready, terminating serves": {nil, []sliceEndpoint{ep(2, ""), ep(3, "st"), ep(4, "t")}, []byte{3}, nil,
			true},
		"nothing serves":   {nil, []sliceEndpoint{ep(2, ""), ep(4, "t")}, nil, nil, false},
		"an address twice": {nil, []sliceEndpoint{ep(1, "st"), ep(1, "r")}, []byte{1}, nil, true},
		"internal local": {internalLocal, []sliceEndpoint{ep(1, "r"), ep(2, "rh")}, nil, []byte{2},
			true},
		"internal local, none here": {internalLocal, []sliceEndpoint{ep(1, "r")}, nil, nil, true},
		"external local": {externalLocal, []sliceEndpoint{ep(1, "r"), ep(2, "rh")}, []byte{1, 2},
			[]byte{2}, true},
		"external local, draining here": {externalLocal, []sliceEndpoint{ep(1, "r"), ep(2, "sth")}, []byte{1},
			[]byte{2}, true},
		"zone hints": {nil, []sliceEndpoint{zoned(ep(1, "r"), "a"), zoned(ep(2, "r"), "b")},
			[]byte{1}, nil, true},
		"zone hints, one without": {nil, []sliceEndpoint{zoned(ep(1, "r"), "a"), ep(2, "r")}, []byte{1, 2}, nil,
			true},
		"zone hints, none for here": {nil, []sliceEndpoint{zoned(ep(1, "r"), "b"), zoned(ep(2, "r"), "c")},
			[]byte{1, 2}, nil, true},
		"zone hints of the unready": {nil, []sliceEndpoint{zoned(ep(1, "r"), "a"), ep(2, "")}, []byte{1}, nil,
			true},
		"node hints before zone hints": {nil,
			[]sliceEndpoint{noded(zoned(ep(1, "r"), "a"), "here"), noded(zoned(ep(2, "r"), "a"), "there")}, []byte{1},
			nil, true},
		"node hints for others, zone": {nil,
			[]sliceEndpoint{noded(zoned(ep(1, "r"), "a"), "x"), noded(zoned(ep(2, "r"), "b"), "y")}, []byte{1}, nil,
			true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serviceFacts{ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")},
				Ports: []servicePort{{Protocol: corev1.ProtocolTCP, Number: 80}}}
			if c.change != nil {
				c.change(&s)
			}
			sl := sliceFacts{Ports: []slicePort{{Protocol: corev1.ProtocolTCP, Number: 8080}}, Endpoints: c.endpoints}
			p := portsOf(s, []sliceFacts{sl}, location{Name: "here", Zone: "a"})[0]
			if diff := cmp.Diff(c.cluster, lasts(p.Cluster)); diff != "" {
				t.Errorf("cluster (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.local, lasts(p.Local)); diff != "" {
				t.Errorf("local (-want +got)\n%s", diff)
			}
			if p.Anywhere != c.anywhere {
				t.Errorf("anywhere: %v", p.Anywhere)
			}
		})
	}
}

func lasts(in []netip.AddrPort) []byte {
	var out []byte
	for _, a := range in {
		out = append(out, a.Addr().As4()[3])
	}
	return out
}

// TestNamedPorts: each service port takes the number that each slice gives its name and protocol.
func TestNamedPorts(t *testing.T) {
	t.Parallel()
	s := serviceFacts{ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.1")}, Ports: []servicePort{
		{Name: "http", Protocol: corev1.ProtocolTCP, Number: 80},
		{Name: "http", Protocol: corev1.ProtocolUDP, Number: 80},
		{Name: "admin", Protocol: corev1.ProtocolTCP, Number: 81},
	}}
	sls := []sliceFacts{
		{Ports: []slicePort{{"http", corev1.ProtocolTCP, 8080}, {"admin", corev1.ProtocolTCP, 9090}},
			Endpoints: []sliceEndpoint{ep(1, "r")}},
		{Ports: []slicePort{{"http", corev1.ProtocolTCP, 8081}}, Endpoints: []sliceEndpoint{ep(2, "r")}},
	}
	var got []string
	for _, p := range portsOf(s, sls, location{}) {
		for _, e := range p.Cluster {
			got = append(got, p.PortName+"/"+string(p.Protocol)+" "+e.String())
		}
	}
	want := []string{"http/TCP 10.244.0.1:8080", "http/TCP 10.244.0.2:8081", "admin/TCP 10.244.0.1:9090"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSourceRanges: the API takes blanks around a range. One that was left out for them would let everybody in.
func TestSourceRanges(t *testing.T) {
	t.Parallel()
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.96.0.1",
		LoadBalancerSourceRanges: []string{" 192.0.2.0/24 ", "10.1.2.3/8"}}}
	got, _ := serviceOf(s)
	if want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("192.0.2.0/24")}; !slices.Equal(got.SourceRanges, want) {
		t.Errorf("%v, want %v", got.SourceRanges, want)
	}
}
