package serviceresolver_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/serviceresolver"
)

// cluster is what the Resolver reads.
type cluster struct {
	services map[string]*corev1.Service
	slices   map[string][]runtime.Object
}

func (c cluster) GetCached(_ context.Context, ns, name string) (runtime.Object, error) {
	if s := c.services[ns+"/"+name]; s != nil {
		return s, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
}

func (c cluster) List(_ context.Context, ns, selector string) ([]runtime.Object, error) {
	return c.slices[ns+"/"+selector], nil
}

func service(typ corev1.ServiceType, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{Type: typ, Ports: ports, ExternalName: "example.com"}}
}

func slice(port string, number int32, endpoints ...discoveryv1.Endpoint) runtime.Object {
	return &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}, {Name: &port}},
		Endpoints: endpoints}
}

func endpoint(ready *bool, addresses ...string) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	c := cluster{
		services: map[string]*corev1.Service{
			"ns/a": service(corev1.ServiceTypeClusterIP, corev1.ServicePort{Name: "https", Port: 443},
				corev1.ServicePort{Name: "other", Port: 8443}),
			"ns/none": service(corev1.ServiceTypeClusterIP, corev1.ServicePort{Port: 443}),
			"ns/out":  service(corev1.ServiceTypeExternalName),
		},
		slices: map[string][]runtime.Object{"ns/kubernetes.io/service-name=a": {
			slice("https", 9443, endpoint(&yes, "10.0.0.1"), endpoint(&no, "10.0.0.2"), endpoint(nil, "10.0.0.3"),
				endpoint(&yes)),
			slice("https", 9444, endpoint(&yes, "fd00::1", "fd00::2")),
			slice("other", 1, endpoint(&yes, "10.0.0.1")),
		}},
	}
	r := serviceresolver.New(c, c)
	for _, x := range []struct {
		name string
		port int32
		want []string
		err  string
	}{
		{name: "a", port: 443, want: []string{"10.0.0.1:9443", "10.0.0.3:9443", "[fd00::1]:9444"}},
		{name: "a", port: 8443, want: []string{"10.0.0.1:1"}},
		{name: "a", port: 80, err: `no service port 80 found for service "a"`},
		{name: "none", port: 443, err: `no endpoints available for service "none"`},
		{name: "gone", port: 443, err: `service "gone" not found`},
		{name: "out", port: 1443, want: []string{"example.com:1443"}},
	} {
		got, err := r.Resolve(t.Context(), "ns", x.name, x.port)
		slices.Sort(got)
		if text(err) != x.err || !slices.Equal(got, x.want) {
			t.Errorf("%s:%d: got %v, %v; want %v, %s", x.name, x.port, got, err, x.want, x.err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
