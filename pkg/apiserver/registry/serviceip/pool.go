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
	errRange = errors.New("the provided network does not match the current range")
	errFull  = errors.New("range is full")

	errPortTaken = errors.New("provided port is already allocated")
)

// maxPool bounds the addresses taken from an IPv6 range.
const maxPool = 1 << 20

// numbers are the integers below size, some of them used. Chosen by themselves they come from the upper band while that
// has room: the lower one is where people put their fixed choices.
type numbers struct {
	size, lower int
	used        *big.Int // bit n: n is used
}

// has reports whether n is used.
func (p *numbers) has(n int) bool { return p.used.Bit(n) == 1 }

// take marks n; false if it is used.
func (p *numbers) take(n int) bool {
	if p.has(n) {
		return false
	}
	p.used.SetBit(p.used, n, 1)
	return true
}

// free takes the mark off n.
func (p *numbers) free(n int) { p.used.SetBit(p.used, n, 0) }

// next takes a free number, at a random place; false when there is none.
func (p *numbers) next(random *rand.Rand) (int, bool) {
	n, ok := anywhere(random, p.size, p.lower, func(n int) bool { return !p.has(n) })
	if ok {
		p.take(n)
	}
	return n, ok
}

// anywhere finds a number below size that is free, from a random place on: of the upper band, or else of the lower one.
func anywhere(random *rand.Rand, size, lower int, free func(int) bool) (int, bool) {
	for _, band := range [2][2]int{{lower, size}, {0, lower}} {
		n := band[1] - band[0]
		if n <= 0 {
			continue
		}
		start := random.IntN(n)
		for i := range n {
			if c := band[0] + (start+i)%n; free(c) {
				return c, true
			}
		}
	}
	return 0, false
}

// block are the addresses of one range that services can have: all but the network's own and, for IPv4, the broadcast
// address.
type block struct {
	prefix netip.Prefix
	first  *big.Int
	// size is how many of them are given out; lower is the band of fixed choices (KEP-3070).
	size, lower int
}

func newBlock(prefix netip.Prefix) (block, error) {
	prefix = prefix.Masked()
	bits := prefix.Addr().BitLen() - prefix.Bits()
	if bits < 2 {
		return block{}, fmt.Errorf("service range %s: too small", prefix)
	}
	size := maxPool
	if bits < 20 {
		size = 1<<bits - 1
		if prefix.Addr().Is4() {
			size--
		}
	}
	first := new(big.Int).SetBytes(prefix.Addr().AsSlice())
	return block{prefix: prefix, first: first.Add(first, big.NewInt(1)), size: size,
		lower: min(max(16, size/16), 256, size)}, nil
}

func (b *block) at(n int) netip.Addr {
	v := new(big.Int).Add(b.first, big.NewInt(int64(n)))
	a, _ := netip.AddrFromSlice(v.FillBytes(make([]byte, b.prefix.Addr().BitLen()/8)))
	return a
}

// contains reports whether a service can have a.
func (b *block) contains(a netip.Addr) bool {
	if !b.prefix.Contains(a) || a == b.prefix.Addr() {
		return false
	}
	return a.Is6() || b.prefix.Contains(a.Next())
}

// next is a free address, at a random place; false when there is none.
func (b *block) next(random *rand.Rand, used map[netip.Addr]struct{}) (netip.Addr, bool) {
	n, ok := anywhere(random, b.size, b.lower, func(n int) bool {
		_, taken := used[b.at(n)]
		return !taken
	})
	return b.at(n), ok
}
