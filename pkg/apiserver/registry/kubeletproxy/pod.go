package kubeletproxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"bonsai/pkg/apiserver/egress"
	"bonsai/pkg/apiserver/registry"
)

// Pod returns pods/proxy: NAME, NAME:PORT or SCHEME:NAME:PORT; by default plain HTTP on the first port the pod
// declares.
func (p *Proxy) Pod() registry.Connecter {
	options := func(path string, _ url.Values) (*corev1.PodProxyOptions, error) {
		return &corev1.PodProxyOptions{Path: path}, nil
	}
	return connecter[*corev1.PodProxyOptions]{options,
		func(ctx context.Context, ns, name string, opts *corev1.PodProxyOptions, w http.ResponseWriter,
			r *http.Request) error {
			scheme, podName, port, ok := utilnet.SplitSchemeNamePort(name)
			if !ok {
				return apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q", name))
			}
			pod, err := p.pod(ctx, ns, podName)
			if err != nil {
				return err
			}
			if port == "" {
				port = firstPort(pod)
			}
			if pod.Status.PodIP == "" {
				return egress.NotAllowed()
			}
			host := pod.Status.PodIP
			if port != "" {
				host = net.JoinHostPort(host, port)
			}
			location := &url.URL{Scheme: orDefault(scheme, "http"), Host: host, Path: opts.Path}
			return p.pass(w, r, location, p.pods, passOptions{rewrite: true})
		}}
}

func firstPort(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if len(c.Ports) > 0 {
			return strconv.Itoa(int(c.Ports[0].ContainerPort))
		}
	}
	return ""
}
