package kubeletproxy

import (
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

	"bonsai/pkg/apiserver/registry"
)

// maxErrorBody bounds what is read of a kubelet's refusal.
const maxErrorBody = 64 << 10

// Log returns pods/log.
func (p *Proxy) Log() registry.Connecter {
	return connecter(func(ctx context.Context, ns, name, _ string, w http.ResponseWriter, r *http.Request) error {
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
		location := &url.URL{Scheme: "https", Host: host, Path: "/containerLogs/" + ns + "/" + name + "/" + container, RawQuery: logQuery(opts).Encode()}
		return p.stream(ctx, w, location, pod.Name, opts)
	})
}

// stream copies the kubelet's answer as it comes.
func (p *Proxy) stream(ctx context.Context, w http.ResponseWriter, location *url.URL, pod string, opts *corev1.PodLogOptions) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return fmt.Errorf("logs of pod %s: %w", pod, err)
	}
	transport := p.kubelet
	if opts.InsecureSkipTLSVerifyBackend && !transport.TLSClientConfig.InsecureSkipVerify {
		transport = transport.Clone()
		transport.TLSClientConfig.InsecureSkipVerify = true
		defer transport.CloseIdleConnections()
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err // names the request and what failed
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp, pod)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	copyFlushing(w, resp.Body, opts.LimitBytes)
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
	return apierrors.NewGenericServerResponse(resp.StatusCode, "get", schema.GroupResource{Resource: "pods/log"}, pod, text, 0, false)
}

// copyFlushing sends every piece on at once; limit, if not nil, is the most bytes. It ends with the reader or the client.
func copyFlushing(w http.ResponseWriter, r io.Reader, limit *int64) {
	if limit != nil {
		r = io.LimitReader(r, *limit)
	}
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
