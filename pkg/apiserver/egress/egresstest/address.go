// Package egresstest finds addresses for tests of what the API server may connect to.
package egresstest

import (
	"net"
	"net/netip"
	"testing"
)

// OwnAddress returns an IPv4 address of this machine that other machines may know: not its loopback's, nor a link-local
// one. It skips the test if the machine has none.
func OwnAddress(t testing.TB) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap().Is4() && !ip.Unmap().IsLoopback() &&
			!ip.Unmap().IsLinkLocalUnicast() {
			return ip.Unmap()
		}
	}
	t.Skip("SKIPPED: this machine has no address but its loopback's")
	return netip.Addr{}
}
