package kubeletproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/httpstream/wsstream"

	"bonsai/pkg/apiserver/registry"
)

// maxErrorBody bounds what is read of a kubelet's refusal.
const maxErrorBody = 64 << 10

// Log returns pods/log.
func (p *Proxy) Log() registry.Connecter {
	return reader(func(ctx context.Context, ns, name string, w http.ResponseWriter, r *http.Request) error {
		opts, err := parseLogOptions(r.URL.Query())
		if err != nil {
			return err
		}
		if errs := validateLogOptions(opts); len(errs) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, name, errs)
		}
		pod, err := p.pod(ctx, ns, name)
		if err != nil {
			return err
		}
		container, err := chooseContainer(pod, opts.Container)
		if err != nil {
			return err
		}
		if pod.Spec.NodeName == "" {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		host, err := p.kubeletHost(ctx, pod.Spec.NodeName)
		if err != nil {
			return err
		}
		location := &url.URL{Scheme: "https", Host: host, Path: "/containerLogs/" + ns + "/" + name + "/" + container,
			RawQuery: logQuery(opts).Encode()}
		return p.stream(w, r.WithContext(ctx), location, pod.Name, opts)
	})
}

// stream copies the kubelet's answer as it comes: as the body, or as WebSocket frames to a client that asks for that.
func (p *Proxy) stream(w http.ResponseWriter, r *http.Request, location *url.URL, pod string,
	opts *corev1.PodLogOptions) error {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, location.String(), nil)
	if err != nil {
		return fmt.Errorf("logs of pod %s: %w", pod, err)
	}
	transport := p.kubelets()
	if opts.InsecureSkipTLSVerifyBackend && !transport.TLSClientConfig.InsecureSkipVerify {
		transport = transport.Clone()
		transport.TLSClientConfig.InsecureSkipVerify = true
		defer transport.CloseIdleConnections()
	}
	// no client: that would follow a kubelet's redirect anywhere, with the server's certificate
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return asStatus(fmt.Errorf("Get %q: %w", location, err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, pod)
	}
	if wsstream.IsWebSocketRequest(r) {
		// The library drops bytes that come together with the end; a buffered reader keeps the two apart.
		body := bufio.NewReader(limited(resp.Body, opts.LimitBytes))
		frames := wsstream.NewReader(body, true, wsstream.NewDefaultReaderProtocols())
		return frames.Copy(w, r)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	copyFlushing(w, limited(resp.Body, opts.LimitBytes))
	return nil
}

// refusal turns the kubelet's plain-text error into a Status.
func refusal(resp *http.Response, pod string) error {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	text := strings.TrimSpace(string(raw))
	switch resp.StatusCode {
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(text)
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New(text))
	}
	return apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{Resource: "pods/log"}, pod,
		text, 0, false)
}

// limited reads at most limit bytes of r if limit is not nil.
func limited(r io.Reader, limit *int64) io.Reader {
	if limit == nil {
		return r
	}
	return io.LimitReader(r, *limit)
}

// copyFlushing sends every piece on at once. It ends with the reader or the client.
func copyFlushing(w http.ResponseWriter, r io.Reader) {
	flush := http.NewResponseController(w)
	_ = flush.Flush() // the headers: a follower of a silent log must see its request answered
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return
			}
			if flush.Flush() != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
