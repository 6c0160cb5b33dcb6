package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/apiserver/storage/split"
	"bonsai/pkg/apiserver/storage/traced"
	"bonsai/pkg/apiserver/storage/watchcache"
	"bonsai/pkg/health"
	"bonsai/pkg/safetext"
)

// stores are the etcds that keep the server's objects, each with a cache before it.
type stores struct {
	*split.Storage[*watchcache.Cache]
	facts *storage.FactsTable
	// all begins with the etcd of --etcd-servers. Those of --etcd-servers-overrides follow, each once.
	all []*store
}

// store is one etcd.
type store struct {
	servers []string
	backend *etcd.Store
	cache   *watchcache.Cache
}

// openStores connects to every etcd, as connect says, and records what requests ask of them if spans are wanted. It
// fails if one of them does not answer. ctx outlives the requests.
func openStores(ctx context.Context, o *options, rows []resources.Row, spans bool, connect etcd.Config) (_ *stores,
	err error) {
	overrides, err := parseOverrides(o.etcdOverrides)
	if err != nil {
		return nil, err
	}
	places, err := place(overrides, rows)
	if err != nil {
		return nil, err
	}
	s := &stores{facts: &storage.FactsTable{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	open := func(servers []string) (*store, error) {
		for _, known := range s.all {
			if strings.Join(known.servers, ";") == strings.Join(servers, ";") {
				return known, nil
			}
		}
		one, name := &store{servers: servers}, safetext.URLs(strings.Join(servers, ";"))
		its := connect
		its.Endpoints, its.Facts = servers, s.facts
		if len(s.all) > 0 {
			its.Log = connect.Log.With("etcd", name)
		}
		var err error
		if one.backend, err = etcd.New(ctx, its); err != nil {
			return nil, err
		}
		backend := watchcache.Backend(one.backend)
		if spans {
			backend = traced.Storage{Backend: one.backend}
		}
		if one.cache, err = watchcache.New(ctx, backend, watchcache.Config{Facts: s.facts, Open: one.backend.Open,
			Log: its.Log}); err != nil {
			return nil, errors.Join(fmt.Errorf("start the watch cache of %s: %w", name, err),
				one.backend.Close())
		}
		s.all = append(s.all, one)
		return one, nil
	}
	rest, err := open(o.etcdServers)
	if err != nil {
		return nil, err
	}
	// In the order of the flag, as the health checks have the numbers.
	for _, override := range overrides {
		if _, err := open(override.servers); err != nil {
			return nil, fmt.Errorf("--etcd-servers-overrides: %w", err)
		}
	}
	parts := map[string]*watchcache.Cache{}
	for prefix, servers := range places {
		one, err := open(servers)
		if err != nil {
			return nil, err
		}
		parts[prefix] = one.cache
	}
	s.Storage = split.New(rest.cache, parts)
	return s, nil
}

// close ends the caches and connections.
func (s *stores) close() {
	for _, one := range s.all {
		_ = one.cache.Close()   // has nothing to report
		_ = one.backend.Close() // nobody waits for an answer any more
	}
}

// count returns about how many objects there are under the prefix of a resource, and whether that is known.
func (s *stores) count(prefix string) (int, bool) { return s.Of(prefix).Count(prefix) }

// atLeast is count, or 0 while it is unknown.
func (s *stores) atLeast(prefix string) int {
	n, _ := s.count(prefix)
	return n
}

// forget drops what is cached under the prefix of a resource.
func (s *stores) forget(prefix string) { s.Of(prefix).Forget(prefix) }

// servers returns those of every etcd.
func (s *stores) servers() []string {
	var all []string
	for _, one := range s.all {
		all = append(all, one.servers...)
	}
	return all
}

// checks returns a health check of each etcd, with upstream's names: kind is "" or "-readiness".
func (s *stores) checks(kind string, timeout time.Duration) []health.Check {
	var all []health.Check
	for n, one := range s.all {
		name := "etcd" + kind
		if n > 0 {
			name = fmt.Sprintf("etcd-override%s-%d", kind, n-1)
		}
		all = append(all, health.Check{Name: name, Run: func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), timeout)
			defer cancel()
			_, err := one.backend.Revision(ctx)
			return err
		}})
	}
	return all
}
