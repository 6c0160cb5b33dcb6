package assemble

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"bonsai/pkg/apiserver/aggregator"
	"bonsai/pkg/apiserver/outward"
	"bonsai/pkg/apiserver/storage/follow"
	"bonsai/pkg/health"
)

// Aggregation says how servers behind this one are reached, in the words of upstream's flags.
type Aggregation struct {
	// CertFile and KeyFile are what they know this server by; "": they do not.
	CertFile, KeyFile string
	// ByAddress goes to the addresses of Services, not to their endpoints.
	ByAddress bool
	// FollowRedirects hands redirects on to clients.
	FollowRedirects bool
	// RequestHeader is what this server reads from front proxies, and tells those behind it to read from this one.
	RequestHeader RequestHeader
	// Dial opens the connections to them; nil: to everywhere but to this machine.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// addAggregator adds to the server what APIServices are for, if it serves them.
func (s *Server) addAggregator() error {
	from := &sources{from: s.cfg.Storage, rows: s.cfg.Rows}
	gr := aggregator.APIServices()
	stored := from.of(gr.Group, gr.Resource)
	related := []follow.Resource{from.of("", "services"), from.of(discoveryv1.GroupName, "endpointslices")}
	if from.missing != nil {
		return nil
	}
	certificate, err := s.cfg.Aggregation.certificate()
	if err != nil {
		return err
	}
	o, store := s.cfg.Aggregation, late(s.cfg.Catalog)
	if o.Dial == nil {
		o.Dial = outward.Dialer(false)
	}
	h := o.RequestHeader
	a := aggregator.New(aggregator.Config{
		Catalog: s.cfg.Catalog, Store: store(gr.Group, gr.Resource), Stored: stored, Related: related, Complete: s.complete, Certificate: certificate,
		Cluster: aggregator.Cluster{Services: store("", "services"), Slices: store(discoveryv1.GroupName, "endpointslices"), Routing: !o.ByAddress},
		Dial:    o.Dial, FollowRedirects: o.FollowRedirects,
		IdentityHeaders: slices.Concat(h.Usernames, h.UIDs, h.Groups), IdentityPrefixes: h.ExtraHeaderPrefixes,
		ID: string(uuid.NewUUID()), Now: time.Now, Log: s.cfg.HTTP.Log,
	})
	for _, m := range a.Metrics() {
		if err := s.cfg.HTTP.Metrics.Register(m); err != nil {
			return err
		}
	}
	s.aggregator = a
	s.runs = append(s.runs, a.Run)
	s.ready = append(s.ready, health.Check{Name: "autoregister-completion", Run: func(*http.Request) error {
		if !a.Registered() {
			return errors.New("the APIServices of what is served are not there yet")
		}
		return nil
	}})
	return nil
}

// certificate reads the files again at each handshake, so that a renewed one is used without a restart; nil without files.
func (o Aggregation) certificate() (func() (*tls.Certificate, error), error) {
	if o.CertFile == "" && o.KeyFile == "" {
		return nil, nil
	}
	read := func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--proxy-client-cert-file, --proxy-client-key-file: %w", err)
		}
		return &c, nil
	}
	_, err := read()
	return read, err
}
