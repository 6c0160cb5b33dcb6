// Package kms encrypts values by a key management service (KMS v2): each value by a key of its own, derived from a seed
// that this server makes, and that a plug-in on this machine encrypts by a key which never leaves the service.
//
// The plug-in is asked once a minute which key it uses. A new key means a new seed, and values of the old one are
// stale. Without an answer, values are written for three minutes more, and values whose seed is known are read.
package kms

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/util/uuid"

	"bonsai/pkg/safetext"
)

// Times of the checks, which are Kubernetes'.
const (
	// checkEvery is between two checks after a good one, and retryEvery after a bad one.
	checkEvery = time.Minute
	retryEvery = 10 * time.Second
	// writeFor is how long values are written after the last good check began.
	writeFor = 3 * time.Minute
	// A health check repeats the last result for this long.
	goodFor = 20 * time.Second
	badFor  = 3 * time.Second
)

// Config is one KMS provider.
type Config struct {
	Name     string
	Endpoint string
	Timeout  time.Duration
	// Now is the time; nil: time.Now.
	Now     func() time.Time
	Metrics *Metrics
	Log     *slog.Logger
}

// Provider seals and opens values as a storage.Transformer does, without their prefix.
type Provider struct {
	cfg     Config
	plugin  *plugin
	sources *sources
	state   atomic.Pointer[state]

	check   sync.Mutex // one check at a time; held while the plug-in is asked
	checked atomic.Pointer[checkResult]
}

// state is the seed that encrypts.
type state struct {
	object object // with everything but the data
	tail   []byte // object's message
	source *source
	// expires is when the seed must not write any more.
	expires time.Time
}

// checkResult is how the last check came out.
type checkResult struct {
	at  time.Time
	err error
}

// New returns a provider. It asks nobody: Check makes the first seed, and Run keeps it fresh. Close frees it.
func New(cfg Config) (*Provider, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	p := &Provider{cfg: cfg, sources: &sources{now: cfg.Now, kept: map[sourceID]*keptSource{}}}
	var err error
	p.plugin, err = dial(cfg.Endpoint, cfg.Timeout, func(method string, took time.Duration, err error) {
		cfg.Metrics.operation(cfg.Name, method, took, err)
	})
	return p, err
}

// Close ends the connection to the plug-in, and waits for the calls under way. What is asked of it fails from then on.
func (p *Provider) Close() error {
	err := p.plugin.conn.Close()
	p.sources.tasks.Wait()
	return err
}

// Run checks the plug-in until ctx ends.
func (p *Provider) Run(ctx context.Context) {
	for {
		wait := checkEvery
		if err := p.Check(ctx); err != nil {
			wait = retryEvery
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// Healthy is the result of the last check, or of a new one if that is old.
func (p *Provider) Healthy(ctx context.Context) error {
	if last := p.checked.Load(); last != nil {
		fresh := goodFor
		if last.err != nil {
			fresh = badFor
		}
		if p.cfg.Now().Sub(last.at) < fresh {
			return last.err
		}
	}
	return p.Check(ctx)
}

// Check asks the plug-in for its health and its key, and makes a new seed for a new key.
func (p *Provider) Check(ctx context.Context) error {
	p.check.Lock()
	defer p.check.Unlock()
	err := p.doCheck(ctx)
	if err != nil && ctx.Err() == nil {
		p.cfg.Log.Error("the KMS plug-in is not healthy", "provider", p.cfg.Name, "err", err)
	}
	if ctx.Err() == nil {
		p.checked.Store(&checkResult{p.cfg.Now(), err})
	}
	return err
}

func (p *Provider) doCheck(ctx context.Context) error {
	// Before the calls: they count for the time that a seed may write.
	expires := p.cfg.Now().Add(writeFor)
	status, err := p.plugin.status(ctx)
	if err != nil {
		return fmt.Errorf("failed to perform status section of the healthz check for KMS Provider %s, error: %w",
			p.cfg.Name, err)
	}
	if status.Version != "v2" && status.Version != "v2beta1" {
		return fmt.Errorf("expected KMSv2 API version v2, got %s", safetext.Text(status.Version))
	}
	if status.Healthz != "ok" {
		return fmt.Errorf("got unexpected healthz status: %s", safetext.Text(status.Healthz))
	}
	if err := checkKeyID(status.KeyId); err != nil {
		p.cfg.Metrics.invalidKeyID(p.cfg.Name, err)
		return fmt.Errorf("got invalid KMSv2 KeyID hash %q: %w", keyHash(status.KeyId), err)
	}
	p.cfg.Metrics.statusKeyID(p.cfg.Name, status.KeyId)
	return p.rotate(ctx, status.KeyId, expires)
}

// rotate makes the seed for the service's key if that is new, and else lets the present one write on.
func (p *Provider) rotate(ctx context.Context, keyID string, expires time.Time) error {
	if now := p.state.Load(); now != nil && now.object.keyID == keyID {
		p.state.Store(&state{object: now.object, tail: now.tail, source: now.source, expires: expires})
		return nil
	}
	begin := p.cfg.Now()
	err := p.makeSeed(ctx, keyID, expires)
	p.cfg.Metrics.generated(p.cfg.Now().Sub(begin), err)
	return err
}

// makeSeed makes the seed for the service's key, and lets it write.
func (p *Provider) makeSeed(ctx context.Context, keyID string, expires time.Time) error {
	seed := make([]byte, sourceSize)
	_, _ = rand.Read(seed) // never fails
	uid := string(uuid.NewUUID())
	answer, err := p.plugin.encrypt(ctx, uid, seed)
	if err != nil {
		return fmt.Errorf("failed to rotate DEK uid=%q: failed to encrypt DEK, error: %w", uid, err)
	}
	next := &state{object: object{keyID: answer.KeyId, source: answer.Ciphertext, annotations: answer.Annotations,
		sourceType: sourceSeed}, expires: expires}
	if next.source, err = newSource(sourceSeed, seed); err != nil {
		return err
	}
	next.tail = next.object.appendTail(nil)
	probe := next.object
	probe.data = seed[:1] // only so that it is not empty
	if err := probe.check(); err != nil {
		return fmt.Errorf("failed to rotate DEK uid=%q: got invalid response from the KMS plug-in: %w", uid, err)
	}
	if answer.KeyId != keyID {
		return fmt.Errorf("failed to rotate DEK uid=%q: the KMS plug-in encrypted by the key with hash %q, and its status names %q",
			uid, keyHash(answer.KeyId), keyHash(keyID))
	}
	p.sources.put(next.object.id(), next.source)
	p.cfg.Metrics.sources(p.cfg.Name, p.sources.size())
	p.state.Store(next)
	p.cfg.Log.Info("new values are encrypted by a new seed", "provider", p.cfg.Name, "uid", uid, "keyIDHash",
		keyHash(keyID))
	return nil
}

// current returns the seed that may write.
func (p *Provider) current() (*state, error) {
	s := p.state.Load()
	if s == nil {
		return nil, errors.New("the KMS plug-in has not been reached yet: there is no key to encrypt with")
	}
	if now := p.cfg.Now(); now.After(s.expires) {
		return nil, fmt.Errorf("EDEK with keyID hash %q expired at %s (current time is %s)", keyHash(s.object.keyID),
			s.expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return s, nil
}

// Append appends what is stored of value to dst: Seal of storage.Transformer.
func (p *Provider) Append(dst, path, value []byte) ([]byte, error) {
	s, err := p.current()
	if err != nil {
		return nil, err
	}
	var head [infoSize + nonceSize]byte
	_, _ = rand.Read(head[:]) // never fails
	aead, err := s.source.derive(head[:infoSize])
	if err != nil {
		return nil, err
	}
	size := len(head) + len(value) + aead.Overhead()
	dst = slices.Grow(dst, size+len(s.tail)+16)
	dst = protowire.AppendVarint(protowire.AppendTag(dst, fieldData, protowire.BytesType), uint64(size))
	dst = aead.Seal(append(dst, head[:]...), head[infoSize:], value, path)
	s.source.recent.put([infoSize]byte(head[:]), aead)
	p.cfg.Metrics.used(p.cfg.Name, toStorage, s.object.keyID)
	return append(dst, s.tail...), nil
}

// Open implements storage.Transformer. What another key of the service has encrypted is stale.
func (p *Provider) Open(ctx context.Context, path, stored []byte) (value []byte, stale bool, err error) {
	o, err := parse(stored)
	if err != nil {
		return nil, false, err
	}
	src, err := p.source(ctx, o)
	if err != nil {
		return nil, false, err
	}
	p.cfg.Metrics.used(p.cfg.Name, fromStorage, o.keyID)
	value, err = src.open(path, o.data)
	p.sources.opened(o.id, src, err)
	if err != nil {
		return nil, false, err
	}
	now := p.state.Load()
	return value, now != nil && (now.object.keyID != o.keyID || o.sourceType != sourceSeed), nil
}

// source returns the opened source of o. Most values have the present one.
func (p *Provider) source(ctx context.Context, o *object) (*source, error) {
	if now := p.state.Load(); now != nil && now.object.sameSource(o) {
		return now.source, nil
	}
	return p.sources.get(ctx, o.id(), func(ctx context.Context) (*source, error) {
		defer func() { p.cfg.Metrics.sources(p.cfg.Name, p.sources.size()) }()
		plain, err := p.plugin.decrypt(ctx, string(uuid.NewUUID()), o)
		if err != nil {
			return nil, fmt.Errorf("failed to decrypt DEK, error: %w", err)
		}
		return newSource(o.sourceType, plain)
	})
}

// AtHand implements storage.Transformer. What cannot be read fails at once.
func (p *Provider) AtHand(stored []byte) bool {
	o, err := parse(stored)
	if err != nil {
		return true
	}
	now := p.state.Load()
	return now != nil && now.object.sameSource(o) || p.sources.has(o.id())
}

// keyHash is a key ID as logs and metrics have it.
func keyHash(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:])
}
