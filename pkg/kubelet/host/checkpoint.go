package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Checkpoint has the runtime write all that a running container is into an archive, and returns the archive's path. It
// has the container's memory, so root alone may read it. It is given up after timeout, 0 for the runtime's usual time.
//
// The names: https://kubernetes.io/docs/reference/node/kubelet-checkpoint-api/.
func (h Host) Checkpoint(ctx context.Context, pod *corev1.Pod, container string, timeout time.Duration) (_ string,
	err error) {
	id, err := h.running(ctx, pod, container)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(h.Checkpoints, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of checkpoints: %w", err)
	}
	path := filepath.Join(h.Checkpoints,
		fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", pod.Name, pod.Namespace, container, h.Now().Format(time.RFC3339)))
	defer func() {
		if err != nil { // what is half written
			if gone := os.Remove(path); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	if err := h.Runtime.Checkpoint(ctx, id, path, timeout); err != nil {
		return "", err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return "", fmt.Errorf("keep the checkpoint from others: %w", err)
	}
	return path, nil
}
