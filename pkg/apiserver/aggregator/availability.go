package aggregator

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// The reasons of the condition Available, upstream's words.
const (
	reasonPassed            = "Passed"
	reasonServiceNotFound   = "ServiceNotFound"
	reasonServiceAccess     = "ServiceAccessError"
	reasonServicePort       = "ServicePortError"
	reasonEndpointsNotFound = "EndpointsNotFound"
	reasonEndpointsAccess   = "EndpointsAccessError"
	reasonMissingEndpoints  = "MissingEndpoints"
	reasonDiscovery         = "FailedDiscoveryCheck"
)

func unavailable(reason, format string, args ...any) v1.APIServiceCondition {
	return v1.APIServiceCondition{Type: v1.Available, Status: v1.ConditionFalse, Reason: reason,
		Message: fmt.Sprintf(format, args...)}
}

func passed() v1.APIServiceCondition {
	return v1.APIServiceCondition{Type: v1.Available, Status: v1.ConditionTrue, Reason: reasonPassed,
		Message: "all checks passed"}
}

// reachable reports whether a Service, with its EndpointSlices, leads to a server; if it does not, the condition says
// why. Whether the server answers is another question. Types other than ClusterIP pass without a look at endpoints, as
// upstream: an ExternalName has none. The EndpointSlices must have the port by the name that it has in the Service, and
// at least one endpoint that is ready; one slice must have both.
func reachable(to *v1.ServiceReference, svc *corev1.Service,
	endpoints []*discoveryv1.EndpointSlice) (v1.APIServiceCondition, bool) {
	if svc.Spec.Type != corev1.ServiceTypeClusterIP && svc.Spec.Type != "" {
		return v1.APIServiceCondition{}, true
	}
	i := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port(to) })
	if i < 0 {
		return unavailable(reasonServicePort, "service/%s in %q is not listening on port %d", to.Name, to.Namespace,
			port(to)), false
	}
	if len(endpoints) == 0 {
		return unavailable(reasonEndpointsNotFound, "cannot find endpointslices for service/%s in %q", to.Name,
			to.Namespace), false
	}
	name := svc.Spec.Ports[i].Name
	for _, slice := range endpoints {
		if hasPort(slice, name) && slices.ContainsFunc(slice.Endpoints, ready) {
			return v1.APIServiceCondition{}, true
		}
	}
	return unavailable(reasonMissingEndpoints,
		"endpointslices for service/%s in %q have no addresses with port name %q", to.Name, to.Namespace, name), false
}

func hasPort(slice *discoveryv1.EndpointSlice, name string) bool {
	return slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
		return p.Port != nil && (p.Name == nil && name == "" || p.Name != nil && *p.Name == name)
	})
}

// ready reports whether an endpoint takes requests. The API says that an unknown readiness counts as ready.
func ready(e discoveryv1.Endpoint) bool {
	return len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready)
}

// port is the port of the Service.
func port(to *v1.ServiceReference) int32 {
	if to.Port == nil {
		return 443
	}
	return *to.Port
}
