package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
)

// coreClient returns a client for what the cluster's command reads, with the administrator's identity.
func (c Config) coreClient() (*apiclient.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.layout().kubeconfig(administrator))
	if err != nil {
		return nil, err
	}
	s, err := apiclient.NewScheme(apiclient.Only(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{}))
	if err != nil {
		return nil, err
	}
	return apiclient.New(config, s)
}

// followNodes keeps the host's routes to the pods of every node and to load balancers, until ctx ends: the API server reaches webhooks and
// proxied pods by them, and so does the user.
func (c Config) followNodes(ctx context.Context, log *slog.Logger) {
	client, err := c.coreClient()
	if err != nil {
		log.Error("cannot follow the nodes' pod networks", "err", err)
		return
	}
	route := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			if err := c.routeToPods(node); err != nil {
				log.Error("cannot set the route to a node's pods", "node", node.Name, "err", err)
			}
		}
	}
	forget := func(obj any) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		if node, ok := obj.(*corev1.Node); ok {
			if err := c.forgetRouteToPods(node); err != nil {
				log.Error("cannot remove the route to a node's pods", "node", node.Name, "err", err)
			}
		}
	}
	var nodes cache.Store
	var informer cache.Controller
	last, begun := []netip.Addr(nil), false
	balance := func() {
		var all []*corev1.Node
		for _, obj := range nodes.List() {
			if node, ok := obj.(*corev1.Node); ok {
				all = append(all, node)
			}
		}
		gateways := c.balancerGateways(all)
		if begun && slices.Equal(gateways, last) {
			return
		}
		if err := c.routeToBalancers(gateways); err != nil {
			log.Error("cannot set the route to load balancers", "err", err)
			return
		}
		last, begun = gateways, true
	}
	nodes, informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: core.Nodes(client).ListWatch(apiclient.Selection{Newest: true}), ObjectType: &corev1.Node{}, ResyncPeriod: time.Minute,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { route(obj); balance() }, UpdateFunc: func(_, obj any) { route(obj); balance() },
			DeleteFunc: func(obj any) { forget(obj); balance() }},
	})
	informer.RunWithContext(ctx)
}

// routeToPods sets the route to the node's podCIDR through its address on the node network. It goes with the node or the link.
func (c Config) routeToPods(node *corev1.Node) error {
	route, err := c.podRoute(node)
	if route == nil || err != nil {
		return err
	}
	return netlink.RouteReplace(route)
}

// forgetRouteToPods removes a node's route, unless it leads through another node by now.
func (c Config) forgetRouteToPods(node *corev1.Node) error {
	route, err := c.podRoute(node)
	if route == nil || err != nil {
		return err
	}
	if err := netlink.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// podRoute is the route to a node's pods, nil if it needs none.
func (c Config) podRoute(node *corev1.Node) (*netlink.Route, error) {
	subnet, gateway, ok := c.podNetwork(node)
	if !ok {
		return nil, nil
	}
	link, err := netlink.LinkByName(c.mark())
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", c.mark(), err)
	}
	return &netlink.Route{LinkIndex: link.Attrs().Index, Dst: &net.IPNet{IP: subnet.Addr().AsSlice(), Mask: net.CIDRMask(subnet.Bits(), 32)}, Gw: gateway.AsSlice()}, nil
}

// podNetwork is a node's podCIDR and its address on the node network. Who may write nodes rules over the cluster's networks and
// not over the host's routes: what lies outside of them is ignored.
func (c Config) podNetwork(node *corev1.Node) (subnet netip.Prefix, gateway netip.Addr, ok bool) {
	gateway, err := netip.ParseAddr(internalIP(node))
	if err != nil || !c.NodeSubnet.Contains(gateway) || gateway == c.HostIP() {
		return subnet, gateway, false
	}
	subnet, err = netip.ParsePrefix(node.Spec.PodCIDR)
	within := err == nil && c.PodSubnet.Contains(subnet.Addr()) && subnet.Bits() > c.PodSubnet.Bits()
	return subnet.Masked(), gateway, within
}

func internalIP(node *corev1.Node) string {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// waitNodes waits by a watch until all nodes are Ready.
func (c Config) waitNodes(ctx context.Context) error {
	client, err := c.coreClient()
	if err != nil {
		return err
	}
	isReady := map[string]bool{}
	for ctx.Err() == nil {
		w, err := core.Nodes(client).Watch(ctx, "", metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("watch nodes: %w", err)
		}
		for event := range w.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok {
				isReady[node.Name] = event.Type != watch.Deleted && ready(node)
			}
			count := 0
			for _, n := range c.Nodes {
				if isReady[n.Name()] {
					count++
				}
			}
			if count == len(c.Nodes) {
				w.Stop()
				return nil
			}
		}
	}
	return context.Cause(ctx)
}

// dnsPodAddress returns the address of a Ready DNS pod, "" if there is none yet.
func dnsPodAddress(ctx context.Context, client *apiclient.Client) (string, error) {
	pods, err := core.Pods(client).List(ctx, metav1.NamespaceSystem, metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
	if err != nil {
		return "", fmt.Errorf("list the pods of the cluster's DNS: %w", err)
	}
	for _, pod := range pods {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return pod.Status.PodIP, nil
			}
		}
	}
	return "", nil
}
