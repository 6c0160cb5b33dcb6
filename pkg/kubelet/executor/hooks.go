package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/kubeversion"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
)

// hook runs one lifecycle handler and waits until it or ctx ends. It reads the pod's address from the runtime, because
// it also runs at a pod's end, without the facts of a round.
//
// preStop hooks end with the grace period. A postStart hook has no limit, as in Kubernetes: the container counts as not
// started until it ends.
func (e *Executor) hook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, id string,
	h *corev1.LifecycleHandler) error {
	switch {
	case h.Exec != nil:
		r, err := e.cfg.Runtime.ExecSync(ctx, id, h.Exec.Command, 0)
		if err != nil {
			return err
		}
		if r.ExitCode != 0 {
			return fmt.Errorf("command %q exited with %d", strings.Join(h.Exec.Command, " "), r.ExitCode)
		}
		return nil
	case h.HTTPGet != nil:
		rt, err := e.cfg.Runtime.PodStatus(ctx, pod.UID)
		if err != nil {
			return err
		}
		// The first address only, as for probes.
		ips := e.podIPs(pod, rt)
		if len(ips) == 0 {
			return errors.New("the pod has no address")
		}
		return e.httpHook(ctx, pod, c, h.HTTPGet, ips[0])
	case h.Sleep != nil:
		t := time.NewTimer(runtime.Seconds(h.Sleep.Seconds))
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			return nil
		}
	}
	return errors.New("the hook has no handler")
}

// httpHook sends the request of an HTTP hook. Any answer is a success, whatever its status and body, because the hook
// was delivered. If a server does not speak TLS although the hook asks for HTTPS, the request is sent again as HTTP,
// without credentials.
func (e *Executor) httpHook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, a *corev1.HTTPGetAction,
	podIP string) error {
	req, err := prober.Request(ctx, c, a, podIP, "kube-lifecycle/"+kubeversion.API)
	if err != nil {
		return err
	}
	err = send(req)
	if !errors.Is(err, http.ErrSchemeMismatch) || req.URL.Scheme != "https" {
		return err
	}
	req.URL.Scheme = "http"
	req.Header.Del("Authorization")
	if err := send(req); err != nil {
		return err
	}
	e.cfg.Metrics.HookFellBack()
	e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "LifecycleHTTPFallback",
		fmt.Sprintf("request to HTTPS lifecycle hook %s got HTTP response, retry with HTTP succeeded", req.URL.Host))
	return nil
}

// send sends a request and reads at most 10 KiB of the answer's body; a longer one is cut off.
func send(req *http.Request) error {
	resp, err := prober.HTTPClient().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 10<<10))
	return nil
}
