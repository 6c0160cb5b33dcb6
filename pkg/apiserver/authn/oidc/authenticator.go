package oidc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
)

const (
	// maxToken bounds what is parsed, in bytes.
	maxToken = 64 << 10
	// The cache of users, of each configuration.
	cacheTTL  = 10 * time.Second
	cacheSize = 4096
)

// How the file is followed.
const (
	lookEvery  = time.Second
	retryEvery = time.Minute // a file that is not good
	// findWithin is how long the issuers of a new file may take to be found; then the old file stays in force.
	findWithin = time.Minute
)

// Options are what an Authenticator needs beside its configuration.
type Options struct {
	// AccountIssuers are those of service account tokens, which no other issuer may be named like.
	AccountIssuers []string
	// AnonymousFlag reports that --anonymous-auth is given, so that no file may say anything about it.
	AnonymousFlag bool
	// Metrics counts; nil: nobody does.
	Metrics *Metrics
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Authenticator recognises the tokens of OpenID providers by a configuration, which may change.
type Authenticator struct {
	o    Options
	path string

	current atomic.Pointer[generation]
	// looked is what the file was at the last look, for Run alone.
	looked os.FileInfo
	failed time.Time // when a changed file was not taken; zero: it was
}

var _ authn.TokenAuthenticator = (*Authenticator)(nil)

// Open returns an Authenticator by the file path, which Run follows.
func Open(path string, o Options) (*Authenticator, error) {
	a := newAuthenticator(o)
	a.path = path
	a.looked, _ = os.Stat(path) // before it is read: Run sees what is written in between
	g, err := a.read()
	if err != nil {
		return nil, err
	}
	a.current.Store(g)
	a.o.Metrics.configured(g.hash)
	return a, nil
}

// New returns an Authenticator by the --oidc-* flags.
func New(f Flags, o Options) (*Authenticator, error) {
	a := newAuthenticator(o)
	c, err := f.configuration()
	if err != nil {
		return nil, err
	}
	g, err := a.generation(c)
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
	text, err := os.ReadFile(a.path)
	if err != nil {
		return nil, fail(err)
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fail(err)
	}
	g, err := a.generation(c)
	if err != nil {
		return nil, fmt.Errorf("invalid authentication configuration: %w", err)
	}
	g.hash = hash(string(text))
	return g, nil
}

func hash(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

func (a *Authenticator) generation(c *Configuration) (*generation, error) {
	compiled, errs := validate(c, a.o.AccountIssuers)
	if c.Anonymous != nil && a.o.AnonymousFlag {
		errs = append(errs, field.Forbidden(field.NewPath("anonymous"),
			"--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file"))
	}
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	g := &generation{issuers: map[string]*issuer{}, anonymous: c.Anonymous}
	for n := range c.JWT {
		i, err := newIssuer(&c.JWT[n], compiled[n], &a.o)
		if err != nil {
			return nil, fmt.Errorf("jwt[%d].issuer.certificateAuthority: %w", n, err)
		}
		g.issuers[i.config.Issuer.URL] = i
	}
	g.cached = authn.Cache(g, cacheTTL, cacheSize)
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
	if a.path == "" {
		<-ctx.Done()
		return nil
	}
	for sleep(ctx, lookEvery) {
		a.look(ctx)
	}
	return nil
}

// look takes the file over if it has changed and is good.
func (a *Authenticator) look(ctx context.Context) {
	info, err := os.Stat(a.path)
	changed := err == nil && (a.looked == nil || !sameFile(info, a.looked))
	retry := !a.failed.IsZero() && a.o.Now().Sub(a.failed) >= retryEvery
	if err != nil && a.looked != nil {
		changed = true // it is gone: one error tells
	}
	if !changed && !retry {
		return
	}
	if a.looked = info; err != nil {
		a.looked = nil
	}
	if took, err := a.reload(ctx); err != nil {
		if ctx.Err() != nil {
			return
		}
		a.failed = a.o.Now()
		a.o.Metrics.reloaded(false, a.failed, "")
		a.o.Log.Error("the authentication configuration is not taken over: the earlier one stays in force", "err", err)
	} else {
		a.failed = time.Time{}
		if took {
			a.o.Log.Info("the authentication configuration is taken over", "path", a.path)
		}
	}
}

func sameFile(a, b os.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// Why a file is not waited for any longer.
var (
	errSlow    = errors.New("it took too long")
	errChanged = errors.New("the file has changed again")
)

// reload reads the file and, when all its issuers are found, puts it in force. It returns false if the file has the
// content that is in force.
func (a *Authenticator) reload(ctx context.Context) (bool, error) {
	next, err := a.read()
	if err != nil {
		return false, err
	}
	old := a.current.Load()
	if next.hash == old.hash {
		return false, nil
	}
	next.start(ctx)
	if err := a.await(ctx, next); err != nil {
		next.stop()
		return false, fmt.Errorf("%s: %w", a.path, err)
	}
	a.current.Store(next)
	old.stop()
	for url := range old.issuers {
		if next.issuers[url] == nil {
			a.o.Metrics.forget(url)
		}
	}
	a.o.Metrics.reloaded(true, a.o.Now(), next.hash)
	return true, nil
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
		for sleep(ctx, lookEvery) {
			if info, err := os.Stat(a.path); err != nil || a.looked == nil || !sameFile(info, a.looked) {
				end(errChanged)
				return
			}
		}
	})
	return next.found(ctx)
}
