package cluster

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
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// coreClient returns a client for what the cluster's command reads, with its identity on this machine.
func coreClient(c plan.Config) (*apiclient.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Layout().Kubeconfig(c.Identity()))
	if err != nil {
		return nil, err
	}
	s, err := apiclient.NewScheme(apiclient.Only(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{}, &corev1.Service{}, &corev1.ServiceList{},
		&corev1.Secret{}, &corev1.SecretList{}, &corev1.ConfigMap{}),
		apiclient.Only(certificatesv1.SchemeGroupVersion, &certificatesv1.CertificateSigningRequest{}, &certificatesv1.CertificateSigningRequestList{}))
	if err != nil {
		return nil, err
	}
	return apiclient.New(config, s)
}

// followNodes keeps the host's routes to the pods of every node and to load balancers, until ctx ends: the API server reaches webhooks and
// proxied pods by them, and so does the user. to hears of the nodes that lead to load balancers.
func followNodes(ctx context.Context, c plan.Config, to *gateways, log *slog.Logger) {
	client, err := coreClient(c)
	if err != nil {
		log.Error("cannot follow the nodes' pod networks", "err", err)
		return
	}
	route := func(obj any) {
		if node, ok := obj.(*corev1.Node); ok {
			if err := routeToPods(c, node); err != nil {
				log.Error("cannot set the route to a node's pods", "node", node.Name, "err", err)
			}
		}
	}
	forget := func(obj any) {
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
	last, joined, begun := []netip.Addr(nil), []netip.Addr(nil), false
	balance := func() {
		var all []*corev1.Node
		for _, obj := range nodes.List() {
			if node, ok := obj.(*corev1.Node); ok {
				all = append(all, node)
			}
		}
		if now := joinedMachines(c, all); c.IsJoinable() && !slices.Equal(now, joined) {
			if err := admitJoined(ctx, c, now); err != nil {
				log.Error("cannot let joined machines in", "err", err)
			} else {
				joined = now
			}
		}
		now := balancerGateways(c, all)
		to.set(now)
		if begun && slices.Equal(now, last) {
			return
		}
		if err := routeThrough(c, c.Networks().Balancers(), now); err != nil {
			log.Error("cannot set the route to load balancers", "err", err)
			return
		}
		last, begun = now, true
	}
	nodes, informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: core.Nodes(client).ListWatch(apiclient.Selection{Newest: true}), ObjectType: &corev1.Node{}, ResyncPeriod: time.Minute,
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { route(obj); balance() }, UpdateFunc: func(_, obj any) { route(obj); balance() },
			DeleteFunc: func(obj any) { forget(obj); balance() }},
	})
	informer.RunWithContext(ctx)
}

// routeToPods sets the routes to the node's podCIDRs through its addresses on the node network. They go with the node or the link.
func routeToPods(c plan.Config, node *corev1.Node) error {
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

// eachPodRoute calls do with the route to each of the node's networks of pods: over the cluster's link, or to a node that has joined from
// another machine as the kernel reaches that.
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

// podNetworks are a node's podCIDRs, each with its address of the family on the node network. Who may write nodes rules over the
// cluster's networks and not over the host's routes: what lies outside of them is ignored.
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
		for _, gateway := range internalIPs(node) {
			if gateway.Is4() == subnet.Addr().Is4() && (c.Networks().IsNodeAddress(gateway) || c.IsJoinable() && !c.Networks().IsOwn(gateway)) {
				out[subnet.Masked()] = gateway
				break
			}
		}
	}
	return out
}

// internalIPs are a node's own addresses.
func internalIPs(node *corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, a := range node.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			out = append(out, ip)
		}
	}
	return out
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// waitNodes waits by a watch until all nodes are Ready. Its error names those that are not. An API server that does not answer for a while is
// waited for as well.
func waitNodes(ctx context.Context, c plan.Config) error {
	client, err := coreClient(c)
	if err != nil {
		return err
	}
	nodes, last := map[string]*corev1.Node{}, error(nil)
	err = host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		var w watch.Interface
		if w, last = core.Nodes(client).Watch(ctx, "", metav1.ListOptions{}); last != nil {
			return false, nil
		}
		defer w.Stop()
		for event := range w.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted {
				nodes[node.Name] = node
				progressed(ctx, "node "+node.Name)
				if ready(node) {
					progressed(ctx, "node "+node.Name+" is Ready")
				}
			} else if ok {
				delete(nodes, node.Name)
			}
			if whyNotReady(c, nodes) == "" {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %s", err, whyNotReady(c, nodes)), last)
	}
	return nil
}

// dnsPod returns the address of a Ready pod of the cluster's DNS, or why there is none yet.
func dnsPod(ctx context.Context, client *apiclient.Client) (string, error) {
	pods, err := core.Pods(client).List(ctx, metav1.NamespaceSystem, metav1.ListOptions{LabelSelector: dnsPods})
	if err != nil {
		return "", fmt.Errorf("list the pods of the cluster's DNS: %w", err)
	}
	why := errors.New("it has no pod")
	for _, pod := range pods {
		if podReady(pod) {
			return pod.Status.PodIP, nil
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				progressed(ctx, fmt.Sprintf("pod %s: %s", pod.Name, condition.Type))
			}
		}
		why = fmt.Errorf("the pod %s is not ready: %s", pod.Name, podTrouble(pod))
	}
	return "", why
}
