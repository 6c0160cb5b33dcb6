package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/netdump"
)

const (
	// healthPeriod is the time between two questions to the nodes about their endpoints of a Service. healthTimeout
	// bounds one answer. The nodes are asked at the same time and the Services one after the other, so a dead node
	// delays each round by one healthTimeout for each Service.
	healthPeriod  = time.Second
	healthTimeout = time.Second
)

// Gateways are the nodes that lead to load balancers, as FollowNodes last saw them. FollowNodes sets them, and
// FollowLocalBalancers reads them on another goroutine. Nobody changes a slice that was set, so get needs no copy.
type Gateways struct {
	mu  sync.Mutex // guards all
	all []netip.Addr
}

func (g *Gateways) set(all []netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = all
}

func (g *Gateways) get() []netip.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all
}

// localBalancer is a load balancer with externalTrafficPolicy Local: only nodes with endpoints answer for it. Each node
// reports that at the health check port of the Service.
type localBalancer struct {
	addresses   []netip.Addr
	healthCheck int32
}

// localBalancers returns the balancers of policy Local among the Services. Only addresses in the range of the cluster's
// balancers count: nothing else that somebody writes into a Service's status leads the host anywhere.
func localBalancers(c plan.Config, services []*corev1.Service) []localBalancer {
	var out []localBalancer
	for _, svc := range services {
		if svc.Spec.Type != corev1.ServiceTypeLoadBalancer ||
			svc.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal ||
			svc.Spec.HealthCheckNodePort == 0 {
			continue
		}
		b := localBalancer{healthCheck: svc.Spec.HealthCheckNodePort}
		for _, ingress := range svc.Status.LoadBalancer.Ingress {
			a, err := netip.ParseAddr(ingress.IP)
			if err == nil && slices.ContainsFunc(c.Networks().Balancers(), func(p netip.Prefix) bool {
				return p.Contains(a)
			}) {
				b.addresses = append(b.addresses, a)
			}
		}
		if len(b.addresses) > 0 {
			out = append(out, b)
		}
	}
	return out
}

// FollowLocalBalancers keeps the host's routes to load balancers of policy Local through the nodes that have endpoints,
// until ctx ends. The host reaches an address without such a route as it reaches all balancers, and the nodes'
// kube-proxy drops the packets.
//
// The supervisor runs it on a goroutine beside FollowNodes. It asks each healthPeriod, because only a node's kube-proxy
// knows whether the node has endpoints, and it announces no change. The routes go with the link, so nothing is removed
// at the end.
func FollowLocalBalancers(ctx context.Context, c plan.Config, nodes *Gateways, log *slog.Logger) {
	client, err := client.Core(c)
	if err != nil {
		log.Error("cannot follow load balancers of policy Local", "err", err)
		return
	}
	services, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: core.Services(client).ListWatch(apiclient.Selection{Newest: true}),
		ObjectType:    &corev1.Service{}, Handler: cache.ResourceEventHandlerFuncs{},
	})
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return
	}
	// An error is not fatal: set then lacks routes, which stay until a balancer with their address comes and goes.
	set, err := balancerRoutes(c)
	if err != nil {
		log.Error("cannot list the routes to load balancers", "err", err)
	}
	ticker := time.NewTicker(healthPeriod)
	defer ticker.Stop()
	for {
		var all []*corev1.Service
		for _, obj := range services.List() {
			if svc, ok := obj.(*corev1.Service); ok {
				all = append(all, svc)
			}
		}
		routeLocally(ctx, c, localBalancers(c, all), nodes.get(), set, log)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// routeLocally sets the routes to balancers. set has the present routes with their gateways. If a route cannot be set,
// set keeps its earlier state, so that the next round tries again.
func routeLocally(ctx context.Context, c plan.Config, balancers []localBalancer, nodes []netip.Addr,
	set map[netip.Addr][]netip.Addr, log *slog.Logger) {
	want := map[netip.Addr][]netip.Addr{}
	for _, b := range balancers {
		healthy := askHealth(ctx, nodes, b.healthCheck)
		for _, a := range b.addresses {
			want[a] = healthy
		}
	}
	for a := range set {
		if _, still := want[a]; !still {
			want[a] = nil
		}
	}
	// With an ended ctx askHealth finds no healthy node, and every route would be removed.
	if ctx.Err() != nil {
		return
	}
	for a, through := range want {
		// Cloned, because DeleteFunc changes the slice, which all addresses of one balancer share.
		through = slices.DeleteFunc(slices.Clone(through), func(g netip.Addr) bool { return g.Is4() != a.Is4() })
		if slices.Equal(through, set[a]) {
			continue
		}
		if err := RouteThrough(c, []netip.Prefix{netip.PrefixFrom(a, a.BitLen())}, through); err != nil {
			log.Error("cannot set the route to a load balancer of policy Local", "address", a, "nodes", through, "err",
				err)
			continue
		}
		if set[a] = through; len(through) == 0 {
			delete(set, a)
		}
	}
}

// balancerRoutes returns the routes to single balancers that an earlier life of the supervisor left. Their gateways are
// not known; an invalid one stands for them, so that the first round replaces or removes each route.
func balancerRoutes(c plan.Config) (map[netip.Addr][]netip.Addr, error) {
	found := map[netip.Addr][]netip.Addr{}
	link, err := netlink.LinkByName(c.Mark())
	if err != nil {
		return found, fmt.Errorf("find %s: %w", c.Mark(), err)
	}
	routes, err := netdump.Routes(netlink.FAMILY_ALL, nil, 0)
	for _, r := range routes {
		ours := r.LinkIndex == link.Attrs().Index ||
			slices.ContainsFunc(r.MultiPath, func(h *netlink.NexthopInfo) bool {
				return h.LinkIndex == link.Attrs().Index
			})
		if r.Dst == nil || !ours {
			continue
		}
		a, ok := netip.AddrFromSlice(r.Dst.IP)
		if a = a.Unmap(); !ok {
			continue
		}
		if ones, _ := r.Dst.Mask.Size(); ones == a.BitLen() &&
			slices.ContainsFunc(c.Networks().Balancers(), func(p netip.Prefix) bool {
				return p.Contains(a)
			}) {
			found[a] = []netip.Addr{{}}
		}
	}
	return found, err
}

// askHealth returns the nodes that report endpoints at the port, in the order of nodes. It asks all of them at the same
// time, each for healthTimeout at most.
//
// The port is the author's of a Service. So the question goes to the node alone: by no proxy of the environment, and
// along no redirect, with which whoever answers there could send the supervisor elsewhere.
func askHealth(ctx context.Context, nodes []netip.Addr, port int32) []netip.Addr {
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	// Each goroutine writes its own element, so the slice needs no lock, and the order of nodes stays.
	healthy := make([]bool, len(nodes))
	var asked sync.WaitGroup
	for i, node := range nodes {
		asked.Go(func() {
			healthy[i] = answersHealthy(ctx, client,
				"http://"+net.JoinHostPort(node.String(), strconv.Itoa(int(port)))+"/healthz") == nil
		})
	}
	asked.Wait()
	var out []netip.Addr
	for i, ok := range healthy {
		if ok {
			out = append(out, nodes[i])
		}
	}
	return out
}

// errUnhealthy is the answer of a node that has no endpoint of the Service.
var errUnhealthy = errors.New("the node has no endpoint")

// answersHealthy returns nil if the health check of a Service on a node answers 200.
func answersHealthy(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10)) // bytes; kube-proxy's answer is shorter
	if resp.StatusCode != http.StatusOK {
		return errUnhealthy
	}
	return nil
}
