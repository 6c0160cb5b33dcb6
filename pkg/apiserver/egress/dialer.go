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
	"sync/atomic"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// dialTimeout bounds how long a connection may take to open, as in kube-apiserver: a host that is gone drops packets,
// and the kernel would go on trying for two minutes.
const dialTimeout = 30 * time.Second

// maxAddresses bounds the addresses of a name that are tried. A name server may answer with thousands, and each costs a
// look at the machine's own addresses and a connection.
const maxAddresses = 10

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

	resolver *net.Resolver // of tests; nil is the default
}

// DialContext connects to addr. The address is checked when names have been resolved, so that no name and no second
// answer of a name server leads past the check.
func (d Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.Through != nil {
		return d.dialThrough(ctx, network, addr)
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, Resolver: d.resolver}
	var tried atomic.Int32 // the families of addresses are tried at the same time
	dialer.ControlContext = func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		if tried.Add(1) > maxAddresses {
			return fmt.Errorf("connect to %s: %d other addresses of the name have been tried", address, maxAddresses)
		}
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("connect to %q: %w", address, err)
		}
		return d.Allow(ctx, to.Addr())
	}
	return dialer.DialContext(ctx, network, addr)
}

// dialThrough connects through the proxy. The proxy is given addresses alone: a name might be another machine's here,
// and lead to loopback where the proxy looks it up. The addresses share dialTimeout, so that one that does not answer
// leaves time for the next.
func (d Dialer) dialThrough(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", addr, err)
	}
	all, err := d.resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("connections through an egress proxy go to addresses: %w", err)
	}
	all = all[:min(len(all), maxAddresses)]
	var errs []error
	for i, a := range all {
		conn, err := d.tryThrough(ctx, network, a, port, len(all)-i)
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

// tryThrough connects to one address through the proxy, in an equal share of the time that ctx has for this address and
// those after it: left in all.
func (d Dialer) tryThrough(ctx context.Context, network string, to netip.Addr, port string, left int) (net.Conn,
	error) {
	if err := d.Allow(ctx, to); err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return d.Through(ctx, network, net.JoinHostPort(to.Unmap().String(), port))
}

// resolve returns the addresses of a host, which may be one itself.
func (d Dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return d.resolver.LookupNetIP(ctx, "ip", host)
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
