package host

import (
	"fmt"
	"net"
	"net/netip"
)

// Addresses lists the addresses of this machine.
func Addresses() (all []netip.Addr, err error) {
	has, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	for _, a := range has {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				all = append(all, ip.Unmap())
			}
		}
	}
	return all, nil
}
