package executor

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// imageVolumes brings the images that c mounts as volumes to the node (KEP-4639) and returns their ids by the volume's
// name; they stay at least until release is called. What goes wrong with one keeps the container waiting for the
// reasons that its own image would.
func (e *Executor) imageVolumes(ctx context.Context, pod *corev1.Pod, p *Pod,
	c *corev1.Container) (ids map[string]string, release func(), err error) {
	var releases []func()
	release = func() {
		for _, f := range releases {
			f()
		}
	}
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

// countImageVolumes counts the n images that a container has, or would have had, as volumes once the runtime was asked
// to make it. Where that failed for another reason it is not known whether they were mounted.
func (e *Executor) countImageVolumes(n int, err error) {
	if n > 0 && (err == nil || e.cfg.ImageVolumeFailed(err)) {
		e.cfg.Metrics.ImageVolumesMounted(n, err == nil)
	}
}
