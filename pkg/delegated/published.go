package delegated

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/authorities"
	"bonsai/pkg/frontproxy"
)

// publishedName is the ConfigMap of kube-system in which the API server keeps what is in its --client-ca-file and
// --requestheader-* flags.
const publishedName = "extension-apiserver-authentication"

// Published is the authorities of client certificates and of front proxies that the API server publishes in the
// ConfigMap extension-apiserver-authentication of kube-system. Until it is read, no certificate is accepted: a
// component can start before its API server. If a key or the ConfigMap disappears or cannot be read, the last value
// stays. It is safe for concurrent use.
type Published struct {
	maps *apiclient.Resource[*corev1.ConfigMap]
	log  *slog.Logger

	clients, proxies authorities.Held

	mu    sync.Mutex
	trust frontproxy.Trust // without its roots, which proxies has
}

// Run follows the ConfigMap until ctx ends.
func (p *Published) Run(ctx context.Context) {
	lw := p.maps.ListWatch(apiclient.Selection{Namespace: metav1.NamespaceSystem,
		Fields: "metadata.name=" + publishedName})
	all := func(found []*corev1.ConfigMap) {
		for _, m := range found {
			p.take(m)
		}
	}
	apiclient.Follow(ctx, lw, publishedName, apiclient.SinkFuncs[*corev1.ConfigMap]{ReplaceFunc: all, SetFunc: p.take},
		p.log)
}

// Clients are the authorities of clients' certificates.
func (p *Published) Clients() authorities.Source { return &p.clients }

// Proxies are the authorities of front proxies' certificates.
func (p *Published) Proxies() authorities.Source { return &p.proxies }

// Trust is which front proxies are believed.
func (p *Published) Trust() frontproxy.Trust {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.trust
	t.Roots = p.proxies.Bundle().Pool
	return t
}

func (p *Published) take(m *corev1.ConfigMap) {
	if m.Name != publishedName {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, held := range map[string]*authorities.Held{"client-ca-file": &p.clients,
		"requestheader-client-ca-file": &p.proxies} {
		pem, ok := m.Data[key]
		if !ok {
			continue
		}
		if err := held.Set([]byte(pem)); err != nil {
			p.log.Warn("published authorities cannot be read; what was read before holds", "key", key, "err", err)
		}
	}
	trust, err := publishedTrust(m.Data)
	if err != nil {
		p.log.Warn("published front proxies cannot be read; what was read before holds", "err", err)
		return
	}
	p.trust = trust
}

// publishedTrust reads the lists, each of them JSON; one that is missing is empty.
func publishedTrust(data map[string]string) (t frontproxy.Trust, err error) {
	for key, into := range map[string]*[]string{
		"requestheader-allowed-names":        &t.AllowedNames,
		"requestheader-username-headers":     &t.Headers.UsernameHeaders,
		"requestheader-uid-headers":          &t.Headers.UIDHeaders,
		"requestheader-group-headers":        &t.Headers.GroupHeaders,
		"requestheader-extra-headers-prefix": &t.Headers.ExtraHeaderPrefixes,
	} {
		list := data[key]
		if list == "" {
			continue
		}
		if err := json.Unmarshal([]byte(list), into); err != nil {
			return frontproxy.Trust{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	return t, nil
}
