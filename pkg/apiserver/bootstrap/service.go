package bootstrap

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/request"
)

// ServiceConfig describes the Service default/kubernetes, by which pods reach the API server.
type ServiceConfig struct {
	// Ranges are where the addresses of services come from: one, or two of different families.
	Ranges []netip.Prefix
	// ClusterIP is the first address of the service range.
	ClusterIP netip.Addr
	// Port is where API servers are reached (--secure-port).
	Port int32
	// Servers are the addresses of all API servers that are alive; nil: somebody else keeps the Service's endpoints.
	Servers func(context.Context) ([]netip.Addr, error)
}

const serviceName = "kubernetes"

// FirstAddress returns the address that the Service "kubernetes" has in a service range: the first after the network's
// own.
func FirstAddress(serviceRange netip.Prefix) netip.Addr { return serviceRange.Masked().Addr().Next() }

func (b *Bootstrap) service(ctx context.Context) error {
	svc := serviceObject(*b.cfg.Service)
	err := b.ensure(ctx, corev1.Resource("services"), svc, func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*corev1.Service)
		if !ok {
			return false, fmt.Errorf("%T is not a Service", obj)
		}
		changed := len(have.Spec.Ports) != 1 || have.Spec.Ports[0] != svc.Spec.Ports[0]
		have.Spec.Ports = svc.Spec.Ports
		return changed, nil
	})
	if err != nil {
		return err
	}
	return b.endpoints(ctx)
}

// Endpoints brings the endpoints of the Service "kubernetes" in line with the servers that are alive.
func (b *Bootstrap) Endpoints(ctx context.Context) error { return b.endpoints(request.AsServer(ctx)) }

func (b *Bootstrap) endpoints(ctx context.Context) error {
	if b.cfg.Service.Servers == nil {
		return nil
	}
	servers, err := b.cfg.Service.Servers(ctx)
	if err != nil || len(servers) == 0 { // the last one that goes leaves the endpoints as they are
		return err
	}
	ep, slice := endpointObjects(servers, b.cfg.Service.Port)
	err = b.ensure(ctx, corev1.Resource("endpoints"), ep, func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*corev1.Endpoints) //nolint:staticcheck // Kubernetes still keeps these for old clients
		if !ok {
			return false, fmt.Errorf("%T is not an Endpoints", obj)
		}
		changed := !equality.Semantic.DeepEqual(have.Subsets, ep.Subsets)
		have.Subsets = ep.Subsets
		return addLabels(&have.ObjectMeta, ep.Labels) || changed, nil
	})
	if err != nil {
		return err
	}
	return b.ensure(ctx, discoveryv1.Resource("endpointslices"), slice, func(obj runtime.Object) (bool, error) {
		have, ok := obj.(*discoveryv1.EndpointSlice)
		if !ok {
			return false, fmt.Errorf("%T is not an EndpointSlice", obj)
		}
		changed := !equality.Semantic.DeepEqual(have.Endpoints, slice.Endpoints) ||
			!equality.Semantic.DeepEqual(have.Ports, slice.Ports)
		have.Endpoints, have.Ports = slice.Endpoints, slice.Ports
		return addLabels(&have.ObjectMeta, slice.Labels) || changed, nil
	})
}

// serviceObject is pure.
func serviceObject(c ServiceConfig) *corev1.Service {
	family := corev1.IPv4Protocol
	if c.ClusterIP.Is6() {
		family = corev1.IPv6Protocol
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{"provider": "kubernetes", "component": "apiserver"}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: c.ClusterIP.String(),
			ClusterIPs: []string{c.ClusterIP.String()},
			IPFamilies: []corev1.IPFamily{family}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack),
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports: []corev1.ServicePort{
				{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(c.Port)}},
		},
	}
}

// endpointObjects is pure. The slice has the family of the first server.
func endpointObjects(servers []netip.Addr, port int32) (*corev1.Endpoints, *discoveryv1.EndpointSlice) {
	ep := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}},
		Subsets: []corev1.EndpointSubset{
			{Ports: []corev1.EndpointPort{{Name: "https", Port: port, Protocol: corev1.ProtocolTCP}}}},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: metav1.NamespaceDefault,
			Labels: map[string]string{discoveryv1.LabelServiceName: serviceName}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("https"), Port: ptr.To(port), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	if servers[0].Is6() {
		slice.AddressType = discoveryv1.AddressTypeIPv6
	}
	for _, s := range servers {
		ep.Subsets[0].Addresses = append(ep.Subsets[0].Addresses, corev1.EndpointAddress{IP: s.String()})
		if s.Is6() == servers[0].Is6() {
			slice.Endpoints = append(slice.Endpoints,
				discoveryv1.Endpoint{Addresses: []string{s.String()},
					Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
		}
	}
	return ep, slice
}
