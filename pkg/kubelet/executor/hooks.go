package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
)

// hook runs one lifecycle handler and waits for its end, or that of ctx.
func (e *Executor) hook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, id string, h *corev1.LifecycleHandler) error {
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
		ips := e.podIPs(pod, rt)
		if len(ips) == 0 {
			return errors.New("the pod has no address")
		}
		return httpHook(ctx, c, h.HTTPGet, ips[0])
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

// httpHook sends the request of an HTTP hook. Any answer is success, whatever its status and body: the hook was told.
func httpHook(ctx context.Context, c *corev1.Container, a *corev1.HTTPGetAction, podIP string) error {
	req, err := prober.Request(ctx, c, a, podIP, "kube-lifecycle/1.36")
	if err != nil {
		return err
	}
	resp, err := prober.HTTPClient().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 10<<10))
	return nil
}
