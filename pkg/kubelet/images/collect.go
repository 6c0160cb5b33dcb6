package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Node is the node's images and pods, as the runtime has them.
type Node interface {
	Images(ctx context.Context) ([]runtime.Image, error)
	// Image returns the image of a name, nil if it is not there.
	Image(ctx context.Context, name string) (*runtime.Image, error)
	Pods(ctx context.Context) ([]*runtime.PodStatus, error)
	Filesystems(ctx context.Context) (runtime.Filesystems, error)
	RemoveImage(ctx context.Context, id string) error
}

// Collector removes unused images.
type Collector struct {
	Policy  Policy
	Node    Node
	Manager *Manager
	// Pods returns the node's pods: the runtime does not report which images are mounted as volumes.
	Pods func() []*corev1.Pod
	// Removed counts an image that was removed, by the reason.
	Removed func(Reason)
	Now     func() time.Time
	Log     *slog.Logger

	// mu is held while images are chosen and removed: the periodic collection and an eviction may coincide.
	mu    sync.Mutex
	known map[string]seen
}

// Collect removes unused images as the policy says.
func (c *Collector) Collect(ctx context.Context) error {
	where, err := c.Node.Filesystems(ctx)
	if err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(where.Images, &fs); err != nil {
		return fmt.Errorf("measure the image file system %s: %w", where.Images, err)
	}
	need := toFree(c.Policy, disk{capacity: fs.Blocks * uint64(fs.Bsize), available: fs.Bavail * uint64(fs.Bsize)})
	freed, err := c.collect(ctx, need)
	if err == nil && freed < need {
		err = &TooFew{Need: need, Freed: freed}
	}
	return err
}

// TooFew is the error when fewer bytes could be freed than the policy asks for.
type TooFew struct{ Need, Freed int64 }

// Error returns upstream's words for it.
func (e *TooFew) Error() string {
	return fmt.Sprintf("Failed to garbage collect required amount of images. Attempted to free %d bytes, but only found %d bytes eligible to free.", e.Need, e.Freed)
}

// RemoveUnused removes all unused images that have been on the node for the policy's MinAge.
func (c *Collector) RemoveUnused(ctx context.Context) error {
	_, err := c.collect(ctx, math.MaxInt64)
	return err
}

// collect removes unused images until so many bytes are freed, and those that are too old. It returns how many were
// freed. Each image is checked again just before its removal, because a pod may have started to use it meanwhile.
func (c *Collector) collect(ctx context.Context, need int64) (freed int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	present, err := c.Node.Images(ctx)
	if err != nil {
		return 0, err
	}
	used, err := c.used(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	if r := c.Manager.cfg.Records; r != nil {
		errs = append(errs, r.prune(present, now))
	}
	c.known = track(c.known, present, used, now)
	for _, v := range victims(c.Policy, need, present, c.known, used, now) {
		errs = append(errs, c.Manager.whenFree(v.id, func() error {
			// A container may have been made from it since. None is made while it is being removed.
			if used, err := c.used(ctx); err != nil || used[v.id] {
				return err
			}
			if err := c.Node.RemoveImage(ctx, v.id); err != nil {
				return err
			}
			c.Log.Info("unused image removed", "image", v.id, "reason", v.reason)
			c.Removed(v.reason)
			delete(c.known, v.id)
			freed += int64(v.size)
			return nil
		}))
	}
	return freed, errors.Join(errs...)
}

// used returns the ids of the images that containers or image volumes use. Names that are ambiguous to the runtime are
// ignored: the runtime could not mount them, and otherwise a user could write such a name into a pod and so keep all
// images on the node.
func (c *Collector) used(ctx context.Context) (map[string]bool, error) {
	pods, err := c.Node.Pods(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, p := range pods {
		for _, x := range p.Containers {
			used[x.ImageID] = true
		}
	}
	for _, pod := range c.Pods() {
		for _, v := range pod.Spec.Volumes {
			if v.Image == nil {
				continue
			}
			switch img, err := c.Node.Image(ctx, v.Image.Reference); {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil:
				c.Log.Warn("the image of a volume is not known", "pod", pod.Namespace+"/"+pod.Name, "volume", v.Name,
					"err", err)
			case img != nil:
				used[img.ID] = true
			}
		}
	}
	return used, nil
}
