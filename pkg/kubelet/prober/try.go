package prober

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/api/kubeversion"
)

// maxBody bounds what is read from a probe's answer, in bytes.
const maxBody = 10 << 10

// attempts is how often a probe is tried that could not be made at all (as opposed to one that failed).
const attempts = 3

// try probes once. warn: it succeeded, but its message deserves a warning. err: the probe could not be made, which says
// nothing about the container.
func (m *Manager) try(ctx context.Context, pod *corev1.Pod, c *corev1.Container, p *corev1.Probe, t Target) (ok,
	warn bool, message string, err error) {
	timeout := time.Duration(max(p.TimeoutSeconds, 1)) * time.Second
	for range attempts {
		if ok, warn, message, err = m.handler(ctx, pod, c, p, t, timeout); err == nil || ctx.Err() != nil {
			break
		}
	}
	return ok, warn, message, err
}

func (m *Manager) handler(ctx context.Context, pod *corev1.Pod, c *corev1.Container, p *corev1.Probe, t Target,
	timeout time.Duration) (bool, bool, string, error) {
	switch {
	case p.Exec != nil:
		return m.exec(ctx, p.Exec, t, timeout)
	case p.HTTPGet != nil:
		return httpGet(ctx, c, p.HTTPGet, t, timeout)
	case p.TCPSocket != nil:
		return tcp(ctx, c, p.TCPSocket, t, timeout)
	case p.GRPC != nil:
		return grpcHealth(ctx, p.GRPC, t, timeout)
	}
	return false, false, "", fmt.Errorf("missing probe handler for %s/%s:%s", pod.Namespace, pod.Name, c.Name)
}

// exec runs the probe's command. A command that takes too long is a failure of the container; a call that fails is not.
func (m *Manager) exec(ctx context.Context, a *corev1.ExecAction, t Target, timeout time.Duration) (bool, bool, string,
	error) {
	r, err := m.cfg.Exec(ctx, t.RawID, a.Command, timeout)
	out := append(r.Stdout, r.Stderr...)
	if len(out) > maxBody {
		out = out[:maxBody]
	}
	var slow interface{ Timeout() bool }
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return false, false, err.Error(), nil
	case err != nil:
		return false, false, "", err
	}
	return r.ExitCode == 0, false, string(out), nil
}

// port finds a port by number or by the container's name for it.
func port(c *corev1.Container, p intstr.IntOrString) (int, error) {
	n := p.IntValue()
	if p.Type == intstr.String {
		for _, x := range c.Ports {
			if x.Name == p.StrVal {
				n = int(x.ContainerPort)
			}
		}
	}
	if n < 1 || n > 65535 {
		return 0, fmt.Errorf("invalid port number: %v", p.String())
	}
	return n, nil
}

// Request builds the request of an HTTP probe or hook.
func Request(ctx context.Context, c *corev1.Container, a *corev1.HTTPGetAction, podIP, agent string) (*http.Request,
	error) {
	host := a.Host
	if host == "" {
		host = podIP
	}
	n, err := port(c, a.Port)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if a.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	u, err := url.Parse(a.Path)
	if err != nil { // not a valid path: taken as it is
		u = &url.URL{Path: a.Path}
	}
	u.Scheme, u.Host = scheme, net.JoinHostPort(host, strconv.Itoa(n))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	for _, h := range a.HTTPHeaders {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", agent)
	}
	if _, given := req.Header["Accept"]; !given {
		req.Header.Set("Accept", "*/*")
	} else if req.Header.Get("Accept") == "" {
		req.Header.Del("Accept")
	}
	return req, nil
}

// HTTPClient returns the client of HTTP probes and hooks, with one connection each. It follows at most 10 redirects,
// within the host. A redirect to another host is itself the answer: a pod must not choose whom the node calls.
func HTTPClient() *http.Client {
	return &http.Client{
		// The node does not have the pod's CA, and only asks whether it answers.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2: true, // net/http leaves HTTP/2 out where the TLS settings are not its own
			DisableKeepAlives: true, Proxy: nil, DisableCompression: true},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Hostname() != via[0].URL.Hostname() {
				return http.ErrUseLastResponse
			}
			if len(via) >= 10 {
				return errors.New("stopped after 10 redirects")
			}
			return nil
		}}
}

func httpGet(ctx context.Context, c *corev1.Container, a *corev1.HTTPGetAction, t Target, timeout time.Duration) (bool,
	bool, string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := Request(ctx, c, a, t.PodIP, "kube-probe/"+kubeversion.API)
	if err != nil {
		return false, false, "", err
	}
	resp, err := HTTPClient().Do(req)
	if err != nil {
		return false, false, err.Error(), nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return false, false, err.Error(), nil
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 400 {
		if resp.StatusCode >= 300 { // not followed, see HTTPClient
			return true, true, "Probe terminated redirects, Response body: " + string(body), nil
		}
		return true, false, string(body), nil
	}
	return false, false, fmt.Sprintf("HTTP probe failed with statuscode: %d", resp.StatusCode), nil
}

func tcp(ctx context.Context, c *corev1.Container, a *corev1.TCPSocketAction, t Target, timeout time.Duration) (bool,
	bool, string, error) {
	n, err := port(c, a.Port)
	if err != nil {
		return false, false, "", err
	}
	host := a.Host
	if host == "" {
		host = t.PodIP
	}
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(n)))
	if err != nil {
		return false, false, err.Error(), nil
	}
	return true, false, "", conn.Close()
}

func grpcHealth(ctx context.Context, a *corev1.GRPCAction, t Target, timeout time.Duration) (bool, bool, string,
	error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addr := net.JoinHostPort(t.PodIP, strconv.Itoa(int(a.Port)))
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent("kube-probe/"+kubeversion.API))
	if err != nil {
		return false, false, "", err
	}
	defer conn.Close()
	service := ""
	if a.Service != nil {
		service = *a.Service
	}
	r, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service},
		grpc.WaitForReady(true))
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		return false, false, fmt.Sprintf("timeout: failed to connect service %q within %s: context deadline exceeded",
			addr, timeout), nil
	case err != nil:
		return false, false, fmt.Sprintf("error: health rpc failed: %v", err), nil
	case r.Status != grpc_health_v1.HealthCheckResponse_SERVING:
		return false, false, fmt.Sprintf("service unhealthy (responded with %q)", r.Status), nil
	}
	return true, false, "service healthy", nil
}
