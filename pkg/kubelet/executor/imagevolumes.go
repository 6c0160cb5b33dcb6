package executor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// imageVolumes brings the images that c mounts as volumes to the node (KEP-4639) and returns their ids by volume name.
// They stay at least until release is called, which the caller does in any case but an error. A failure keeps the
// container waiting with the same reasons as a failure of its own image.
func (e *Executor) imageVolumes(ctx context.Context, pod *corev1.Pod, p *Pod,
	c *corev1.Container) (ids map[string]string, release func(), err error) {
	var releases []func()
	release = func() {
		for _, f := range releases {
			f()
		}
	}
	// Some images may be held already when a later one fails.
	defer func() {
		if err != nil {
			release()
		}
	}()
	for _, m := range c.VolumeMounts {
		v := p.mounts[m.Name].Image
		if v == nil || ids[m.Name] != "" {
			continue
		}
		e.cfg.Metrics.ImageVolumeAsked()
		img, done, err := e.holdImage(ctx, pod, p, c, v.Reference, v.PullPolicy)
		if err != nil {
			return nil, release, err
		}
		releases = append(releases, done)
		if ids == nil {
			ids = map[string]string{}
		}
		ids[m.Name] = img.ID
	}
	return ids, release, nil
}

// countImageVolumes counts the n images that a container mounts as volumes, after the runtime was asked to create it.
// If that failed for another reason, it is unknown whether they were mounted, and nothing is counted.
func (e *Executor) countImageVolumes(n int, err error) {
	if n > 0 && (err == nil || e.cfg.ImageVolumeFailed(err)) {
		e.cfg.Metrics.ImageVolumesMounted(n, err == nil)
	}
}
