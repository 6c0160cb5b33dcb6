package aggregator

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/api/apiregistration"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/inflight"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/follow"
)

// APIServices is the resource that is followed.
func APIServices() schema.GroupResource {
	return schema.GroupResource{Group: v1.GroupName, Resource: "apiservices"}
}

// Config is what an Aggregator works with. What is not said to be optional is required.
type Config struct {
	// Catalog is what this server serves itself.
	Catalog *catalog.Catalog
	// Store has the APIServices, and Stored is where they are stored.
	Store  registry.Store
	Stored follow.Resource
	// Related are Services and EndpointSlices: a change of one in the namespace of a server has that looked at. Their
	// Decode is not used.
	Related []follow.Resource
	Cluster Cluster
	// Complete is closed when the catalog has all that was defined when the server started.
	Complete <-chan struct{}
	// Certificate is what servers know this one by, read at each handshake (--proxy-client-cert-file); nil: they
	// cannot.
	Certificate func() (*tls.Certificate, error)
	// Dial opens the connections to servers.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// IdentityHeaders are the headers by which this server lets front proxies name users, and IdentityPrefixes what
	// headers of theirs begin with: no client may send those to servers behind this one, which trust them. Optional.
	IdentityHeaders, IdentityPrefixes []string
	// FollowRedirects hands answers on that lead the client elsewhere (--aggregator-reject-forwarding-redirect=false).
	FollowRedirects bool
	// ID tells this server from all others.
	ID  string
	Now func() time.Time
	Log *slog.Logger
}

// Aggregator knows the APIServices. It is safe for concurrent use.
type Aggregator struct {
	cfg      Config
	via      string
	follower *follow.Follower
	changed  chan struct{}
	done     chan struct{} // closed when what there was at the start is registered
	now      atomic.Pointer[ServiceIndex]
	metrics  metrics
	inFlight *inflight.Shares

	mu    sync.Mutex
	known map[string]*v1.APIService // by name; the objects are read-only
	// remotes are the servers that are looked after, by the name of their APIService; only Run changes it.
	remotes map[string]*remote
}

// New returns an Aggregator; Run has it work.
func New(cfg Config) *Aggregator {
	a := &Aggregator{cfg: cfg, via: "1.1 kube-aggregator-" + cfg.ID, changed: make(chan struct{}, 1),
		done: make(chan struct{}), known: map[string]*v1.APIService{},
		remotes: map[string]*remote{}, inFlight: inflight.NewShares(maxInFlight, maxServerInFlight, 0)}
	a.metrics = newMetrics(a.Index)
	a.now.Store(&ServiceIndex{over: make(chan struct{})})
	a.follower = follow.New(cfg.Stored, a, cfg.Log)
	return a
}

// Index returns the APIServices as they are now.
func (a *Aggregator) Index() *ServiceIndex { return a.now.Load() }

// Registered reports whether the APIServices of all that this server serves itself were there once since it started.
func (a *Aggregator) Registered() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// Put implements follow.Handler.
func (a *Aggregator) Put(_ string, obj runtime.Object) {
	s, ok := obj.(*v1.APIService)
	if !ok {
		return
	}
	a.mu.Lock()
	a.known[s.Name] = s
	a.mu.Unlock()
	a.signal()
}

// Delete implements follow.Handler.
func (a *Aggregator) Delete(key string) {
	a.mu.Lock()
	delete(a.known, strings.TrimPrefix(key, a.cfg.Stored.Prefix))
	a.mu.Unlock()
	a.signal()
}

func (a *Aggregator) signal() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run works until ctx ends.
func (a *Aggregator) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.follower.Run(ctx) })
	group.Go(func() error { return a.register(ctx) })
	group.Go(func() error {
		select { // what there is comes in one piece
		case <-a.follower.Synced():
		case <-ctx.Done():
			return nil
		}
		related := sync.OnceFunc(func() { a.followRelated(ctx, group) })
		for {
			if a.refresh(ctx, group) > 0 {
				related()
			}
			select {
			case <-ctx.Done():
				return nil
			case <-a.changed:
			}
		}
	})
	return group.Wait()
}

// refresh indexes what is known by now, and looks after the servers in it, whose number it returns.
func (a *Aggregator) refresh(ctx context.Context, group *errgroup.Group) int {
	a.mu.Lock()
	known := maps.Clone(a.known)
	a.mu.Unlock()
	next := &ServiceIndex{generation: a.Index().generation + 1, over: make(chan struct{}),
		byVersion: make(map[schema.GroupVersion]*Service, len(known))}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		s := &Service{Object: known[name]}
		if s.Object.Spec.Service != nil {
			s.remote = a.remoteOf(ctx, group, s.Object)
			if s.seen = s.remote.seen.Load(); s.seen != nil &&
				apiregistration.SetCondition(s.Object.DeepCopy(), s.seen.condition, time.Time{}) {
				s.remote.poke() // somebody wrote another one; or it is being written
			}
			next.remotes++
		}
		next.services = append(next.services, s)
		next.byVersion[s.GroupVersion()] = s
	}
	for name, r := range a.remotes {
		if s := known[name]; s == nil || s.Spec.Service == nil {
			a.forget(name, r)
		}
	}
	close(a.now.Swap(next).over)
	return next.remotes
}

// remoteOf returns the server of an APIService, which is looked after from now on.
func (a *Aggregator) remoteOf(ctx context.Context, group *errgroup.Group, s *v1.APIService) *remote {
	name := s.Name
	if have := a.remotes[name]; have != nil {
		if sameServer(&have.spec, &s.Spec) {
			return have
		}
		a.forget(name, have)
	}
	r := a.newRemote(ctx, &s.Spec)
	a.mu.Lock()
	a.remotes[name] = r
	a.mu.Unlock()
	group.Go(func() error {
		a.watch(r, func(f *finding) bool { return a.found(r.life, name, r, f) })
		return nil
	})
	return r
}

func (a *Aggregator) forget(name string, r *remote) {
	r.end()
	a.mu.Lock()
	delete(a.remotes, name)
	a.mu.Unlock()
}

// found writes what was found out of a server, if it is not written, and makes it known. It reports whether it is
// written.
func (a *Aggregator) found(ctx context.Context, name string, r *remote, f *finding) bool {
	a.mu.Lock()
	current := a.remotes[name] == r
	is := a.known[name]
	a.mu.Unlock()
	if !current || is == nil {
		return true
	}
	if s := a.Index().byVersion[schema.GroupVersion{Group: r.spec.Group, Version: r.spec.Version}]; s == nil ||
		s.seen != f {
		a.signal()
	}
	if err := a.settle(ctx, is, f.condition); err != nil && ctx.Err() == nil {
		a.cfg.Log.Warn("the condition of an APIService cannot be written", "name", name, "err", err)
		return false
	}
	return true
}

// followRelated has servers looked at when something changes in the namespaces of their Services.
func (a *Aggregator) followRelated(ctx context.Context, group *errgroup.Group) {
	for _, from := range a.cfg.Related {
		from.Decode = func([]byte) (runtime.Object, error) { return nil, nil } // the key says enough
		f := follow.New(from, &pokes{a: a, prefix: from.Prefix}, a.cfg.Log)
		group.Go(func() error { return f.Run(ctx) })
	}
}

// pokes is a follow.Handler.
type pokes struct {
	a      *Aggregator
	prefix string
}

// Put implements follow.Handler.
func (p *pokes) Put(key string, _ runtime.Object) { p.Delete(key) }

// Delete implements follow.Handler.
func (p *pokes) Delete(key string) {
	ns, _, _ := strings.Cut(strings.TrimPrefix(key, p.prefix), "/")
	p.a.mu.Lock()
	defer p.a.mu.Unlock()
	for _, r := range p.a.remotes {
		if r.spec.Service.Namespace == ns {
			r.poke()
		}
	}
}
