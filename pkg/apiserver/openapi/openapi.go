// Package openapi serves /openapi/v2 and /openapi/v3: the schema of every served kind and the path of every row and
// verb. A document is made when it is first asked for, kept as compressed bytes, and dropped when nobody asked for it
// for a while, so that an idle server keeps none.
package openapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/catalog"
)

// Config is what the documents are made from.
type Config struct {
	Catalog *catalog.Catalog
	Scheme  *runtime.Scheme
	// Remotes are servers behind this one; nil: there are none.
	Remotes Remotes
	// Issuer tells that the server tells of its issuer of tokens (/.well-known/openid-configuration).
	Issuer bool
	// Version is the server's gitVersion. info.version shows its beginning.
	Version string
	// Keep is how long a document stays in memory after it was asked for; 0: one minute.
	Keep time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Remotes know the documents of other servers. Nobody waits for one of them for long.
type Remotes interface {
	// V2 returns the documents of other servers, and a mark that is another one whenever they are others, "" for none.
	V2(ctx context.Context) (mark string, all []Remote)
	// V3 returns, of the group versions of other servers that have a document, a mark of its content.
	V3(ctx context.Context) map[schema.GroupVersion]string
	// OnlyV2 returns the v2 document of the server of a group version, if it has none of v3, and a mark of its content;
	// else nil.
	OnlyV2(ctx context.Context, gv schema.GroupVersion) (mark string, v2 []byte)
	// Serves reports whether another server serves a group version.
	Serves(gv schema.GroupVersion) bool
}

// Remote is the OpenAPI v2 document of another server, as JSON. Only its paths below Prefix count.
type Remote struct {
	Prefix string
	JSON   []byte
}

// Service makes and keeps the documents. It is safe for concurrent use.
type Service struct {
	cfg    Config
	flight singleflight.Group

	mu    sync.Mutex
	kept  map[string]*document
	index index
}

// index is what /openapi/v3 says of a generation of the catalog; it is small and always kept.
type index struct {
	generation uint64
	entries    map[string]string // the marks of the documents, by path
}

// document is one encoding of one specification.
type document struct {
	gz   []byte
	etag string
	used time.Time
}

// New checks cfg; it makes no document.
func New(cfg Config) (*Service, error) {
	if cfg.Catalog == nil || cfg.Scheme == nil || cfg.Version == "" {
		return nil, errors.New("openapi: Catalog, Scheme and Version are required")
	}
	if cfg.Keep == 0 {
		cfg.Keep = time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Service{cfg: cfg, kept: map[string]*document{}}, nil
}

// get returns the document under key, made by build if it is not kept.
func (s *Service) get(key string, build func() ([]byte, error)) (*document, error) {
	if d := s.lookup(key); d != nil {
		return d, nil
	}
	v, err, _ := s.flight.Do(key, func() (any, error) {
		if d := s.lookup(key); d != nil {
			return d, nil
		}
		raw, err := build()
		if err != nil {
			return nil, fmt.Errorf("making the OpenAPI document %s: %w", key, err)
		}
		d := &document{etag: fmt.Sprintf("%X", sha512.Sum512(raw)), used: s.cfg.Now()}
		if d.gz, err = compress(raw); err != nil {
			return nil, fmt.Errorf("compressing the OpenAPI document %s: %w", key, err)
		}
		s.cache(key, d)
		return d, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*document), nil
}

func (s *Service) lookup(key string) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.kept[key]
	if d != nil {
		d.used = s.cfg.Now()
	}
	return d
}

// cache keeps d until no request has used it for cfg.Keep.
func (s *Service) cache(key string, d *document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[key] = d
	time.AfterFunc(s.cfg.Keep, func() { s.drop(key, d) })
}

// drop forgets d if it was not used for a while, else looks again later.
func (s *Service) drop(key string, d *document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rest := d.used.Add(s.cfg.Keep).Sub(s.cfg.Now()); rest > 0 {
		time.AfterFunc(rest, func() { s.drop(key, d) })
		return
	}
	if s.kept[key] == d {
		delete(s.kept, key)
	}
}

func compress(raw []byte) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(buf.Bytes()), nil
}

// plain gives the document's bytes to w, uncompressed.
func (d *document) plain(w io.Writer) error {
	r, err := gzip.NewReader(bytes.NewReader(d.gz))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return err
}
