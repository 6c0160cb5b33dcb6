package oidc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/configfile"
	"bonsai/pkg/apiserver/request"
)

const (
	// maxToken bounds what is parsed, in bytes.
	maxToken = 64 << 10
	// The cache of users, of each configuration.
	cacheTTL  = 10 * time.Second
	cacheSize = 4096
)

// findWithin is how long the issuers of a new file may take to be found; then the old file stays in force.
const findWithin = time.Minute

// Options are what an Authenticator needs beside its configuration.
type Options struct {
	// AccountIssuers are those of service account tokens, which no other issuer may be named like.
	AccountIssuers []string
	// AnonymousFlag reports that --anonymous-auth is given, so that no file may say anything about it.
	AnonymousFlag bool
	// Egress returns what opens the connections of an egressSelectorType; nil: they are direct. nil instead of the
	// function: there is no egress selector, and no issuer may name a type.
	Egress func(kind string) func(ctx context.Context, network, addr string) (net.Conn, error)
	// Metrics counts, Reloads the reloads of the file, Cache what the cache of tokens is asked; nil: nobody does.
	Metrics *Metrics
	Cache   *authn.CacheMetrics
	Reloads *configfile.Metrics
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Authenticator recognises the tokens of OpenID providers by a configuration, which may change.
type Authenticator struct {
	o    Options
	path string
	file *configfile.File // for Run alone; nil: there is none

	current atomic.Pointer[generation]
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// Open returns an Authenticator by the file path, which Run follows.
func Open(path string, o Options) (*Authenticator, error) {
	a := newAuthenticator(o)
	a.path = path
	a.file = configfile.New(path, "authentication configuration", a.o.Reloads, a.o.Now, a.o.Log)
	g, err := a.read()
	if err != nil {
		return nil, err
	}
	a.current.Store(g)
	a.o.Reloads.Applied(g.hash)
	return a, nil
}

// New returns an Authenticator by the --oidc-* flags.
func New(f Flags, o Options) (*Authenticator, error) {
	a := newAuthenticator(o)
	c, err := f.configuration()
	if err != nil {
		return nil, err
	}
	compiled, err := a.check(c)
	if err != nil {
		return nil, err
	}
	g, err := a.generation(c, compiled)
	if err != nil {
		return nil, err
	}
	a.current.Store(g)
	return a, nil
}

func newAuthenticator(o Options) *Authenticator {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Authenticator{o: o}
}

// AuthenticateToken implements authn.TokenAuthenticator. The tokens are for the API server alone, whatever audiences
// their issuers give them, and name none of Kubernetes' audiences.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*request.User,
	[]string, error) {
	return a.current.Load().cached.AuthenticateToken(ctx, token, audiences)
}

// Anonymous returns the configuration of requests without credentials; nil: there is none.
func (a *Authenticator) Anonymous() *Anonymous { return a.current.Load().anonymous }

// generation is one configuration in force.
type generation struct {
	issuers   map[string]*issuer // by URL
	cached    authn.TokenAuthenticator
	anonymous *Anonymous
	hash      string

	end  context.CancelFunc // nil before start
	runs sync.WaitGroup
}

// read makes a generation of the file.
func (a *Authenticator) read() (*generation, error) {
	fail := func(err error) error {
		return fmt.Errorf("failed to load authentication configuration from file %q: %w", a.path, err)
	}
	text, err := a.file.Read()
	if err != nil {
		return nil, fail(err)
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fail(err)
	}
	compiled, err := a.check(c)
	if err != nil {
		return nil, fmt.Errorf("invalid authentication configuration: %w", err)
	}
	g, err := a.generation(c, compiled)
	if err != nil {
		return nil, err
	}
	g.hash = configfile.Hash(text)
	return g, nil
}

// check returns the compiled expressions of a configuration, in the order of its issuers.
func (a *Authenticator) check(c *Configuration) ([]*rules, error) {
	compiled, errs := validate(c, a.o.AccountIssuers)
	if c.Anonymous != nil && a.o.AnonymousFlag {
		errs = append(errs, field.Forbidden(field.NewPath("anonymous"),
			"--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"))
	}
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return compiled, nil
}

// generation makes one of a checked configuration.
func (a *Authenticator) generation(c *Configuration, compiled []*rules) (*generation, error) {
	g := &generation{issuers: map[string]*issuer{}, anonymous: c.Anonymous}
	for n := range c.JWT {
		i, err := newIssuer(&c.JWT[n], compiled[n], &a.o)
		if err != nil {
			return nil, err
		}
		g.issuers[i.config.Issuer.URL] = i
	}
	g.cached = authn.Cache(g, cacheTTL, cacheSize, a.o.Cache)
	return g, nil
}

// AuthenticateToken implements authn.TokenAuthenticator. The issuer is read before the signature is verified, only to
// decide whose token it is.
func (g *generation) AuthenticateToken(ctx context.Context, token string, _ []string) (*request.User, []string, error) {
	if len(g.issuers) == 0 || strings.Count(token, ".") != 2 {
		return nil, nil, nil
	}
	if len(token) > maxToken {
		return nil, nil, fmt.Errorf("oidc: the token has more than %d bytes", maxToken)
	}
	url, ok := issuerOf(token)
	if !ok {
		return nil, nil, nil
	}
	i := g.issuers[url]
	if i == nil {
		return nil, nil, nil
	}
	start := i.now()
	u, err := i.authenticate(ctx, token)
	i.metrics.authenticated(url, err == nil, i.now().Sub(start))
	return u, nil, err
}

// start begins to look for the issuers.
func (g *generation) start(ctx context.Context) {
	ctx, g.end = context.WithCancel(ctx)
	for _, i := range g.issuers {
		g.runs.Go(func() { i.run(ctx) })
	}
}

// stop ends what start began.
func (g *generation) stop() {
	g.end()
	g.runs.Wait()
}

// found waits until all issuers are found. It fails if ctx ends before.
func (g *generation) found(ctx context.Context) error {
	for url, i := range g.issuers {
		select {
		case <-i.ready:
		case <-ctx.Done():
			return fmt.Errorf("the issuer %q is not found: %w", url, context.Cause(ctx))
		}
	}
	return nil
}

// Run looks for the issuers, and follows the file, until ctx ends.
func (a *Authenticator) Run(ctx context.Context) error {
	a.current.Load().start(ctx)
	defer func() { a.current.Load().stop() }()
	if a.file == nil {
		<-ctx.Done()
		return nil
	}
	a.file.Follow(ctx, a.reload)
	return nil
}

// Why a file is not waited for any longer.
var (
	errSlow    = errors.New("it took too long")
	errChanged = errors.New("the file has changed again")
)

// reload reads the file and, when all its issuers are found, puts it in force. It returns its hash, or "" if the file
// has the content that is in force.
func (a *Authenticator) reload(ctx context.Context) (string, error) {
	next, err := a.read()
	if err != nil {
		return "", err
	}
	old := a.current.Load()
	if next.hash == old.hash {
		return "", nil
	}
	next.start(ctx)
	if err := a.await(ctx, next); err != nil {
		next.stop()
		return "", fmt.Errorf("%s: %w", a.path, err)
	}
	a.current.Store(next)
	old.stop()
	for url := range old.issuers {
		if next.issuers[url] == nil {
			a.o.Metrics.forget(url)
		}
	}
	return next.hash, nil
}

// await waits until all issuers of a new file are found, but no longer than findWithin, nor after another change of the
// file: whoever mends a mistake must not wait for it.
func (a *Authenticator) await(ctx context.Context, next *generation) error {
	ctx, cancel := context.WithTimeoutCause(ctx, findWithin, errSlow)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end(nil)
	watch.Go(func() {
		if a.file.AwaitChange(ctx) {
			end(errChanged)
		}
	})
	return next.found(ctx)
}
