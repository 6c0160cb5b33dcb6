package kubeletproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"

	"bonsai/pkg/apiserver/registry"
)

// Exec returns pods/exec.
func (p *Proxy) Exec() registry.Connecter { return p.remoteCommand("exec") }

// Attach returns pods/attach.
func (p *Proxy) Attach() registry.Connecter { return p.remoteCommand("attach") }

// PortForward returns pods/portforward.
func (p *Proxy) PortForward() registry.Connecter {
	return connecter(func(ctx context.Context, ns, name, _ string, w http.ResponseWriter, r *http.Request) error {
		pod, err := p.pod(ctx, ns, name)
		if err != nil {
			return err
		}
		q := url.Values{}
		for _, port := range r.URL.Query()["ports"] {
			if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
				return apierrors.NewBadRequest(fmt.Sprintf("invalid port %q", port))
			}
			q.Add("port", port)
		}
		return p.toKubelet(ctx, pod.Name, pod.Spec.NodeName, "/portForward/"+ns+"/"+name, q, w, r)
	})
}

// remoteCommand passes exec or attach on; their options have other names at the kubelet.
func (p *Proxy) remoteCommand(verb string) registry.Connecter {
	return connecter(func(ctx context.Context, ns, name, _ string, w http.ResponseWriter, r *http.Request) error {
		in := r.URL.Query()
		pod, err := p.pod(ctx, ns, name)
		if err != nil {
			return err
		}
		container, err := chooseContainer(pod, in.Get("container"))
		if err != nil {
			return err
		}
		return p.toKubelet(ctx, pod.Name, pod.Spec.NodeName, "/"+verb+"/"+ns+"/"+name+"/"+container, commandQuery(verb, in), w, r)
	})
}

// commandQuery turns PodExecOptions or PodAttachOptions into the kubelet's parameters; the kubelet checks them.
func commandQuery(verb string, in url.Values) url.Values {
	out := url.Values{}
	for _, flag := range []struct{ api, kubelet string }{{"stdin", "input"}, {"stdout", "output"}, {"stderr", "error"}, {"tty", "tty"}} {
		if in.Has(flag.api) && truth(in.Get(flag.api)) {
			out.Set(flag.kubelet, "1")
		}
	}
	if verb == "exec" && len(in["command"]) > 0 {
		out["command"] = in["command"]
	}
	return out
}

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
