package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// FollowNodes keeps the host's routes to the pods of every node and to load balancers, until ctx ends. The API server
// reaches webhooks and proxied pods by them, and so does the user. It keeps in to which nodes forward to load
// balancers, and lets rules admit joined machines.
//
// The informer's handlers run one after the other, so what they share needs no lock.
//
// The supervisor runs it on a goroutine of its own, in a layer that ends before the API server does.
func FollowNodes(ctx context.Context, c plan.Config, to *Gateways, rules *RuleKeeper, log *slog.Logger) {
	api, err := client.Core(c)
	if err != nil {
		log.Error("cannot follow the nodes' pod networks", "err", err)
		return
	}
	route := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			if err := RouteToPods(c, node); err != nil {
				log.Error("cannot set the route to a node's pods", "node", node.Name, "err", err)
			}
		}
	}
	forget := func(obj any) {
		// The informer missed the deletion, as while its watch was broken, and has the last state that it knows.
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		if node, ok := obj.(*corev1.Node); ok {
			if err := forgetRouteToPods(c, node); err != nil {
				log.Error("cannot remove the route to a node's pods", "node", node.Name, "err", err)
			}
		}
	}
	var nodes cache.Store
	var informer cache.Controller
	// What was set last. A failure leaves it as it is, so that the next event, or the resync, tries again.
	last, joined, begun := []netip.Addr(nil), []netip.Addr(nil), false
	balance := func() {
		var all []*corev1.Node
		for _, obj := range nodes.List() {
			if node, ok := obj.(*corev1.Node); ok {
				all = append(all, node)
			}
		}
		if now := joinedMachines(c, all); c.IsJoinable() && !slices.Equal(now, joined) {
			if err := rules.admit(ctx, now); err != nil {
				log.Error("cannot let joined machines in", "err", err)
			} else {
				joined = now
			}
		}
		now := BalancerGateways(c, all)
		to.set(now)
		if begun && slices.Equal(now, last) {
			return
		}
		if err := RouteThrough(c, c.Networks().Balancers(), now); err != nil {
			log.Error("cannot set the route to load balancers", "err", err)
			return
		}
		last, begun = now, true
	}
	nodes, informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: core.Nodes(api).ListWatch(apiclient.Selection{Newest: true}), ObjectType: &corev1.Node{},
		ResyncPeriod: time.Minute,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			route(obj)
			balance()
		}, UpdateFunc: func(_, obj any) { route(obj); balance() },
			DeleteFunc: func(obj any) { forget(obj); balance() }},
	})
	informer.RunWithContext(ctx)
}

// RouteToPods sets the routes to a node's podCIDRs through its addresses on the node network. They go with the node
// (forgetRouteToPods), or with the link.
func RouteToPods(c plan.Config, node *corev1.Node) error {
	return eachPodRoute(c, node, netlink.RouteReplace)
}

// forgetRouteToPods removes a node's routes, unless they lead through another node by now.
func forgetRouteToPods(c plan.Config, node *corev1.Node) error {
	return eachPodRoute(c, node, func(route *netlink.Route) error {
		if err := netlink.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		return nil
	})
}

// eachPodRoute calls do with the route to each of the node's pod networks. It leads over the cluster's link or, to a
// node on another machine, as the kernel reaches that machine.
func eachPodRoute(c plan.Config, node *corev1.Node, do func(*netlink.Route) error) error {
	networks := podNetworks(c, node)
	if len(networks) == 0 {
		return nil
	}
	link, err := netlink.LinkByName(c.Mark())
	if err != nil {
		return fmt.Errorf("find %s: %w", c.Mark(), err)
	}
	var errs []error
	for subnet, gateway := range networks {
		route := &netlink.Route{Dst: host.IPNet(subnet), Gw: gateway.AsSlice()}
		if c.Networks().IsNodeAddress(gateway) {
			route.LinkIndex = link.Attrs().Index
		} else {
			route.Priority = int(c.ID()) // it does not go with the link
		}
		errs = append(errs, do(route))
	}
	return errors.Join(errs...)
}

// podNetworks returns a node's podCIDRs, each with the node's address of that family. Whoever may write Nodes has power
// over the cluster's networks, and none over the host's routes: podNetworks ignores everything outside of these
// networks. A podCIDR as large as the whole network, or larger, is ignored too: it would take the pods of all other
// nodes.
func podNetworks(c plan.Config, node *corev1.Node) map[netip.Prefix]netip.Addr {
	texts := node.Spec.PodCIDRs
	if len(texts) == 0 {
		texts = []string{node.Spec.PodCIDR}
	}
	out := map[netip.Prefix]netip.Addr{}
	for _, text := range texts {
		subnet, err := netip.ParsePrefix(text)
		within := func(all netip.Prefix) bool { return all.Contains(subnet.Addr()) && subnet.Bits() > all.Bits() }
		if err != nil || !slices.ContainsFunc(c.Networks().Pods(), within) {
			continue
		}
		for _, gateway := range client.InternalIPs(node) {
			if gateway.Is4() == subnet.Addr().Is4() &&
				(c.Networks().IsNodeAddress(gateway) || c.IsJoinable() && !c.Networks().IsOwn(gateway)) {
				out[subnet.Masked()] = gateway
				break
			}
		}
	}
	return out
}
