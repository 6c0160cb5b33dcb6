package externaljwt

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	signerapi "k8s.io/externaljwt/apis/v1"

	"bonsai/pkg/apiserver/authn/serviceaccount"
)

const (
	// maxKeyID bounds the name of a key in bytes.
	maxKeyID = 1024
	// retryEvery is between two periodic questions for keys while there is no good answer.
	retryEvery = 10 * time.Second
	// maxRefresh bounds the time between two good ones: keys that were taken back end within it.
	maxRefresh = 24 * time.Hour
	// demandEvery is the least time between two questions because of tokens whose keys are unknown: anybody can make
	// such tokens.
	demandEvery = 100 * time.Millisecond
)

// keySet is what the process told of its keys. It is not changed.
type keySet struct {
	all, published []serviceaccount.PublicKey
	byID           map[string]knownKey
	asked          time.Time
	// next is when they are to be asked for again.
	next time.Time
}

// knownKey is one key. A hidden one verifies, but is not published and may not sign.
type knownKey struct {
	serviceaccount.PublicKey
	hidden bool
}

// Algorithms implements serviceaccount.Keys.
func (s *Signer) Algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}
}

// For implements serviceaccount.Keys. An unknown name makes it ask the process. A token without one may be of any key.
func (s *Signer) For(ctx context.Context, id string) []serviceaccount.PublicKey {
	if id == "" {
		return s.keys.Load().all
	}
	if k, ok := s.find(ctx, id, demandEvery); ok {
		return []serviceaccount.PublicKey{k.PublicKey}
	}
	return nil
}

// find returns the key of that name. Unless it is known, it asks the process, but not within pause of the last time.
func (s *Signer) find(ctx context.Context, id string, pause time.Duration) (knownKey, bool) {
	k, ok := s.keys.Load().byID[id]
	if !ok && len(id) <= maxKeyID {
		s.demand(ctx, id, pause)
		k, ok = s.keys.Load().byID[id]
	}
	return k, ok
}

// Published implements serviceaccount.Keys: those that sign, until they are asked for again.
func (s *Signer) Published() (keys []serviceaccount.PublicKey, maxAge int) {
	now := s.keys.Load()
	return now.published, int(max(0, now.next.Sub(s.cfg.Now())) / time.Second)
}

// Run asks for the keys again whenever their time has come, until ctx ends. Failures leave the earlier keys in force.
func (s *Signer) Run(ctx context.Context) error {
	wait := s.keys.Load().next.Sub(s.cfg.Now())
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if err := s.fetch(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("the keys of the external signer of service account tokens are not refreshed", "err", err)
			wait = retryEvery
			continue
		}
		wait = s.keys.Load().next.Sub(s.cfg.Now())
	}
}

// flight is a question for the keys. err is set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// demand asks for the keys because the one of that name is unknown. Who asks at the same time shares the answer. An
// answer to an earlier question may be older than the key: then it asks once more.
func (s *Signer) demand(ctx context.Context, id string, pause time.Duration) {
	for range 2 {
		f, begun := s.ask(ctx, func(known *keySet, now time.Time) bool {
			_, ok := known.byID[id]
			return !ok && now.Sub(known.asked) >= pause && now.Sub(s.failed) >= pause
		})
		if f == nil {
			return
		}
		if err := f.wait(ctx); err != nil && begun && ctx.Err() == nil {
			s.cfg.Log.Error("a token names an unknown key, and the external signer does not tell its keys", "err", err)
		}
		if begun {
			return
		}
	}
}

// fetch asks for the keys.
func (s *Signer) fetch(ctx context.Context) error {
	f, _ := s.ask(ctx, func(*keySet, time.Time) bool { return true })
	return f.wait(ctx)
}

// ask returns the question under way. If there is none, it begins one if needed says so, with mu held.
func (s *Signer) ask(ctx context.Context, needed func(known *keySet, now time.Time) bool) (f *flight, begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != nil {
		return s.flight, false
	}
	if !needed(s.keys.Load(), s.cfg.Now()) {
		return nil, false
	}
	s.flight = &flight{done: make(chan struct{})}
	// Not for this caller alone: anybody can send a token of an unknown key, and leave. It ends by callTimeout or
	// Close.
	go s.fly(context.WithoutCancel(ctx), s.flight)
	return s.flight, true
}

func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fly asks the process.
func (s *Signer) fly(ctx context.Context, f *flight) {
	err := s.load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = s.cfg.Now()
	}
	s.flight, f.err = nil, err
	close(f.done)
}

// load gets the keys.
func (s *Signer) load(ctx context.Context) error {
	asked := s.cfg.Now()
	var resp *signerapi.FetchKeysResponse
	err := s.call(ctx, methodFetchKeys, func(ctx context.Context) (err error) {
		resp, err = s.client.FetchKeys(ctx, &signerapi.FetchKeysRequest{})
		return err
	})
	var set *keySet
	if err == nil {
		set, err = parseKeys(resp, asked)
	}
	s.metrics.keysFetched(err)
	if err != nil {
		return fmt.Errorf("fetching its keys: %w", err)
	}
	s.keys.Store(set)
	s.metrics.fetched.Set(float64(s.cfg.Now().UnixNano()) / 1e9)
	s.metrics.data.Set(float64(resp.GetDataTimestamp().AsTime().UnixNano()) / 1e9)
	return nil
}

// waiting reports whether the process was not there yet.
func waiting(err error) bool {
	code := status.Code(err)
	return code == codes.DeadlineExceeded || code == codes.Unavailable || errors.Is(err, context.DeadlineExceeded)
}

// parseKeys checks an answer. One bad key makes all of it bad: the earlier keys are better than half of the new ones.
func parseKeys(resp *signerapi.FetchKeysResponse, asked time.Time) (*keySet, error) {
	hint := resp.GetRefreshHintSeconds()
	if len(resp.GetKeys()) == 0 {
		return nil, errors.New("found no keys")
	}
	if hint <= 0 {
		return nil, fmt.Errorf("found invalid refresh hint (%ds)", hint)
	}
	if err := resp.GetDataTimestamp().CheckValid(); err != nil {
		return nil, fmt.Errorf("the data timestamp: %w", err)
	}
	set := &keySet{byID: map[string]knownKey{}, asked: asked,
		next: asked.Add(time.Duration(min(hint, int64(maxRefresh/time.Second))) * time.Second)}
	for _, k := range resp.GetKeys() {
		pub, err := parseKey(k)
		if err != nil {
			return nil, err
		}
		if _, twice := set.byID[pub.ID]; twice {
			return nil, fmt.Errorf("found the public key id %.64q twice", pub.ID)
		}
		hidden := k.GetExcludeFromOidcDiscovery()
		set.byID[pub.ID], set.all = knownKey{pub, hidden}, append(set.all, pub)
		if !hidden {
			set.published = append(set.published, pub)
		}
	}
	return set, nil
}

func parseKey(k *signerapi.Key) (serviceaccount.PublicKey, error) {
	none, id := serviceaccount.PublicKey{}, k.GetKeyId()
	if id == "" || len(id) > maxKeyID {
		return none, fmt.Errorf("found invalid public key id %.64q", id)
	}
	if len(k.GetKey()) == 0 {
		return none, errors.New("found empty public key")
	}
	parsed, err := x509.ParsePKIXPublicKey(k.GetKey())
	if err != nil {
		return none, fmt.Errorf("the public key %.64q: %w", id, err)
	}
	pub, err := serviceaccount.NewPublicKey(parsed)
	if err != nil {
		return none, fmt.Errorf("the public key %.64q: %w", id, err)
	}
	pub.ID = id
	return pub, nil
}
