package kubeletproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"

	"bonsai/pkg/apiserver/registry"
)

// Exec returns pods/exec.
func (p *Proxy) Exec() registry.Connecter {
	options := func(_ string, q url.Values) (*corev1.PodExecOptions, error) {
		return &corev1.PodExecOptions{Stdin: flag(q, "stdin"), Stdout: flag(q, "stdout"), Stderr: flag(q, "stderr"), TTY: flag(q, "tty"),
			Container: q.Get("container"), Command: q["command"]}, nil
	}
	return connecter[*corev1.PodExecOptions]{options, func(ctx context.Context, ns, name string, o *corev1.PodExecOptions, w http.ResponseWriter, r *http.Request) error {
		q := streamQuery(o.Stdin, o.Stdout, o.Stderr, o.TTY)
		if len(o.Command) > 0 {
			q["command"] = o.Command
		}
		return p.toContainer(ctx, "exec", ns, name, o.Container, q, w, r)
	}}
}

// Attach returns pods/attach.
func (p *Proxy) Attach() registry.Connecter {
	options := func(_ string, q url.Values) (*corev1.PodAttachOptions, error) {
		return &corev1.PodAttachOptions{Stdin: flag(q, "stdin"), Stdout: flag(q, "stdout"), Stderr: flag(q, "stderr"), TTY: flag(q, "tty"), Container: q.Get("container")}, nil
	}
	return connecter[*corev1.PodAttachOptions]{options, func(ctx context.Context, ns, name string, o *corev1.PodAttachOptions, w http.ResponseWriter, r *http.Request) error {
		return p.toContainer(ctx, "attach", ns, name, o.Container, streamQuery(o.Stdin, o.Stdout, o.Stderr, o.TTY), w, r)
	}}
}

// PortForward returns pods/portforward.
func (p *Proxy) PortForward() registry.Connecter {
	return connecter[*corev1.PodPortForwardOptions]{portForwardOptions, func(ctx context.Context, ns, name string, o *corev1.PodPortForwardOptions, w http.ResponseWriter, r *http.Request) error {
		pod, err := p.pod(ctx, ns, name)
		if err != nil {
			return err
		}
		q := url.Values{}
		for _, port := range o.Ports {
			q.Add("port", strconv.Itoa(int(port)))
		}
		return p.toKubelet(ctx, pod.Name, pod.Spec.NodeName, "/portForward/"+ns+"/"+name, q, w, r)
	}}
}

func portForwardOptions(_ string, q url.Values) (*corev1.PodPortForwardOptions, error) {
	o := &corev1.PodPortForwardOptions{}
	for _, port := range q["ports"] {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid port %q", port))
		}
		o.Ports = append(o.Ports, int32(n))
	}
	return o, nil
}

// toContainer passes exec or attach on.
func (p *Proxy) toContainer(ctx context.Context, verb, ns, name, container string, q url.Values, w http.ResponseWriter, r *http.Request) error {
	pod, err := p.pod(ctx, ns, name)
	if err != nil {
		return err
	}
	if container, err = chooseContainer(pod, container); err != nil {
		return err
	}
	return p.toKubelet(ctx, pod.Name, pod.Spec.NodeName, "/"+verb+"/"+ns+"/"+name+"/"+container, q, w, r)
}

// streamQuery asks the kubelet, which has other names for them and checks them, for the streams that are wanted.
func streamQuery(stdin, stdout, stderr, tty bool) url.Values {
	q := url.Values{}
	for name, wanted := range map[string]bool{"input": stdin, "output": stdout, "error": stderr, "tty": tty} {
		if wanted {
			q.Set(name, "1")
		}
	}
	return q
}

// flag reads a boolean parameter.
func flag(q url.Values, name string) bool { return q.Has(name) && truth(q.Get(name)) }

// truth is how query parameters become booleans: everything but "false" and "0" is true.
func truth(s string) bool { return s != "false" && s != "0" }

func (p *Proxy) toKubelet(ctx context.Context, pod, node, path string, q url.Values, w http.ResponseWriter, r *http.Request) error {
	if node == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod))
	}
	host, err := p.kubeletHost(ctx, node)
	if err != nil {
		return err
	}
	location := &url.URL{Scheme: "https", Host: host, Path: path, RawQuery: q.Encode()}
	switch {
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		return p.translate(w, r, location, q)
	case wsstream.IsWebSocketRequestWithTunnelingProtocol(r):
		return p.tunnel(w, r, location)
	}
	return p.pass(w, r, location, p.kubelet, passOptions{upgrade: true})
}
