// Package egress opens the server's connections to where objects say that somebody is: nodes, pods, the endpoints of
// Services. Whoever writes them must not lead the server to itself, where etcd and others trust what comes from the
// machine.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// dialTimeout bounds how long a connection may take to open, as in kube-apiserver: a host that is gone drops packets,
// and the kernel would go on trying for two minutes.
const dialTimeout = 30 * time.Second

// Dialer opens connections to allowed addresses. The zero value never connects to the machine that it runs on.
type Dialer struct {
	// AllowLocal allows all addresses; for tests.
	AllowLocal bool
	// Networks are files of network namespaces whose interfaces are the machine's too. A server in a namespace of its
	// own does not see those of the host, which it reaches all the same.
	Networks []string
	// AllowOwn reports whether an address of the machine's own network interfaces is allowed. Nil: none is.
	AllowOwn func(ctx context.Context, addr netip.Addr) bool
	// Through opens the connections in place of the kernel, through a proxy. Nil: they are direct.
	Through func(ctx context.Context, network, addr string) (net.Conn, error)
}

// DialContext connects to addr. The address is checked when names have been resolved, so that no name and no second
// answer of a name server leads past the check.
func (d Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.Through != nil {
		return d.dialThrough(ctx, network, addr)
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %q: %w", address, err)
		}
		return d.Allow(ctx, to.Addr())
	}
	return dialer.DialContext(ctx, network, addr)
}

// dialThrough connects through the proxy. The proxy is given addresses alone: a name might be another machine's here,
// and lead to loopback where the proxy looks it up.
func (d Dialer) dialThrough(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", addr, err)
	}
	all, err := resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("connections through an egress proxy go to addresses: %w", err)
	}
	var errs []error
	for _, a := range all {
		if err := d.Allow(ctx, a); err != nil {
			errs = append(errs, err)
			continue
		}
		conn, err := d.Through(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, errors.Join(errs...)
}

// resolve returns the addresses of a host, which may be one itself.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Allow refuses addresses of the server's own machine and of the link.
func (d Dialer) Allow(ctx context.Context, addr netip.Addr) error {
	if d.AllowLocal {
		return nil
	}
	a := addr.Unmap()
	if a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() ||
		a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return NotAllowed()
	}
	own, err := d.isOwn(a)
	if err != nil {
		return err
	}
	if own && (d.AllowOwn == nil || !d.AllowOwn(ctx, a)) {
		return NotAllowed()
	}
	return nil
}

// isOwn reports whether an interface of this machine has the address. They are listed each time: a bridge may come and
// go.
func (d Dialer) isOwn(addr netip.Addr) (bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, fmt.Errorf("list the machine's addresses: %w", err)
	}
	for _, network := range d.Networks {
		others, err := addressesIn(network)
		if err != nil {
			return false, err
		}
		all = append(all, others...)
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(addr.AsSlice())
	}), nil
}

// NotAllowed is the error for an address that nothing goes to.
func NotAllowed() error { return apierrors.NewBadRequest("address not allowed") }
