package kubeletproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"

	"bonsai/pkg/apiserver/registry"
)

// Exec returns pods/exec.
func (p *Proxy) Exec() registry.Connecter {
	options := func(_ string, q url.Values) (*corev1.PodExecOptions, error) {
		return &corev1.PodExecOptions{Stdin: flag(q, "stdin"), Stdout: flag(q, "stdout"), Stderr: flag(q, "stderr"),
			TTY:       flag(q, "tty"),
			Container: q.Get("container"), Command: q["command"]}, nil
	}
	return connecter[*corev1.PodExecOptions]{options,
		func(ctx context.Context, ns, name string, o *corev1.PodExecOptions, w http.ResponseWriter,
			r *http.Request) error {
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
		return &corev1.PodAttachOptions{Stdin: flag(q, "stdin"), Stdout: flag(q, "stdout"), Stderr: flag(q, "stderr"),
			TTY: flag(q, "tty"), Container: q.Get("container")}, nil
	}
	return connecter[*corev1.PodAttachOptions]{options,
		func(ctx context.Context, ns, name string, o *corev1.PodAttachOptions, w http.ResponseWriter,
			r *http.Request) error {
			return p.toContainer(ctx, "attach", ns, name, o.Container, streamQuery(o.Stdin, o.Stdout, o.Stderr, o.TTY),
				w,
				r)
		}}
}

// PortForward returns pods/portforward.
func (p *Proxy) PortForward() registry.Connecter {
	return connecter[*corev1.PodPortForwardOptions]{portForwardOptions,
		func(ctx context.Context, ns, name string, o *corev1.PodPortForwardOptions, w http.ResponseWriter,
			r *http.Request) error {
			pod, err := p.pod(ctx, ns, name)
			if err != nil {
				return err
			}
			q := url.Values{}
			for _, port := range o.Ports {
				q.Add("port", strconv.Itoa(int(port)))
			}
			location, err := p.streamLocation(ctx, pod, "/portForward/"+ns+"/"+name, q)
			if err != nil {
				return err
			}
			if wsstream.IsWebSocketRequestWithTunnelingProtocol(r) {
				return p.tunnel(w, r, location)
			}
			return p.pass(w, r, location, p.kubelets(), passOptions{upgrade: true})
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
func (p *Proxy) toContainer(ctx context.Context, verb, ns, name, container string, q url.Values, w http.ResponseWriter,
	r *http.Request) error {
	pod, err := p.pod(ctx, ns, name)
	if err != nil {
		return err
	}
	if container, err = chooseContainer(pod, container); err != nil {
		return err
	}
	location, err := p.streamLocation(ctx, pod, "/"+verb+"/"+ns+"/"+name+"/"+container, q)
	if err != nil {
		return err
	}
	if wsstream.IsWebSocketRequestWithStreamCloseProtocol(r) {
		return p.translate(w, r, location, q)
	}
	return p.pass(w, r, location, p.kubelets(), passOptions{upgrade: true})
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

// flag reads a boolean parameter as Kubernetes reads all booleans of queries: what is there is true, except "0" and
// "false" in any case. Clients write them as their language does: Python's False is one.
func flag(q url.Values, name string) bool {
	values, set := q[name], false
	_ = runtime.Convert_Slice_string_To_bool(&values, &set, nil) // takes every value
	return set
}

// streamLocation is where the kubelet of the pod's node serves path.
func (p *Proxy) streamLocation(ctx context.Context, pod *corev1.Pod, path string, q url.Values) (*url.URL, error) {
	if pod.Spec.NodeName == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", pod.Name))
	}
	host, err := p.kubeletHost(ctx, pod.Spec.NodeName)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: host, Path: path, RawQuery: q.Encode()}, nil
}
