// Package assemble puts an API server together: stores, authentication, authorization, admission, behaviours, documents
// and the HTTP server around them, in an order in which everything is there before it is used.
//
// What reads objects (plug-ins, behaviours, authenticators) is given the catalog while that is still empty, and finds
// the stores when it is asked. So the parts are made first and the resources are served last, when all that guards them
// stands: there is no moment at which something is served and a part is missing.
package assemble

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver"
	"bonsai/pkg/apiserver/aggregator"
	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/authn/serviceaccount"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/discovery"
	"bonsai/pkg/apiserver/egress/selector"
	"bonsai/pkg/apiserver/fairness"
	"bonsai/pkg/apiserver/fieldmanager"
	"bonsai/pkg/apiserver/openapi"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/rest"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/authorities"
	"bonsai/pkg/health"
)

// Parts are what a server consists of besides its resources. NewParts makes those of Kubernetes; tests bring their own.
type Parts struct {
	// Authenticator and Authorizer are required.
	Authenticator authn.Authenticator
	Authorizer    authz.Authorizer
	// RolesKnown is closed when Authorizer knows the default roles and bindings; nil: there are none.
	RolesKnown <-chan struct{}
	// Admission is asked about every write; nil: all are admitted as they are.
	Admission registry.Admitter
	// Fields keeps managedFields; nil: New makes what does.
	Fields *fieldmanager.Manager
	// Behaviours are what resources do beyond storing.
	Behaviours map[schema.GroupResource]Behaviour
	// Fairness gives requests their turns; nil: the plain bounds of Config.HTTP do.
	Fairness *fairness.Dispatcher
	// Paths are further paths (patterns of http.ServeMux).
	Paths map[string]http.Handler
	// Ready must be well before the server calls itself ready.
	Ready []health.Check
	// Started must be well once, when the server has started.
	Started []health.Check
	// Hooks name upstream's start hooks that stand for what Runs do: their checks pass once Runs have been started.
	Hooks []string
	// Runs are run beside the server, until it has answered its last request. The end of one is the end of all.
	Runs []func(context.Context) error
	// Leave is called when the server begins to end, while it still answers: nobody is to come any more. May be nil.
	Leave func(context.Context)
	// ClientAuthorities are those by whose certificates clients may be known, which TLS must ask for.
	ClientAuthorities *authorities.Set
}

// Behaviour is what a resource does beyond storing.
type Behaviour struct {
	catalog.Answers
	// Hook takes part in the writes of the resource's store; may be nil.
	Hook registry.Hook
	// Checker checks updates by who makes them; may be nil.
	Checker registry.Checker
}

// Config is what a server is made of.
type Config struct {
	// Catalog is what the parts read. Nothing is served of it before New has made everything else.
	Catalog *catalog.Catalog
	// Storage keeps the objects.
	Storage storage.Interface
	// Rows are the resources that are served from the start.
	Rows  []resources.Row
	Parts Parts
	// MinWatch is the least duration of a watch without timeoutSeconds; 0: rest's default.
	MinWatch time.Duration
	// MaxValues bounds the values in the body of a request; 0: rest's default.
	MaxValues int
	// NoGarbageCollector is set if no controller orphans or deletes dependents: no deletion waits for that.
	NoGarbageCollector bool
	// Aggregation is how servers behind this one are reached.
	Aggregation Aggregation
	// Egress chooses the way of the server's connections; nil: all are direct.
	Egress *selector.Selector
	// ServerAddress is host:port in /api.
	ServerAddress string
	// HTTP is the server around it all; Catalog, API, Authenticator, Authorizer and Fairness are filled in, Paths,
	// Ready and Started added to.
	HTTP apiserver.Config
}

// Server is a whole API server.
type Server struct {
	*apiserver.Server
	cfg    Config
	api    *rest.API
	fields *fieldmanager.Manager
	// complete is closed when all is served that was defined when the server started.
	complete <-chan struct{}
	// aggregator knows who else serves; nil if the server does not serve APIServices.
	aggregator *aggregator.Aggregator
	// begun, hooks and runs are Started, Hooks and Runs of what the server itself is made of, beside the parts'.
	begun []health.Check
	hooks []string
	runs  []func(context.Context) error
	// started is set when all runs have been started. One that fails ends the server.
	started atomic.Bool
}

// New puts the server together. It fails if a behaviour belongs to no row of cfg.Rows. Run lets clients in.
func New(cfg Config) (*Server, error) {
	if cfg.Catalog == nil || cfg.Storage == nil {
		return nil, errors.New("assemble a server: a catalog and a storage are needed")
	}
	s := &Server{cfg: cfg}
	kinds := scheme.New()
	var err error
	if s.fields = cfg.Parts.Fields; s.fields == nil {
		if s.fields, err = fieldmanager.New(fieldmanager.Config{Scheme: kinds, Log: cfg.HTTP.Log}); err != nil {
			return nil, err
		}
	}
	if s.api, err = rest.New(
		rest.Config{Scheme: kinds, Admission: cfg.Parts.Admission, Fields: s.fields, Authorizer: cfg.Parts.Authorizer,
			Hold:     apiserver.BoundAnswers(),
			MinWatch: cfg.MinWatch, MaxValues: cfg.MaxValues, Tracer: cfg.HTTP.Tracer,
			Metrics: cfg.HTTP.Metrics, Log: cfg.HTTP.Log}); err != nil {
		return nil, err
	}
	if err := s.addCustomResources(); err != nil {
		return nil, err
	}
	if err := s.addAggregator(); err != nil {
		return nil, err
	}
	_, issuer := cfg.Parts.Paths[serviceaccount.ConfigurationPath]
	described, err := openapi.New(
		openapi.Config{Catalog: cfg.Catalog, Scheme: kinds, Remotes: s.remotes(), Issuer: issuer,
			Version: cfg.HTTP.Version.GitVersion})
	if err != nil {
		return nil, err
	}
	h := cfg.HTTP
	if s.aggregator != nil {
		h.Aggregated = s.aggregator
	}
	h.Catalog, h.API, h.Authenticator, h.Authorizer, h.Fairness = cfg.Catalog, s.api, cfg.Parts.Authenticator,
		cfg.Parts.Authorizer, cfg.Parts.Fairness
	h.RolesKnown = cfg.Parts.RolesKnown
	h.Ready = slices.Concat(h.Ready, cfg.Parts.Ready)
	h.Started = slices.Concat(h.Started,
		s.startChecks(slices.Concat(cfg.Parts.Hooks, s.hooks), slices.Concat(cfg.Parts.Started, s.begun)))
	h.Paths = s.paths(discovery.New(
		discovery.Config{Catalog: cfg.Catalog, Registered: s.registered(), ServerAddress: cfg.ServerAddress}),
		schemas{described, s.aggregator})
	if s.Server, err = apiserver.New(h); err != nil {
		return nil, err
	}
	return s, s.serve(cfg.Rows)
}

// serve adds rows to the catalog, with their behaviours.
func (s *Server) serve(rows []resources.Row) error {
	entries := make([]catalog.Entry, len(rows))
	have := map[schema.GroupResource]bool{}
	for i := range rows {
		gr := rows[i].GroupResource()
		have[gr] = true
		var err error
		if entries[i], err = s.Entry(&rows[i], s.cfg.Parts.Behaviours[gr]); err != nil {
			return err
		}
	}
	for gr := range s.cfg.Parts.Behaviours {
		if !have[gr] {
			return fmt.Errorf("there is a behaviour of %s, which no row describes", gr)
		}
	}
	return s.cfg.Catalog.Add(entries...)
}

// Entry makes what the catalog needs to serve row: its store, under the rules of this server, and its handlers.
func (s *Server) Entry(row *resources.Row, b Behaviour) (catalog.Entry, error) {
	e := catalog.Entry{Row: row, Answers: b.Answers, Handle: s.api.Handler}
	if row.NotStored || row.Stored != nil {
		return e, nil
	}
	var err error
	e.Store, err = registry.NewGeneric(
		registry.Config{Row: row, Storage: s.cfg.Storage, Admission: s.cfg.Parts.Admission, Hook: b.Hook,
			Checker: b.Checker, Fields: s.fields,
			NoGarbageCollector: s.cfg.NoGarbageCollector})
	return e, err
}

// Run serves until ctx ends or something fails.
func (s *Server) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	for _, f := range slices.Concat(s.cfg.Parts.Runs, s.runs) {
		group.Go(func() error { return f(beside) })
	}
	s.started.Store(true)
	if leave := s.cfg.Parts.Leave; leave != nil {
		group.Go(func() error {
			<-ctx.Done()
			leave(ctx)
			return nil
		})
	}
	group.Go(func() error {
		defer end()
		return s.Server.Run(ctx)
	})
	return group.Wait()
}
