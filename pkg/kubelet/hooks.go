package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/prober"
)

// httpHookTimeout bounds an HTTP hook, which has no timeout of its own.
const httpHookTimeout = 30 * time.Second

// hook runs one lifecycle handler and waits for its end.
func (k *Kubelet) hook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, id string, h *corev1.LifecycleHandler) error {
	switch {
	case h.Exec != nil:
		r, err := k.cri.ExecSync(ctx, id, h.Exec.Command, 0)
		if err != nil {
			return err
		}
		if r.ExitCode != 0 {
			return fmt.Errorf("command %q exited with %d", strings.Join(h.Exec.Command, " "), r.ExitCode)
		}
		return nil
	case h.HTTPGet != nil:
		return k.httpHook(ctx, pod, c, h.HTTPGet)
	case h.Sleep != nil:
		t := time.NewTimer(time.Duration(h.Sleep.Seconds) * time.Second)
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

func (k *Kubelet) httpHook(ctx context.Context, pod *corev1.Pod, c *corev1.Container, a *corev1.HTTPGetAction) error {
	ctx, cancel := context.WithTimeout(ctx, httpHookTimeout)
	defer cancel()
	rt, err := k.cri.PodStatus(ctx, pod.UID)
	if err != nil {
		return err
	}
	ips := k.podIPs(pod, rt)
	if len(ips) == 0 {
		return errors.New("the pod has no address")
	}
	req, err := prober.Request(ctx, c, a, ips[0], "kube-lifecycle/1.36")
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} // hooks know no CA of the pod's
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 10<<10)); err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the hook answered with status %d", resp.StatusCode)
	}
	return nil
}

// probeExec runs a probe's command.
func (k *Kubelet) probeExec(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, int, error) {
	r, err := k.cri.ExecSync(ctx, id, cmd, timeout)
	return append(r.Stdout, r.Stderr...), int(r.ExitCode), err
}
