package nodeipam

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestAllocatesEachSubnetOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base        string
		bits, count int
		first, last string
	}{
		{"10.244.0.0/16", 24, 256, "10.244.0.0/24", "10.244.255.0/24"},
		{"10.0.0.0/8", 20, 4096, "10.0.0.0/20", "10.255.240.0/20"},
		{"10.0.0.0/30", 32, 4, "10.0.0.0/32", "10.0.0.3/32"},
		{"fd00:10::/56", 64, 256, "fd00:10::/64", "fd00:10:0:ff::/64"},
		{"fd00::/110", 120, 1024, "fd00::/120", "fd00::3:ff00/120"},
	} {
		s, err := newSet(netip.MustParsePrefix(c.base), c.bits, none)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[netip.Prefix]bool{}
		var last netip.Prefix
		for i := range c.count {
			p, err := s.allocate()
			if err != nil || seen[p] || !s.base.Contains(p.Addr()) || p != p.Masked() || s.index(p.Addr()) != i {
				t.Fatalf("%s: subnet %d = %s, %v", c.base, i, p, err)
			}
			if i == 0 && p.String() != c.first {
				t.Errorf("first = %s, want %s", p, c.first)
			}
			seen[p], last = true, p
		}
		if last.String() != c.last {
			t.Errorf("last = %s, want %s", last, c.last)
		}
		if _, err := s.allocate(); !errors.Is(err, errFull) {
			t.Errorf("a full set gives %v", err)
		}
		s.mark(last, false)
		if p, err := s.allocate(); err != nil || p != last {
			t.Errorf("after freeing %s: %s, %v", last, p, err)
		}
	}
}

func TestMarkedRangesAreLeftOut(t *testing.T) {
	t.Parallel()
	s, err := newSet(netip.MustParsePrefix("10.96.0.0/14"), 24, none)
	if err != nil {
		t.Fatal(err)
	}
	service := netip.MustParsePrefix("10.96.0.0/16")
	if !s.mark(service, true) || s.mark(netip.MustParsePrefix("192.168.0.0/16"), true) {
		t.Error("mark tells wrongly what overlaps")
	}
	s.mark(netip.MustParsePrefix("10.97.0.7/32"), true)
	p, err := s.allocate()
	if err != nil || p.String() != "10.97.1.0/24" {
		t.Errorf("allocate = %s, %v", p, err)
	}
}

func TestBadSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base string
		bits int
	}{{"10.0.0.0/16", 8}, {"10.0.0.0/8", 28}, {"10.0.0.0/24", 33}} {
		if _, err := newSet(netip.MustParsePrefix(c.base), c.bits, none); err == nil {
			t.Errorf("newSet(%s, %d) succeeds", c.base, c.bits)
		}
	}
}

// none hears nothing.
var none = prometheus.ObserverFunc(func(float64) {})
