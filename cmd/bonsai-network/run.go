package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/boundedfrequency"
	"bonsai/pkg/network"
	"bonsai/pkg/network/routes"
)

const (
	// gcPercent trades a little CPU at changes for a small idle process.
	gcPercent = 40
	// resync repairs what others broke.
	resync = 30 * time.Second
)

// How soon the agent looks again for its Node, which the kubelet makes, and for its own rights: the node is Ready only
// after that, so each pause is a fifth of the time gone by.
const (
	lookFirst = 50 * time.Millisecond
	lookMost  = 5 * time.Second
)

// run keeps the node's network until ctx ends.
func run(ctx context.Context, s *settings, log *slog.Logger) error {
	debug.SetGCPercent(gcPercent)
	config, err := daemon.Client("--kubeconfig", s.kubeconfig, "", component)
	if err != nil {
		return err
	}
	client, err := newClient(config)
	if err != nil {
		return err
	}
	tables, err := s.policyTables(log)
	if err != nil {
		return err
	}
	warnOfBridges(log)
	if err := awaitNode(ctx, core.Nodes(client).Get, s.node, log); err != nil {
		return err
	}
	nodes := network.NewState(s.node, s.clusterCIDRs)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { source(core.Nodes(client), nodes.Nodes(), log)(ctx); return ctx.Err() })
	g.Go(func() error {
		p := boundedfrequency.Runner{Resync: resync, Log: log}
		return p.Run(ctx, nodes, func(context.Context) error { return s.connect(nodes.Take(), log) })
	})
	for _, work := range networkPolicies(client, s.node, nodes.PodCIDRs, tables, log) {
		g.Go(func() error { return work(ctx) })
	}
	return g.Wait()
}

// newClient returns a client that knows just the kinds the agent reads.
func newClient(config *rest.Config) (*apiclient.Client, error) {
	s, err := apiclient.NewScheme(
		apiclient.Only(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{},
			&corev1.Namespace{}, &corev1.NamespaceList{}),
		apiclient.Only(networkingv1.SchemeGroupVersion, &networkingv1.NetworkPolicy{},
			&networkingv1.NetworkPolicyList{}))
	if err != nil {
		return nil, err
	}
	return apiclient.New(config, s)
}

// source returns what tells sink of a resource until its context ends. The objects themselves are kept nowhere.
func source[T apiclient.Object](r *apiclient.Resource[T], sink apiclient.Sink[T],
	log *slog.Logger) func(context.Context) {
	return func(ctx context.Context) {
		apiclient.Follow(ctx, r.ListWatch(apiclient.Selection{}), r.GVR().Resource, sink, log)
	}
}

// awaitNode returns when the node can be read, or ctx has ended. A reflector that is refused at the start of a cluster
// would wait for a second and more.
func awaitNode(ctx context.Context, get func(ctx context.Context, namespace, name string) (*corev1.Node, error),
	name string, log *slog.Logger) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := lookFirst; ; wait = min(wait*6/5, lookMost) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		_, err := get(ctx, "", name)
		if err == nil {
			return nil
		}
		if wait >= lookMost {
			log.Warn("cannot read the node yet", "node", name, "err", err)
		}
		timer.Reset(wait)
	}
}

// connect brings the node's network to u.
func (s *settings) connect(u network.Update, log *slog.Logger) error {
	if _, err := s.writeList(u, log); err != nil {
		return err
	}
	return routes.Apply(u)
}

// writeList writes the network list, once the node has a podCIDR; wrote is false if that was there already.
func (s *settings) writeList(u network.Update, log *slog.Logger) (wrote bool, err error) {
	if len(u.PodCIDRs) == 0 {
		return false, nil
	}
	if wrote, err = s.conf.Write(u.PodCIDRs, s.ipamPlugin); wrote {
		log.Info("wrote the node's network list", "podCIDRs", u.PodCIDRs)
	}
	return wrote, err
}
