package serviceip

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
)

// Errors of a pool, as users read them behind "failed to allocate".
var (
	errTaken = errors.New("provided IP is already allocated")
	errFull  = errors.New("range is full")

	errPortTaken = errors.New("provided port is already allocated")
)

// maxPool bounds the addresses taken from an IPv6 range.
const maxPool = 1 << 20

// numbers hands out integers in [first, first+size). Chosen by itself they come from the upper band while that has room: the
// lower one is where people put their fixed choices.
type numbers struct {
	size, lower int
	used        map[int]bool
}

func newNumbers(size, lower int) *numbers {
	return &numbers{size: size, lower: min(lower, size), used: map[int]bool{}}
}

// take marks n; false if it is taken.
func (p *numbers) take(n int) bool {
	if p.used[n] {
		return false
	}
	p.used[n] = true
	return true
}

// next takes a free number, at a random place; false when there is none.
func (p *numbers) next(random *rand.Rand) (int, bool) {
	for _, band := range [2][2]int{{p.lower, p.size}, {0, p.lower}} {
		n := band[1] - band[0]
		if n <= 0 {
			continue
		}
		start := random.IntN(n)
		for i := range n {
			if c := band[0] + (start+i)%n; p.take(c) {
				return c, true
			}
		}
	}
	return 0, false
}

// addresses is a pool of service IPs.
type addresses struct {
	prefix netip.Prefix
	first  *big.Int
	*numbers
}

// newAddresses leaves out the network address and, for IPv4, the broadcast address.
func newAddresses(prefix netip.Prefix) (*addresses, error) {
	prefix = prefix.Masked()
	bits := prefix.Addr().BitLen() - prefix.Bits()
	if bits < 2 {
		return nil, fmt.Errorf("service range %s: too small", prefix)
	}
	size := maxPool
	if bits < 20 {
		size = 1<<bits - 1
		if prefix.Addr().Is4() {
			size--
		}
	}
	first := new(big.Int).SetBytes(prefix.Addr().AsSlice())
	return &addresses{prefix: prefix, first: first.Add(first, big.NewInt(1)), numbers: newNumbers(size, min(max(16, size/16), 256))}, nil
}

func (p *addresses) at(n int) netip.Addr {
	v := new(big.Int).Add(p.first, big.NewInt(int64(n)))
	a, _ := netip.AddrFromSlice(v.FillBytes(make([]byte, p.prefix.Addr().BitLen()/8)))
	return a
}

// index is the number of an address; false outside of the pool.
func (p *addresses) index(a netip.Addr) (int, bool) {
	if !p.prefix.Contains(a) {
		return 0, false
	}
	v := new(big.Int).Sub(new(big.Int).SetBytes(a.AsSlice()), p.first)
	if v.Sign() < 0 || !v.IsInt64() || v.Int64() >= int64(p.size) {
		return 0, false
	}
	return int(v.Int64()), true
}

// reserve takes one address.
func (p *addresses) reserve(a netip.Addr) error {
	n, ok := p.index(a)
	if !ok {
		return fmt.Errorf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", a, p.prefix)
	}
	if !p.take(n) {
		return errTaken
	}
	return nil
}

func (p *addresses) free(a netip.Addr) {
	if n, ok := p.index(a); ok {
		delete(p.used, n)
	}
}
