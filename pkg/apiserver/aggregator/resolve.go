package aggregator

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"bonsai/pkg/apiserver/serviceresolver"
)

// Cluster is where Services and their endpoints are found. Services and Slices read this server's own objects: nothing
// here asks another server.
type Cluster struct {
	Services serviceresolver.Getter
	Slices   serviceresolver.Lister
	// Routing goes to the endpoints of a Service; else to its address, which takes a kube-proxy on the server's host.
	Routing bool
}

// service reads the Service.
func (c Cluster) service(ctx context.Context, to *v1.ServiceReference) (*corev1.Service, error) {
	obj, err := c.Services.GetCached(ctx, to.Namespace, to.Name)
	if err != nil {
		return nil, err
	}
	svc, ok := obj.(*corev1.Service)
	if !ok {
		return nil, fmt.Errorf("service %s/%s is a %T", to.Namespace, to.Name, obj)
	}
	return svc, nil
}

// slices reads the EndpointSlices of the Service.
func (c Cluster) slices(ctx context.Context, to *v1.ServiceReference) ([]*discoveryv1.EndpointSlice, error) {
	objs, err := c.Slices.List(ctx, to.Namespace, discoveryv1.LabelServiceName+"="+to.Name)
	if err != nil {
		return nil, err
	}
	out := make([]*discoveryv1.EndpointSlice, 0, len(objs))
	for _, obj := range objs {
		if slice, ok := obj.(*discoveryv1.EndpointSlice); ok {
			out = append(out, slice)
		}
	}
	return out, nil
}

// reachable is the condition of a Service that leads nowhere; ok tells that it leads somewhere.
func (c Cluster) reachable(ctx context.Context, to *v1.ServiceReference) (condition v1.APIServiceCondition, ok bool) {
	svc, err := c.service(ctx, to)
	switch {
	case apierrors.IsNotFound(err):
		return unavailable(reasonServiceNotFound, "service/%s in %q is not present", to.Name, to.Namespace), false
	case err != nil:
		return unavailable(reasonServiceAccess, "service/%s in %q cannot be checked due to: %v", to.Name, to.Namespace,
			err), false
	}
	endpoints, err := c.slices(ctx, to)
	if err != nil {
		return unavailable(reasonEndpointsAccess, "service/%s in %q cannot be checked due to: %v", to.Name,
			to.Namespace, err), false
	}
	return reachable(to, svc, endpoints)
}

// addresses are host:port of where the Service is, in the order in which they are tried; never none without an error. A
// headless Service has no address to go to, so its endpoints are used with and without Routing.
func (c Cluster) addresses(ctx context.Context, to *v1.ServiceReference) ([]string, error) {
	svc, err := c.service(ctx, to)
	if err != nil {
		return nil, err
	}
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName: // it has neither address nor endpoints
		return []string{net.JoinHostPort(svc.Spec.ExternalName, strconv.Itoa(int(port(to))))}, nil
	case !c.Routing && svc.Spec.ClusterIP != "" && svc.Spec.ClusterIP != corev1.ClusterIPNone:
		return []string{net.JoinHostPort(svc.Spec.ClusterIP, strconv.Itoa(int(port(to))))}, nil
	}
	return serviceresolver.New(c.Services, c.Slices).Resolve(ctx, to.Namespace, to.Name, port(to))
}
