package kubeletproxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/serviceresolver"
)

// Service returns services/proxy: NAME, NAME:PORT or SCHEME:NAME:PORT, where PORT is a service port's name or number. A
// ready endpoint is chosen at random.
func (p *Proxy) Service() registry.Connecter {
	options := func(path string, _ url.Values) (*corev1.ServiceProxyOptions, error) {
		return &corev1.ServiceProxyOptions{Path: path}, nil
	}
	return connecter[*corev1.ServiceProxyOptions]{options,
		func(ctx context.Context, ns, name string, opts *corev1.ServiceProxyOptions, w http.ResponseWriter,
			r *http.Request) error {
			scheme, svcName, port, ok := utilnet.SplitSchemeNamePort(name)
			if !ok {
				return apierrors.NewBadRequest(fmt.Sprintf("invalid service request %q", name))
			}
			obj, err := p.get(ctx, "services", ns, svcName)
			if apierrors.IsNotFound(err) { // as in Kubernetes, which asks for its endpoints alone
				return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", svcName))
			}
			if err != nil {
				return err
			}
			portName, err := servicePortName(obj.(*corev1.Service), port)
			if err != nil {
				return err
			}
			slices := p.cfg.Stores.Store(schema.GroupResource{Group: discoveryv1.GroupName, Resource: "endpointslices"})
			if slices == nil {
				return apierrors.NewServiceUnavailable("endpointslices are not served")
			}
			backends, err := serviceresolver.Endpoints(ctx, slices, ns, svcName, portName)
			if err != nil {
				return err
			}
			if len(backends) == 0 {
				return apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", svcName))
			}
			location := &url.URL{Scheme: orDefault(scheme, "http"), Host: backends[rand.IntN(len(backends))],
				Path: opts.Path}
			return p.pass(w, r, location, p.pods, passOptions{rewrite: true})
		}}
}

// servicePortName turns what the URL calls the port into the name endpoints call it by.
func servicePortName(svc *corev1.Service, port string) (string, error) {
	if port == "" {
		if len(svc.Spec.Ports) == 1 {
			return svc.Spec.Ports[0].Name, nil
		}
		return "", nil
	}
	for _, sp := range svc.Spec.Ports {
		if sp.Name == port || strconv.Itoa(int(sp.Port)) == port {
			return sp.Name, nil
		}
	}
	return "", apierrors.NewServiceUnavailable(fmt.Sprintf("no service port %s found for service %q", port, svc.Name))
}
