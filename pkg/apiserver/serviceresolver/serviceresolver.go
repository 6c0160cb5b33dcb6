// Package serviceresolver tells where the API server reaches a Service: at its ready endpoints, as EndpointSlices name
// them. No kube-proxy is needed on the server's host (upstream: --enable-aggregator-routing).
package serviceresolver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// Getter reads Services; their registry.Store is one.
type Getter interface {
	GetCached(ctx context.Context, ns, name string) (runtime.Object, error)
}

// Lister reads EndpointSlices; their registry.Store is one.
type Lister interface {
	List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error)
}

// Resolver finds the endpoints of Services.
type Resolver struct {
	services Getter
	slices   Lister
}

// New returns a Resolver of what services and slices hold.
func New(services Getter, slices Lister) *Resolver { return &Resolver{services, slices} }

// Resolve returns host:port of all ready endpoints of a Service's port, in random order; never none without an error. A
// Service of type ExternalName is where its name says.
func (r *Resolver) Resolve(ctx context.Context, ns, name string, port int32) ([]string, error) {
	obj, err := r.services.GetCached(ctx, ns, name)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(corev1.Resource("service"), name) // as upstream words it, in the singular
	}
	if err != nil {
		return nil, err
	}
	svc, ok := obj.(*corev1.Service)
	if !ok {
		return nil, fmt.Errorf("resolving service %s/%s: got a %T", ns, name, obj)
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{net.JoinHostPort(svc.Spec.ExternalName, strconv.Itoa(int(port)))}, nil
	}
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %d found for service %q", port, name))
	}
	hosts, err := Endpoints(ctx, r.slices, ns, name, svc.Spec.Ports[i].Name)
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
	}
	rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	return hosts, nil
}

// Endpoints returns host:port of the ready endpoints of one port of a Service, in the order of its EndpointSlices.
func Endpoints(ctx context.Context, from Lister, ns, svc, portName string) ([]string, error) {
	objs, err := from.List(ctx, ns, discoveryv1.LabelServiceName+"="+svc)
	if err != nil {
		return nil, fmt.Errorf("listing the endpoints of service %s/%s: %w", ns, svc, err)
	}
	var hosts []string
	for _, obj := range objs {
		slice, ok := obj.(*discoveryv1.EndpointSlice)
		if !ok {
			return nil, fmt.Errorf("listing the endpoints of service %s/%s: got a %T", ns, svc, obj)
		}
		for _, port := range slice.Ports {
			if port.Port == nil || (port.Name == nil && portName != "") ||
				(port.Name != nil && *port.Name != portName) {
				continue
			}
			for _, e := range slice.Endpoints {
				if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
					hosts = append(hosts, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*port.Port))))
				}
			}
		}
	}
	return hosts, nil
}
