package main

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/discovery"
	"bonsai/pkg/apiclient/networking"
	"bonsai/pkg/proxy"
)

// served leaves out what no proxy of the default name serves.
const served = "!" + corev1.IsHeadlessService + ",!service.kubernetes.io/service-proxy-name"

// newClient returns a client that knows just the kinds the proxy reads.
func newClient(config *rest.Config) (*apiclient.Client, error) {
	s, err := apiclient.NewScheme(
		apiclient.Only(corev1.SchemeGroupVersion, &corev1.Service{}, &corev1.ServiceList{}, &corev1.Node{},
			&corev1.NodeList{}),
		apiclient.Only(networkingv1.SchemeGroupVersion, &networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{}),
		apiclient.Only(discoveryv1.SchemeGroupVersion, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}))
	if err != nil {
		return nil, err
	}
	return apiclient.New(config, s)
}

// sources return what feeds state from the API server until its context ends. The objects themselves are kept nowhere.
func sources(c *apiclient.Client, state *proxy.State, log *slog.Logger) []func(context.Context) {
	return []func(context.Context){
		source(core.Services(c), served, state.Services(), log),
		source(discovery.EndpointSlices(c), served, state.Slices(), log),
		source(core.Nodes(c), "", state.Nodes(), log),
		source(networking.ServiceCIDRs(c), "", state.ServiceCIDRs(), log),
	}
}

func source[T apiclient.Object](r *apiclient.Resource[T], labels string, sink apiclient.Sink[T],
	log *slog.Logger) func(context.Context) {
	return func(ctx context.Context) {
		apiclient.Follow(ctx, r.ListWatch(apiclient.Selection{Labels: labels}), r.GVR().Resource, sink, log)
	}
}
