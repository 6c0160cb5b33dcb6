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

	"bonsai/pkg/apiserver/registry"
)

const defaultKubeletPort = 10250

// Node returns nodes/proxy: NAME, NAME:PORT or SCHEME:NAME:PORT, by default the kubelet.
func (p *Proxy) Node() registry.Connecter {
	options := func(path string, _ url.Values) (*corev1.NodeProxyOptions, error) {
		return &corev1.NodeProxyOptions{Path: path}, nil
	}
	return connecter[*corev1.NodeProxyOptions]{options,
		func(ctx context.Context, _, name string, opts *corev1.NodeProxyOptions, w http.ResponseWriter,
			r *http.Request) error {
			scheme, node, port, ok := utilnet.SplitSchemeNamePort(name)
			if !ok {
				return apierrors.NewBadRequest(fmt.Sprintf("invalid node request %q", name))
			}
			host, err := p.kubeletHost(ctx, node)
			if err != nil {
				return err
			}
			addr, kubeletPort, err := net.SplitHostPort(host)
			if err != nil {
				return fmt.Errorf("address of the kubelet of node %s: %w", node, err)
			}
			location := &url.URL{Scheme: "https", Host: host, Path: opts.Path}
			if port == "" || port == kubeletPort {
				return p.pass(w, r, location, p.kubelets(), passOptions{rewrite: true})
			}
			location.Scheme, location.Host = orDefault(scheme, "http"), net.JoinHostPort(addr, port)
			return p.pass(w, r, location, p.pods, passOptions{rewrite: true})
		}}
}

// kubeletHost returns host:port of the kubelet of a node.
func (p *Proxy) kubeletHost(ctx context.Context, name string) (string, error) {
	obj, err := p.get(ctx, "nodes", "", name)
	if err != nil {
		return "", err
	}
	node := obj.(*corev1.Node)
	host, err := preferredAddress(node, p.cfg.AddressTypes)
	if err != nil {
		return "", err
	}
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if port <= 0 {
		port = defaultKubeletPort
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

func preferredAddress(node *corev1.Node, types []corev1.NodeAddressType) (string, error) {
	for _, t := range types {
		for _, a := range node.Status.Addresses {
			if a.Type == t && a.Address != "" {
				return a.Address, nil
			}
		}
	}
	return "", fmt.Errorf("no preferred addresses found; known addresses: %v", node.Status.Addresses)
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
