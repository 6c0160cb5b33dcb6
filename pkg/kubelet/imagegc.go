package kubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/kubelet/images"
)

// cleanImages removes unused images as the policy says and returns what is known of those that stay.
func (k *Kubelet) cleanImages(ctx context.Context, known map[string]images.Seen) (map[string]images.Seen, error) {
	present, err := k.cri.Images(ctx)
	if err != nil {
		return known, err
	}
	used, err := k.usedImages(ctx)
	if err != nil {
		return known, err
	}
	now := time.Now()
	known = images.Track(known, present, used, now)
	usage, err := k.cri.ImageFilesystem(ctx)
	if err != nil {
		return known, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(usage.Mountpoint, &fs); err != nil {
		return known, fmt.Errorf("measure the image file system %s: %w", usage.Mountpoint, err)
	}
	disk := images.Disk{Capacity: fs.Blocks * uint64(fs.Bsize), Available: fs.Bavail * uint64(fs.Bsize)}
	var errs []error
	for _, id := range images.Victims(k.cfg.ImageGC, disk, present, known, used, now) {
		errs = append(errs, k.images.WhenFree(id, func() error {
			// A container may have been made of it since; none is while it is being removed.
			if used, err := k.usedImages(ctx); err != nil || used[id] {
				return err
			}
			k.log.Info("unused image removed to free space", "image", id)
			delete(known, id)
			return k.cri.RemoveImage(ctx, id)
		}))
	}
	return known, errors.Join(errs...)
}

// usedImages are the ids of the images that containers or image volumes use.
func (k *Kubelet) usedImages(ctx context.Context) (map[string]bool, error) {
	pods, err := k.cri.Pods(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, p := range pods {
		for _, c := range p.Containers {
			used[c.ImageID] = true
		}
	}
	return used, k.markMounted(ctx, used)
}

// markMounted adds the images of this node's image volumes to used: the runtime lists only those that containers were made of.
func (k *Kubelet) markMounted(ctx context.Context, used map[string]bool) error {
	for _, pod := range (View{k}).Pods() {
		for _, v := range pod.Spec.Volumes {
			if v.Image == nil {
				continue
			}
			img, err := k.cri.Image(ctx, v.Image.Reference)
			if err != nil {
				return err
			}
			if img != nil {
				used[img.ID] = true
			}
		}
	}
	return nil
}
