// Package serviceip gives services their cluster IPs and node ports. What is taken is kept in memory, filled from the
// stored services on first use; a write reserves before it is stored and gives back when it is not.
package serviceip

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
)

// Config says what can be given out.
type Config struct {
	Stores registry.Stores
	// Ranges are the service ranges (--service-cluster-ip-range): one, or two of different families. The first one's family
	// is the default.
	Ranges []netip.Prefix
	// FirstNodePort and LastNodePort are the node port range, inclusive (--service-node-port-range); 0: 30000-32767.
	FirstNodePort, LastNodePort int
	// Random chooses; nil: seeded from the system.
	Random *rand.Rand
}

// Allocator is the services' registry.Hook.
type Allocator struct {
	stores      registry.Stores
	families    []corev1.IPFamily
	first, last int
	random      *rand.Rand

	// mu is also held while the stored services are read for the first time: nothing may be given away before it is known what is taken.
	mu     sync.Mutex
	loaded bool
	pools  map[corev1.IPFamily]*addresses
	ports  *numbers
}

var _ registry.Hook = (*Allocator)(nil)

// New returns the allocator. It reads nothing before the first write of a service.
func New(cfg Config) (*Allocator, error) {
	if cfg.Stores == nil || len(cfg.Ranges) == 0 || len(cfg.Ranges) > 2 {
		return nil, errors.New("service IPs: Stores and one or two Ranges are required")
	}
	if cfg.FirstNodePort == 0 && cfg.LastNodePort == 0 {
		cfg.FirstNodePort, cfg.LastNodePort = 30000, 32767
	}
	if cfg.FirstNodePort < 1 || cfg.LastNodePort > 65535 || cfg.LastNodePort < cfg.FirstNodePort {
		return nil, fmt.Errorf("service IPs: %d-%d is no range of node ports", cfg.FirstNodePort, cfg.LastNodePort)
	}
	if cfg.Random == nil {
		cfg.Random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	a := &Allocator{stores: cfg.Stores, first: cfg.FirstNodePort, last: cfg.LastNodePort, random: cfg.Random, pools: map[corev1.IPFamily]*addresses{}}
	for _, prefix := range cfg.Ranges {
		pool, err := newAddresses(prefix)
		if err != nil {
			return nil, err
		}
		f := familyOf(prefix.Addr())
		if a.pools[f] != nil {
			return nil, fmt.Errorf("service IPs: both ranges are %s", f)
		}
		a.pools[f] = pool
		a.families = append(a.families, f)
	}
	size := a.last - a.first + 1
	a.ports = newNumbers(size, portBand(size))
	return a, nil
}

// portBand is KEP-3668's lower band of the node ports.
func portBand(size int) int {
	if size < 64 {
		return 0
	}
	return min(max(16, size/32), 128)
}

func familyOf(a netip.Addr) corev1.IPFamily {
	if a.Unmap().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// loadLocked marks what the stored services hold.
func (a *Allocator) loadLocked(ctx context.Context) error {
	if a.loaded {
		return nil
	}
	objs, err := a.stores.Store(schema.GroupResource{Resource: "services"}).List(ctx, "", "")
	if err != nil {
		return fmt.Errorf("reading which service IPs are taken: %w", err)
	}
	for _, obj := range objs {
		h := holdingsOf(obj.(*corev1.Service))
		for _, ip := range h.ips {
			if p := a.pools[familyOf(ip)]; p != nil {
				_ = p.reserve(ip) // outside of the range since it was changed, or held twice: neither is new
			}
		}
		for _, port := range h.ports {
			if port >= a.first && port <= a.last {
				a.ports.take(port - a.first)
			}
		}
	}
	a.loaded = true
	return nil
}

// AfterDelete gives back what the service held.
func (a *Allocator) AfterDelete(obj runtime.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if svc, ok := obj.(*corev1.Service); ok && a.loaded {
		a.freeLocked(holdingsOf(svc))
	}
}

func (a *Allocator) freeLocked(h holdings) {
	for _, ip := range h.ips {
		if p := a.pools[familyOf(ip)]; p != nil {
			p.free(ip)
		}
	}
	for _, port := range h.ports {
		delete(a.ports.used, port-a.first)
	}
}

// holdings are the IPs and node ports of one service, each once.
type holdings struct {
	ips   []netip.Addr
	ports []int
}

func holdingsOf(svc *corev1.Service) holdings {
	var h holdings
	if needsIP(svc) {
		for _, s := range clusterIPs(svc) {
			if ip, err := netip.ParseAddr(s); err == nil {
				h.ips = append(h.ips, ip)
			}
		}
	}
	seen := map[int]bool{}
	add := func(port int32) {
		if n := int(port); n != 0 && !seen[n] {
			seen[n] = true
			h.ports = append(h.ports, n)
		}
	}
	for _, p := range svc.Spec.Ports {
		add(p.NodePort)
	}
	add(svc.Spec.HealthCheckNodePort)
	return h
}

// without returns what h has and other has not.
func (h holdings) without(other holdings) holdings {
	return holdings{ips: minus(h.ips, other.ips), ports: minus(h.ports, other.ports)}
}

func minus[T comparable](a, b []T) []T {
	in := map[T]bool{}
	for _, x := range b {
		in[x] = true
	}
	var out []T
	for _, x := range a {
		if !in[x] {
			out = append(out, x)
		}
	}
	return out
}

// clusterIPs is clusterIPs, or clusterIP alone where a client set only that.
func clusterIPs(svc *corev1.Service) []string {
	if len(svc.Spec.ClusterIPs) > 0 {
		return svc.Spec.ClusterIPs
	}
	if svc.Spec.ClusterIP != "" {
		return []string{svc.Spec.ClusterIP}
	}
	return nil
}

func isHeadless(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && (svc.Spec.ClusterIP == corev1.ClusterIPNone || len(svc.Spec.ClusterIPs) > 0 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone)
}

// needsIP tells whether the service is to have cluster IPs.
func needsIP(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && !isHeadless(svc)
}

// needsPorts tells whether the service's ports are to have node ports.
func needsPorts(svc *corev1.Service) bool {
	switch svc.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts
	}
	return false
}

func needsHealthPort(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer && svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
