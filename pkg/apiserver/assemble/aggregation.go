package assemble

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"bonsai/api/apiregistration"
	"bonsai/pkg/apiserver/aggregator"
	"bonsai/pkg/apiserver/discovery"
	"bonsai/pkg/apiserver/egress"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/openapi"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/follow"
	"bonsai/pkg/health"
	"bonsai/pkg/keypair"
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
	// Hostname is the machine's. If the Node of that name has an address of this machine, servers may be there.
	Hostname string
	// LocalNetworks are as in Options.
	LocalNetworks []string
	// Dial opens the connections to them; nil: to everywhere but to this machine.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// asNode reports of an address of this machine whether it is a node's: of the one with the machine's name. Pods of the
// host's network are there, if the machine is one. Nodes choose their addresses, but not their names, so that no other
// one opens this machine. The nodes are found when an address is asked about: connections are set up before anything is
// served.
func asNode(hostname string, stores registry.Stores) func(ctx context.Context, addr netip.Addr) bool {
	return func(ctx context.Context, addr netip.Addr) bool {
		nodes := stores.Store(schema.GroupResource{Resource: "nodes"})
		if nodes == nil {
			return false
		}
		obj, err := nodes.GetCached(ctx, "", strings.ToLower(hostname))
		node, ok := obj.(*corev1.Node)
		return err == nil && ok && slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool {
			ip, err := netip.ParseAddr(a.Address)
			return err == nil && ip.Unmap() == addr
		})
	}
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
	certificate, err := s.cfg.Aggregation.certificate(s.cfg.HTTP.Log)
	if err != nil {
		return err
	}
	o, store := s.cfg.Aggregation, late(s.cfg.Catalog)
	if o.Dial == nil {
		o.Dial = egress.Dialer{Networks: s.cfg.Aggregation.LocalNetworks,
			AllowOwn: asNode(s.cfg.Aggregation.Hostname, s.cfg.Catalog),
			Through:  s.cfg.Egress.Dial(selector.Cluster)}.DialContext
	}
	h := o.RequestHeader
	a := aggregator.New(aggregator.Config{
		Catalog: s.cfg.Catalog, Store: store(gr.Group, gr.Resource), Stored: stored, Related: related,
		Complete: s.complete, Certificate: certificate,
		Cluster: aggregator.Cluster{Services: store("", "services"),
			Slices: store(discoveryv1.GroupName, "endpointslices"), Routing: !o.ByAddress},
		Dial: o.Dial, FollowRedirects: o.FollowRedirects,
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
	s.hooks = append(s.hooks, "start-kube-aggregator-informers", "apiservice-status-local-available-controller",
		"apiservice-status-remote-available-controller", "apiservice-registration-controller",
		"apiservice-discovery-controller",
		"kube-apiserver-autoregistration", "apiservice-openapi-controller", "apiservice-openapiv3-controller")
	s.begun = append(s.begun, health.Check{Name: "autoregister-completion", Run: func(*http.Request) error {
		if !a.Registered() {
			return errors.New("the APIServices of what is served are not there yet")
		}
		return nil
	}})
	return nil
}

// certificate returns what has the certificate of the files, which may be renewed without a restart; nil without files.
func (o Aggregation) certificate(log *slog.Logger) (func() (*tls.Certificate, error), error) {
	if o.CertFile == "" && o.KeyFile == "" {
		return nil, nil
	}
	pair, err := keypair.Load(o.CertFile, o.KeyFile, log)
	if err != nil {
		return nil, fmt.Errorf("--proxy-client-cert-file, --proxy-client-key-file: %w", err)
	}
	return func() (*tls.Certificate, error) { return pair.Current(), nil }, nil
}

// registered tells discovery of the APIServices; nil if the server serves none.
func (s *Server) registered() func() (uint64, func() []discovery.Registered) {
	if s.aggregator == nil {
		return nil
	}
	return func() (uint64, func() []discovery.Registered) {
		now := s.aggregator.Index()
		return now.Generation(), func() []discovery.Registered { return registeredIn(now) }
	}
}

func registeredIn(now *aggregator.ServiceIndex) []discovery.Registered {
	all := make([]discovery.Registered, 0, len(now.Services()))
	for _, a := range now.Services() {
		spec := &a.Object.Spec
		r := discovery.Registered{GroupVersion: a.GroupVersion(), Remote: a.Remote(),
			Priority: apiregistration.Priority{Group: spec.GroupPriorityMinimum, Version: spec.VersionPriority}}
		if r.Remote {
			resources, fresh := a.Resources()
			r.Resources, r.Stale = resources, !fresh
		}
		all = append(all, r)
	}
	return all
}

// remotes tells OpenAPI of other servers' documents; nil if the server serves no APIServices.
func (s *Server) remotes() openapi.Remotes {
	if s.aggregator == nil {
		return nil
	}
	return remoteSchemas{s.aggregator}
}

type remoteSchemas struct{ of *aggregator.Aggregator }

// V2 implements openapi.Remotes.
func (r remoteSchemas) V2(ctx context.Context) (string, []openapi.Remote) {
	mark, schemas := r.of.OpenAPIV2(ctx)
	out := make([]openapi.Remote, len(schemas))
	for i, s := range schemas {
		out[i] = openapi.Remote(s)
	}
	return mark, out
}

// V3 implements openapi.Remotes.
func (r remoteSchemas) V3(ctx context.Context) map[schema.GroupVersion]string {
	return r.of.OpenAPIV3(ctx)
}

// OnlyV2 implements openapi.Remotes.
func (r remoteSchemas) OnlyV2(ctx context.Context, gv schema.GroupVersion) (string, []byte) {
	return r.of.OnlyV2(ctx, gv)
}

// Serves implements openapi.Remotes.
func (r remoteSchemas) Serves(gv schema.GroupVersion) bool { return r.of.Remote(gv) }

// schemas are the OpenAPI documents of this server and of those behind it.
type schemas struct {
	*openapi.Service
	others *aggregator.Aggregator // may be nil
}

// Serve implements documents.
func (d schemas) Serve(w http.ResponseWriter, r *http.Request) (bool, error) {
	if d.others != nil && d.others.ProxyOpenAPI(w, r) {
		return true, nil
	}
	return d.Service.Serve(w, r)
}
