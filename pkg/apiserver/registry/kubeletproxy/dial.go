package kubeletproxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// dialTimeout bounds how long a connection to a node or pod may take to open, as in kube-apiserver: a node that is gone drops packets,
// and the kernel would go on trying for two minutes.
const dialTimeout = 30 * time.Second

// dialer opens every connection of this package. A node's status says where the node is, and a pod's where the pod is; whoever
// writes them must not lead the server to itself, where etcd and others trust what comes over loopback. The address is
// checked when names have been resolved, so that no name and no second answer of a name server leads past the check.
func dialer(allowLocal bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	if !allowLocal {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("connect to %q: %w", address, err)
			}
			return allow(to.Addr())
		}
	}
	return d.DialContext
}

// allow refuses addresses of the server's own machine and of the link.
func allow(addr netip.Addr) error {
	a := addr.Unmap()
	if a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return errNotAllowed()
	}
	return nil
}

func errNotAllowed() error { return apierrors.NewBadRequest("address not allowed") }
