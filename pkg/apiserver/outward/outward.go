// Package outward opens the server's connections to where objects say that somebody is: nodes, pods, the endpoints of Services. Whoever
// writes them must not lead the server to itself, where etcd and others trust what comes over loopback.
package outward

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// dialTimeout bounds how long a connection may take to open, as in kube-apiserver: a host that is gone drops packets, and the kernel
// would go on trying for two minutes.
const dialTimeout = 30 * time.Second

// Dialer opens connections to allowed addresses, or with allowLocal, which is for tests, to all. The address is checked when names have
// been resolved, so that no name and no second answer of a name server leads past the check.
func Dialer(allowLocal bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if !allowLocal {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %q: %w", address, err)
			}
			return Allow(to.Addr())
		}
	}
	return d.DialContext
}

// Allow refuses addresses of the server's own machine and of the link.
func Allow(addr netip.Addr) error {
	a := addr.Unmap()
	if a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return NotAllowed()
	}
	return nil
}

// NotAllowed is the error for an address that nothing goes to.
func NotAllowed() error { return apierrors.NewBadRequest("address not allowed") }
