// Package serviceip gives services their cluster IPs and node ports. An address is taken by making its IPAddress
// object, so that all API servers on one etcd agree on who has it; which ranges there are, ServiceCIDR objects say.
// Which node ports are taken says one RangeAllocation in the storage, changed by compare-and-swap. A write reserves
// before it is stored and gives back when it is not; what a server leaves behind that dies in between, Repair finds.
package serviceip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

// Config says what can be given out.
type Config struct {
	Stores registry.Stores
	// Storage keeps which node ports are taken.
	Storage Storage
	// Ranges are the service ranges (--service-cluster-ip-range): one, or two of different families. Services can have
	// addresses of their families, by default of the first one's.
	Ranges []netip.Prefix
	// FirstNodePort and LastNodePort are the node port range, inclusive (--service-node-port-range); 0: 30000-32767.
	FirstNodePort, LastNodePort int
	// Random chooses; nil: seeded from the system.
	Random *rand.Rand
	// Now is the clock by which addresses are old.
	Now func() time.Time
	Log *slog.Logger
}

// Allocator is the services' registry.Hook.
type Allocator struct {
	stores   registry.Stores
	families []corev1.IPFamily
	random   *rand.Rand // guarded by mu
	now      func() time.Time
	log      *slog.Logger

	ports *nodePorts

	// mu is also held while the stored services are read for the first time: nothing may be given away before it is
	// known what is taken.
	mu     sync.Mutex
	loaded bool
	// used are addresses that need not be tried, because somebody has them as far as this server has heard. It may know
	// too many and too few: IPAddress objects decide.
	used map[netip.Addr]struct{}
}

var _ registry.Hook = (*Allocator)(nil)

// New returns the allocator. It reads nothing before the first write of a service.
func New(cfg Config) (*Allocator, error) {
	if cfg.Stores == nil || cfg.Storage == nil || cfg.Log == nil || cfg.Now == nil || len(cfg.Ranges) == 0 ||
		len(cfg.Ranges) > 2 {
		return nil, errors.New("service IPs: Stores, Storage, Now, Log and one or two Ranges are required")
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
	a := &Allocator{stores: cfg.Stores, random: cfg.Random, log: cfg.Log, now: cfg.Now, used: map[netip.Addr]struct{}{}}
	a.ports = newNodePorts(cfg.Storage, cfg.FirstNodePort, cfg.LastNodePort,
		rand.New(rand.NewPCG(cfg.Random.Uint64(), cfg.Random.Uint64())), a.services)
	for _, prefix := range cfg.Ranges {
		if _, err := newBlock(prefix); err != nil {
			return nil, err
		}
		f := familyOf(prefix.Addr())
		if a.has(f) {
			return nil, fmt.Errorf("service IPs: both ranges are %s", f)
		}
		a.families = append(a.families, f)
	}
	return a, nil
}

// has reports whether services can have addresses of a family.
func (a *Allocator) has(f corev1.IPFamily) bool { return slices.Contains(a.families, f) }

func familyOf(a netip.Addr) corev1.IPFamily {
	if a.Unmap().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// load marks the addresses that the stored services hold.
func (a *Allocator) load(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.loaded {
		return nil
	}
	services, err := a.services(ctx)
	if err != nil {
		return err
	}
	for _, svc := range services {
		for _, ip := range holdingsOf(svc).ips {
			a.used[ip] = struct{}{}
		}
	}
	a.loaded = true
	return nil
}

// services are all that are stored.
func (a *Allocator) services(ctx context.Context) ([]*corev1.Service, error) {
	objs, err := a.stores.Store(corev1.Resource("services")).List(ctx, "", "")
	if err != nil {
		return nil, fmt.Errorf("reading services: %w", err)
	}
	return typed[*corev1.Service](objs), nil
}

// AfterDelete gives back what the service held.
func (a *Allocator) AfterDelete(ctx context.Context, obj runtime.Object) {
	if svc, ok := obj.(*corev1.Service); ok {
		a.free(ctx, svc, holdingsOf(svc))
	}
}

// free gives back what svc held, also when the client is gone. Where that fails, Repair does it.
func (a *Allocator) free(ctx context.Context, svc *corev1.Service, h holdings) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	for _, ip := range h.ips {
		a.release(ctx, svc, ip)
	}
	if err := a.ports.release(ctx, h.ports); err != nil {
		a.log.Warn("node ports are not given back yet", "ports", h.ports, "service", svc.Namespace+"/"+svc.Name, "err",
			err)
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
	return svc.Spec.Type != corev1.ServiceTypeExternalName &&
		(svc.Spec.ClusterIP == corev1.ClusterIPNone ||
			len(svc.Spec.ClusterIPs) > 0 && svc.Spec.ClusterIPs[0] == corev1.ClusterIPNone)
}

// needsIP reports whether the service is to have cluster IPs.
func needsIP(svc *corev1.Service) bool {
	return svc.Spec.Type != corev1.ServiceTypeExternalName && !isHeadless(svc)
}

// needsPorts reports whether the service's ports are to have node ports.
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
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
