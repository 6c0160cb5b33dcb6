// Package encryption encrypts values at rest by the file of --encryption-provider-config. The file and what is stored
// are in Kubernetes' format.
//
// A value begins with the provider and the name of its key (k8s:enc:aesgcm:v1:key1:). The first provider of a resource
// writes, all of them read. A value by another key than the first is stale: the next update writes it again, even if
// nothing changes.
package encryption

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/encryption/kms"
	"bonsai/pkg/health"
)

const (
	// lookEvery is how often the file is read if nothing tells of changes, as in Kubernetes.
	lookEvery = time.Minute
	// settleFor is how long after a change of its directory the file is read, so that several changes are read once.
	settleFor = 200 * time.Millisecond
	// healthyWithin is how long the KMS providers of a new configuration may take to be healthy.
	healthyWithin = 10 * time.Second
	// closeAfter is how long a replaced configuration is kept for requests under way, at least.
	closeAfter = 10 * time.Second
	// firstCheckWithin is how long the KMS providers of the first configuration may hold the start.
	firstCheckWithin = 5 * time.Second
)

// Config says how to encrypt.
type Config struct {
	// File is the configuration.
	File string
	// Reload follows the file.
	Reload bool
	// Rows say where resources are stored.
	Rows []resources.Row
	// ServerID names this API server in metrics.
	ServerID string
	Metrics  prometheus.Registerer
	Log      *slog.Logger
}

// Encryption is a configuration in force, which may change. It is safe for concurrent use.
type Encryption struct {
	cfg      Config
	metrics  *metrics
	envelope *kms.Metrics
	at       *locations
	current  atomic.Pointer[set]
	closing  sync.WaitGroup // of replaced configurations
	ctx      context.Context
	end      context.CancelFunc
}

// New reads the configuration. A KMS provider that does not answer is no error: values wait for it. Close must be
// called.
func New(ctx context.Context, cfg Config) (*Encryption, error) {
	sum := sha256.Sum256([]byte(cfg.ServerID))
	server := "sha256:" + hex.EncodeToString(sum[:])
	c, hash, err := Load(cfg.File, cfg.Reload)
	if err != nil {
		return nil, err
	}
	e := &Encryption{cfg: cfg, metrics: newMetrics(cfg.Metrics, server), envelope: kms.NewMetrics(cfg.Metrics, server),
		at: newLocations(cfg.Rows)}
	e.ctx, e.end = context.WithCancel(ctx)
	first, err := newSet(e.ctx, c, hash, &e.cfg, e.metrics, e.envelope, e.at)
	if err != nil {
		e.end()
		return nil, fmt.Errorf("encryption provider configuration file %q: %w", cfg.File, err)
	}
	e.current.Store(first)
	e.metrics.applied(hash)
	return e, nil
}

// Transformer returns how values under a key are changed; nil: not at all.
func (e *Encryption) Transformer(key string) storage.Transformer {
	return e.current.Load().transformer(key)
}

// Checks is the health check of the KMS providers, if there are any or may be.
func (e *Encryption) Checks() []health.Check {
	if !e.cfg.Reload && len(e.current.Load().services) == 0 {
		return nil
	}
	return []health.Check{{Name: "kms-providers", Run: func(r *http.Request) error {
		return e.current.Load().healthy(r.Context())
	}}}
}

// Close ends the KMS providers.
func (e *Encryption) Close() error {
	e.end()
	e.closing.Wait()
	return e.current.Load().close()
}

// Run follows the file until ctx ends, if it is to be followed.
func (e *Encryption) Run(ctx context.Context) error {
	if !e.cfg.Reload {
		<-ctx.Done()
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		err = watcher.Add(filepath.Dir(e.cfg.File))
	}
	var changes <-chan fsnotify.Event
	var lost <-chan error
	if err != nil {
		e.cfg.Log.Warn("changes of the encryption configuration are seen late", "every", lookEvery, "err", err)
	} else {
		changes, lost = watcher.Events, watcher.Errors
	}
	timer := time.NewTimer(0) // it may have changed since it was read
	defer timer.Stop()
	settling := true // the timer runs no longer than settleFor: who changes another file all the time must not move it
	settle := func() {
		if !settling {
			settling = true
			timer.Reset(settleFor)
		}
	}
	for {
		select {
		case <-changes:
			settle()
		case <-lost: // there were more changes than the watcher could tell
			settle()
		case <-timer.C:
			e.look(ctx)
			settling = false
			timer.Reset(lookEvery)
		case <-ctx.Done():
			return nil
		}
	}
}

// look reads the file, and puts it in force if it has changed. A bad one changes nothing.
func (e *Encryption) look(ctx context.Context) {
	text, err := readFile(e.cfg.File)
	if err == nil && fileHash(text) == e.current.Load().hash {
		return
	}
	hash, err := e.reload(ctx)
	e.metrics.reloaded(err)
	if err != nil {
		e.cfg.Log.Error("the encryption configuration could not be reloaded, the old one stays in force",
			"file", e.cfg.File, "err", err)
		return
	}
	e.cfg.Log.Info("the encryption configuration was reloaded", "file", e.cfg.File, "hash", hash)
}

// reload puts the file in force.
func (e *Encryption) reload(ctx context.Context) (hash string, err error) {
	c, hash, err := Load(e.cfg.File, true)
	if err != nil {
		return "", err
	}
	next, err := newSet(e.ctx, c, hash, &e.cfg, e.metrics, e.envelope, e.at)
	if err != nil {
		return "", fmt.Errorf("encryption provider configuration file %q: %w", e.cfg.File, err)
	}
	if err := becomesHealthy(ctx, next); err != nil {
		return "", errors.Join(err, next.close())
	}
	old := e.current.Swap(next)
	e.metrics.applied(hash)
	e.closing.Go(func() { e.retire(old) })
	return hash, nil
}

// becomesHealthy waits until the KMS providers of s are healthy.
func becomesHealthy(ctx context.Context, s *set) error {
	ctx, cancel := context.WithTimeout(ctx, healthyWithin)
	defer cancel()
	poll := time.NewTicker(500 * time.Millisecond)
	defer poll.Stop()
	for {
		err := s.healthy(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the KMS providers are not healthy: %w", err)
		}
	}
}

// retire closes a replaced configuration when no request can be using it any more.
func (e *Encryption) retire(old *set) {
	select {
	case <-time.After(old.grace):
	case <-e.ctx.Done():
	}
	if err := old.close(); err != nil {
		e.cfg.Log.Warn("a KMS provider could not be closed", "err", err)
	}
}
