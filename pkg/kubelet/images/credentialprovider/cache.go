package credentialprovider

import (
	"sync"
	"time"

	"github.com/distribution/reference"
	credentialv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

// maxKnown bounds the answers that are kept of one provider: images and service accounts are users' to invent.
const maxKnown = 1000

// cacheKey says whom and what an answer is for.
type cacheKey struct {
	caller string
	kind   credentialv1.PluginCacheKeyType
	// of is the part of the image's name that kind selects: the name, the registry, or nothing for a global answer.
	of string
}

type entry struct {
	answer *credentialv1.CredentialProviderResponse
	until  time.Time
}

// cache keeps a provider's answers.
type cache struct {
	now func() time.Time

	mu    sync.Mutex
	known map[cacheKey]entry
}

func newCache(now func() time.Time) *cache { return &cache{now: now, known: map[cacheKey]entry{}} }

// get returns an answer that still holds for the image: one of its own, of its registry, or of all.
func (c *cache) get(caller string, image reference.Named) (*credentialv1.CredentialProviderResponse, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range []cacheKey{
		{caller, credentialv1.ImagePluginCacheKeyType, image.Name()},
		{caller, credentialv1.RegistryPluginCacheKeyType, reference.Domain(image)},
		{caller, credentialv1.GlobalPluginCacheKeyType, ""},
	} {
		if e, ok := c.known[p]; ok && c.now().Before(e.until) {
			return e.answer, true
		}
	}
	return nil, false
}

// put keeps an answer for a time; 0 keeps it not at all.
func (c *cache) put(caller string, image reference.Named, r *credentialv1.CredentialProviderResponse,
	keep time.Duration) {
	if keep <= 0 {
		return
	}
	p := cacheKey{caller: caller, kind: r.CacheKeyType}
	switch r.CacheKeyType {
	case credentialv1.ImagePluginCacheKeyType:
		p.of = image.Name()
	case credentialv1.RegistryPluginCacheKeyType:
		p.of = reference.Domain(image)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if len(c.known) >= maxKnown {
		for k, e := range c.known {
			if !now.Before(e.until) {
				delete(c.known, k)
			}
		}
	}
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[p] = entry{r, now.Add(keep)}
}
