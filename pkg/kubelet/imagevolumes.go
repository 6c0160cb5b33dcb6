package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// imageVolumes brings the images that c mounts as volumes to the node (KEP-4639) and returns their ids by the volume's name; they stay
// at least until release is called. What goes wrong with one keeps the container waiting for the reasons that its own image would.
func (k *Kubelet) imageVolumes(ctx context.Context, pod *corev1.Pod, st *podState, c *corev1.Container) (ids map[string]string, release func(), err error) {
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
		v := st.mounts[m.Name].Image
		if v == nil || ids[m.Name] != "" {
			continue
		}
		img, done, err := k.holdImage(ctx, pod, st, c, v.Reference, v.PullPolicy)
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
