package cri

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// execTimeoutError is the error of a command that did not end in its time. Its text is upstream's.
type execTimeoutError struct{ after time.Duration }

// Error names the time that was allowed.
func (e execTimeoutError) Error() string {
	return fmt.Sprintf("command timed out after %s", e.after)
}

// ExecSync runs a command in a running container and waits for its end; timeout 0 waits as long as ctx.
func (c *Client) ExecSync(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult,
	error) {
	seconds := int64(timeout / time.Second)
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout+c.timeout) // the runtime enforces timeout itself
		defer cancel()
		seconds = max(seconds, 1)
	}
	r, err := c.runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: cmd, Timeout: seconds})
	if err != nil {
		// The runtime itself says that the command took too long. If ctx has ended, the deadline was ours or the
		// caller's, which says nothing about the command: the runtime may hang.
		if timeout > 0 && status.Code(err) == codes.DeadlineExceeded && ctx.Err() == nil {
			return runtime.ExecResult{}, fmt.Errorf("%w: %w", execTimeoutError{timeout}, err)
		}
		return runtime.ExecResult{}, fmt.Errorf("exec in container %s: %w", id, err)
	}
	return runtime.ExecResult{Stdout: r.Stdout, Stderr: r.Stderr, ExitCode: r.ExitCode}, nil
}

// Exec returns the URL at which the runtime streams the command.
func (c *Client) Exec(ctx context.Context, id string, cmd []string, s runtime.Streams) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.Exec(ctx,
		&runtimeapi.ExecRequest{ContainerId: id, Cmd: cmd, Tty: s.TTY, Stdin: s.Stdin, Stdout: s.Stdout,
			Stderr: s.Stderr})
	if err != nil {
		return "", fmt.Errorf("prepare exec in container %s: %w", id, err)
	}
	return r.Url, nil
}

// Attach returns the URL at which the runtime streams the container's main process.
func (c *Client) Attach(ctx context.Context, id string, s runtime.Streams) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.Attach(ctx,
		&runtimeapi.AttachRequest{ContainerId: id, Tty: s.TTY, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr})
	if err != nil {
		return "", fmt.Errorf("prepare attach to container %s: %w", id, err)
	}
	return r.Url, nil
}

// PortForward returns the URL at which the runtime streams ports of a sandbox.
func (c *Client) PortForward(ctx context.Context, sandboxID string, ports []int32) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: sandboxID, Port: ports})
	if err != nil {
		return "", fmt.Errorf("prepare port forwarding to sandbox %s: %w", sandboxID, err)
	}
	return r.Url, nil
}

// Timeout lets the prober tell a slow command from a failed call.
func (e execTimeoutError) Timeout() bool { return true }
