package kubeletproxy

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/proxy"
)

type passOptions struct {
	// rewrite makes links in HTML answers point back through the API server.
	rewrite bool
	// upgrade refuses requests that do not upgrade the connection.
	upgrade bool
}

// pass hands the exchange to location. The error is nil once an answer has begun.
func pass(w http.ResponseWriter, r *http.Request, location *url.URL, transport http.RoundTripper, o passOptions) error {
	var failed firstError
	h := proxy.NewUpgradeAwareHandler(location, transport, o.rewrite, o.upgrade, &failed)
	h.ServeHTTP(w, r)
	return failed.err
}

// firstError keeps the error of setting up the connection for the caller, who turns it into a Status.
type firstError struct{ err error }

func (f *firstError) Error(_ http.ResponseWriter, _ *http.Request, err error) {
	if f.err == nil {
		f.err = asStatus(err)
	}
}

// asStatus keeps a Status error and makes everything else a 500.
func asStatus(err error) error {
	if s := apierrors.APIStatus(nil); errors.As(err, &s) {
		return err
	}
	return apierrors.NewInternalError(err)
}

// allow refuses addresses of the server's own machine and of the link, which a pod's status could name to reach what is
// guarded by locality alone.
func (p *Proxy) allow(host string) error {
	if p.cfg.AllowLocal {
		return nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return nil // a name, which a node's own status gave
	}
	a := addr.Unmap()
	if a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() || net.IP(a.AsSlice()).Equal(net.IPv4bcast) {
		return apierrors.NewBadRequest("address not allowed")
	}
	return nil
}
