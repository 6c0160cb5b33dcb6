package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Node is what the node has, as the runtime tells.
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
	// Pods are the node's pods: the runtime does not tell which images are mounted as volumes.
	Pods func() []*corev1.Pod
	Now  func() time.Time
	Log  *slog.Logger

	// mu is held while images are chosen and removed.
	mu    sync.Mutex
	known map[string]Seen
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
	return c.collect(ctx, toFree(c.Policy, Disk{Capacity: fs.Blocks * uint64(fs.Bsize), Available: fs.Bavail * uint64(fs.Bsize)}))
}

// RemoveUnused removes all unused images that have been on the node for the policy's MinAge.
func (c *Collector) RemoveUnused(ctx context.Context) error { return c.collect(ctx, math.MaxInt64) }

// collect removes unused images until so many bytes are free.
func (c *Collector) collect(ctx context.Context, need int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	present, err := c.Node.Images(ctx)
	if err != nil {
		return err
	}
	used, err := c.used(ctx)
	if err != nil {
		return err
	}
	if r := c.Manager.cfg.Records; r != nil {
		is := func(id string) bool {
			return slices.ContainsFunc(present, func(i runtime.Image) bool { return i.ID == id })
		}
		if err := r.Prune(is, now); err != nil {
			return err
		}
	}
	c.known = Track(c.known, present, used, now)
	var errs []error
	for _, id := range Victims(c.Policy, need, present, c.known, used, now) {
		errs = append(errs, c.Manager.WhenFree(id, func() error {
			// A container may have been made of it since; none is while it is being removed.
			if used, err := c.used(ctx); err != nil || used[id] {
				return err
			}
			c.Log.Info("unused image removed to free space", "image", id)
			delete(c.known, id)
			return c.Node.RemoveImage(ctx, id)
		}))
	}
	return errors.Join(errs...)
}

// used are the ids of the images that containers or image volumes use.
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
			img, err := c.Node.Image(ctx, v.Image.Reference)
			if err != nil {
				return nil, err
			}
			if img != nil {
				used[img.ID] = true
			}
		}
	}
	return used, nil
}
