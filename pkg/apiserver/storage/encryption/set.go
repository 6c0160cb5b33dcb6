package encryption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/encryption/kms"
)

// set is one configuration in force.
type set struct {
	hash    string
	at      *locations
	metrics *metrics
	// rules has the keys of each resource that the configuration names; "*" stands for all of a group, and of all.
	rules map[schema.GroupResource][]key
	// services are the KMS providers, in their order.
	services []*kms.Provider
	// grace is how long requests under way may need the services when the set is replaced.
	grace time.Duration

	mu    sync.Mutex                       // serializes changes of known
	known atomic.Pointer[map[string]*keys] // by the path of a resource; the map is only replaced

	end   context.CancelFunc
	tasks sync.WaitGroup
}

// newSet makes what a valid configuration says, and starts its KMS providers. stop ends them.
func newSet(ctx context.Context, c *Configuration, hash string, cfg *Config, m *metrics, envelope *kms.Metrics,
	at *locations) (*set, error) {
	s := &set{hash: hash, at: at, metrics: m, rules: map[schema.GroupResource][]key{}, grace: closeAfter}
	s.known.Store(&map[string]*keys{})
	services := map[string]*kms.Provider{}
	fail := func(err error) (*set, error) {
		return nil, errors.Join(err, s.close())
	}
	for i := range c.Resources {
		var all []key
		for j := range c.Resources[i].Providers {
			p := &c.Resources[i].Providers[j]
			if p.KMS != nil {
				if err := supported(p.KMS); err != nil {
					return fail(err)
				}
				service, err := kms.New(kms.Config{Name: p.KMS.Name, Endpoint: p.KMS.Endpoint,
					Timeout: p.KMS.Timeout.Duration, Metrics: envelope, Log: cfg.Log})
				if err != nil {
					return fail(err)
				}
				services[p.KMS.Name] = service
				s.grace = max(s.grace, 2*p.KMS.Timeout.Duration)
				s.services = append(s.services, service)
			}
			some, err := newKeys(p, services)
			if err != nil {
				return fail(err)
			}
			all = append(all, some...)
		}
		for _, name := range c.Resources[i].Resources {
			if err := s.addRule(schema.ParseGroupResource(name), all); err != nil {
				return fail(err)
			}
		}
	}
	ctx, s.end = context.WithCancel(ctx)
	s.firstCheck(ctx)
	for _, service := range s.services {
		s.tasks.Go(func() { service.Run(ctx) })
	}
	return s, nil
}

// firstCheck gives the KMS providers some time to make their first seeds. The server starts all the same.
func (s *set) firstCheck(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstCheckWithin)
	defer cancel()
	var all sync.WaitGroup
	for _, service := range s.services {
		all.Go(func() { _ = service.Check(ctx) }) // the check logs what is wrong
	}
	all.Wait()
}

// supported refuses KMS v1, which is off in Kubernetes 1.36.
func supported(k *KMSConfiguration) error {
	if k.APIVersion == "v1" {
		return errors.New("KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead. KMS v1 is not supported here: set apiVersion: v2 of the KMS provider " + k.Name)
	}
	return nil
}

// addRule adds keys for a resource. A rule behind one that has taken the resource already would never be asked.
func (s *set) addRule(gr schema.GroupResource, all []key) error {
	for _, wide := range []schema.GroupResource{{Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if _, masked := s.rules[wide]; masked {
			return fmt.Errorf("resource %q is masked by earlier rule %q", ruleName(gr), ruleName(wide))
		}
	}
	s.rules[gr] = append(s.rules[gr], all...)
	return nil
}

// ruleName is a resource as configurations have it.
func ruleName(gr schema.GroupResource) string {
	if gr.Group == "" && gr.Resource == "*" {
		return "*."
	}
	return gr.String()
}

// transformer returns how values under key are changed; nil: not at all.
func (s *set) transformer(storageKey string) storage.Transformer {
	path := s.at.path(storageKey)
	k, ok := (*s.known.Load())[path]
	if !ok {
		k = s.learn(path)
	}
	if k == nil {
		return nil
	}
	return k
}

// learn finds the keys of the resource at path, and keeps them.
func (s *set) learn(path string) *keys {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := *s.known.Load()
	if k, ok := all[path]; ok {
		return k
	}
	gr := s.at.of(path)
	var found *keys
	for _, rule := range []schema.GroupResource{gr, {Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if ks, ok := s.rules[rule]; ok {
			found = &keys{all: ks, resource: gr.String(), metrics: s.metrics}
			break
		}
	}
	next := maps.Clone(all)
	next[path] = found
	s.known.Store(&next)
	return found
}

// healthy returns what is wrong with the KMS providers.
func (s *set) healthy(ctx context.Context) error {
	errs := make([]error, len(s.services))
	var all sync.WaitGroup
	for i, service := range s.services {
		all.Go(func() { errs[i] = service.Healthy(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// close ends the KMS providers, and waits for them.
func (s *set) close() error {
	if s.end != nil {
		s.end()
	}
	s.tasks.Wait()
	var errs []error
	for _, service := range s.services {
		errs = append(errs, service.Close())
	}
	return errors.Join(errs...)
}
