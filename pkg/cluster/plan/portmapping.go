package plan

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// PortMapping publishes a node port on the host: connections to the address and port lead to that port of a node.
type PortMapping struct {
	Address  netip.Addr // where it listens
	HostPort int
	NodePort int
	// UDP is set for datagrams; otherwise the port is TCP.
	UDP bool `json:",omitempty"`
}

// ParsePortMapping reads [ADDRESS:]HOSTPORT:NODEPORT[/PROTOCOL]. The default address is 127.0.0.1, and the default
// protocol TCP.
func ParsePortMapping(text string) (PortMapping, error) {
	m := PortMapping{Address: netip.MustParseAddr(Loopback)}
	ports, protocol, said := strings.Cut(text, "/")
	if said {
		if err := m.SetProtocol(protocol); err != nil {
			return m, fmt.Errorf("%q: %w", text, err)
		}
	}
	parts := strings.Split(ports, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return m, fmt.Errorf("%q is not [ADDRESS:]HOSTPORT:NODEPORT[/PROTOCOL], as 8080:30080 or 5353:30053/udp", text)
	}
	if len(parts) == 3 {
		address, err := netip.ParseAddr(parts[0])
		if err != nil {
			return m, fmt.Errorf("%q: %w", text, err)
		}
		m.Address, parts = address, parts[1:]
	}
	for i, to := range []*int{&m.HostPort, &m.NodePort} {
		port, err := strconv.Atoi(parts[i])
		if err != nil {
			return m, fmt.Errorf("%q: %q is no port", text, parts[i])
		}
		*to = port
	}
	return m, m.Check()
}

// SetProtocol reads tcp or udp, in any case.
func (m *PortMapping) SetProtocol(text string) error {
	switch strings.ToLower(text) {
	case "tcp":
	case "udp":
		m.UDP = true
	default:
		return fmt.Errorf("the protocol must be TCP or UDP, not %q", text)
	}
	return nil
}

// Check returns what is wrong with a mapping by itself.
func (m PortMapping) Check() error {
	if !m.Address.Is4() {
		return fmt.Errorf("the address must be an IPv4 address, not %q", m.Address)
	}
	for _, port := range []int{m.HostPort, m.NodePort} {
		if port < 1 || port > 65535 {
			return fmt.Errorf("a port must be between 1 and 65535, not %d", port)
		}
	}
	return nil
}

// Listens returns the address and port on the host.
func (m PortMapping) Listens() netip.AddrPort {
	return netip.AddrPortFrom(m.Address, uint16(m.HostPort))
}

// overlap reports whether sockets cannot listen at both a and b. One at all addresses leaves no room for one at a
// single address.
func overlap(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && (a.Addr() == b.Addr() || a.Addr().IsUnspecified() || b.Addr().IsUnspecified())
}
