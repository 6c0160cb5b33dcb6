package nodeipam

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/prometheus/client_golang/prometheus"
)

// errFull says that a range has no free subnet left.
var errFull = errors.New("no free pod CIDR is left in the cluster CIDR")

// cidrSet hands out the subnets of one size of a range, each once, lowest first after the last one given.
type cidrSet struct {
	base netip.Prefix
	bits int // of each subnet
	used []uint64
	next int
	n    int
	// taken is how many are used; given and back count since the start, and tries what each allocation looked at.
	taken, given, back int
	tries              prometheus.Observer
}

// maxSubnets bounds the memory of a set; upstream has the same limit.
const maxSubnets = 1 << 16

// newSet divides base into subnets of the given mask size; tries hears how many each allocation found taken.
func newSet(base netip.Prefix, bits int, tries prometheus.Observer) (*cidrSet, error) {
	base = base.Masked()
	if bits < base.Bits() || bits > base.Addr().BitLen() {
		return nil, fmt.Errorf("mask size /%d does not fit into cluster CIDR %s", bits, base)
	}
	if bits-base.Bits() > 16 {
		return nil, fmt.Errorf("cluster CIDR %s has more than %d subnets of /%d", base, maxSubnets, bits)
	}
	n := 1 << (bits - base.Bits())
	return &cidrSet{base: base, bits: bits, n: n, used: make([]uint64, (n+63)/64), tries: tries}, nil
}

func (s *cidrSet) get(i int) bool { return s.used[i/64]&(1<<(i%64)) != 0 }

func (s *cidrSet) set(i int, used bool) {
	switch {
	case used == s.get(i):
	case used:
		s.used[i/64] |= 1 << (i % 64)
		s.taken++
		s.given++
	default:
		s.used[i/64] &^= 1 << (i % 64)
		s.taken--
		s.back++
	}
}

// allocate takes the next free subnet.
func (s *cidrSet) allocate() (netip.Prefix, error) {
	for k := range s.n {
		i := (s.next + k) % s.n
		if !s.get(i) {
			s.set(i, true)
			s.next = (i + 1) % s.n
			s.tries.Observe(float64(k))
			return s.subnet(i), nil
		}
	}
	return netip.Prefix{}, errFull
}

// subnet returns the i-th subnet.
func (s *cidrSet) subnet(i int) netip.Prefix {
	raw := s.base.Addr().AsSlice()
	// Add i, shifted to the subnet's last bit, as a big-endian number.
	carry, last := uint64(i), s.bits
	for b := (last - 1) / 8; b >= 0 && carry > 0; b-- {
		shift := 0
		if b == (last-1)/8 {
			shift = (8 - last%8) % 8
		}
		sum := uint64(raw[b]) + (carry<<shift)&0xff
		raw[b] = byte(sum)
		carry = carry>>(8-shift) + sum>>8
	}
	a, _ := netip.AddrFromSlice(raw)
	return netip.PrefixFrom(a, s.bits)
}

// mark sets all subnets that overlap with p as used or free. It reports whether p has anything to do with the range.
func (s *cidrSet) mark(p netip.Prefix, used bool) bool {
	p = p.Masked()
	if !p.Overlaps(s.base) {
		return false
	}
	first, last := 0, s.n-1
	if p.Bits() > s.base.Bits() {
		first = s.index(p.Addr())
		last = first
		if p.Bits() < s.bits {
			last = first + 1<<(s.bits-p.Bits()) - 1
		}
	}
	for i := first; i <= last; i++ {
		s.set(i, used)
	}
	return true
}

// index returns the number of the subnet that holds a.
func (s *cidrSet) index(a netip.Addr) int {
	raw := a.AsSlice()
	i := 0
	for bit := s.base.Bits(); bit < s.bits; bit++ {
		i = i<<1 | int(raw[bit/8]>>(7-bit%8))&1
	}
	return i
}
