package kubeletproxy

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/proxy"

	"bonsai/pkg/apiserver/egress"
)

type passOptions struct {
	// rewrite makes links in HTML answers point back through the API server.
	rewrite bool
	// upgrade refuses requests that do not upgrade the connection.
	upgrade bool
}

// pass hands the exchange to location. The error is nil once an answer has begun.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, location *url.URL, transport *http.Transport,
	o passOptions) error {
	dialer := p.toKubelets
	if transport == p.pods {
		dialer = p.toPods
	}
	if addr, err := netip.ParseAddr(location.Hostname()); err == nil {
		if err := dialer.Allow(r.Context(), addr); err != nil {
			return err // the dialer would refuse it, too, in words that do not reach the client
		}
	}
	var failed firstError
	h := proxy.NewUpgradeAwareHandler(location, egress.Answers{Transport: transport}, o.rewrite, o.upgrade, &failed)
	h.MaxBytesPerSec = p.cfg.MaxBytesPerSec
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
