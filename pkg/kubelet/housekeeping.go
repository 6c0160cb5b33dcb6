package kubelet

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/runtime"
)

// Periods of the cleaning.
const (
	cleanPeriod = 30 * time.Second
	imagePeriod = 5 * time.Minute
)

// listed looks at a list of the runtime for pods that no source knows: they are ended. Until all sources have spoken, no pod
// counts as unknown. No source speaks meanwhile, so that a pod that comes just now is not taken for an orphan. The first list, before
// any source speaks, has the pods of the kubelet's life before.
func (k *Kubelet) listed(pods []*runtime.PodStatus) {
	select {
	case <-k.listedOnce:
	default:
		for _, p := range pods {
			if len(p.Sandboxes) > 0 {
				k.admission.Ran(p.UID)
			}
			if pod := left(p); config.IsStatic(pod) {
				k.earlier[p.UID] = pod
			}
		}
		close(k.listedOnce)
	}
	if !k.Synced() {
		return
	}
	k.sources.Lock()
	defer k.sources.Unlock()
	for _, p := range pods {
		if _, known := k.workers.State(p.UID); known || k.pod(p.UID) != nil || p.Name == "" {
			continue
		}
		k.log.Info("a pod in the container runtime is known to no source, it is ended", "pod", p.Namespace+"/"+p.Name, "uid", p.UID)
		k.workers.Remove(left(p))
	}
}

// left is what can be told of a pod that only the runtime knows.
func left(p *runtime.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID, Annotations: p.Annotations},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(1))}}
}

// housekeeping removes what nobody uses any more: dead containers, directories and cgroups of pods that are gone, images.
func (k *Kubelet) housekeeping(ctx context.Context) error {
	clean, image := time.NewTicker(cleanPeriod), time.NewTicker(imagePeriod)
	defer clean.Stop()
	defer image.Stop()
	known := map[string]images.Seen{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-clean.C:
			if k.Synced() {
				k.clean(ctx)
			}
		case <-image.C:
			var err error
			if known, err = k.cleanImages(ctx, known); err != nil && ctx.Err() == nil {
				k.log.Warn("images not cleaned up", "err", err)
			}
		}
	}
}

// clean removes what is left of pods that are gone. What there is gets listed first, and whether it may go is asked at the moment of
// each removal, in a way that the answer holds until the removal is done: a pod may arrive at any time, and what it has must stay.
func (k *Kubelet) clean(ctx context.Context) {
	for what, err := range map[string]error{
		"dead containers":      k.cleanContainers(ctx),
		"directories of pods":  k.volumes.Cleanup(ctx, k.workers.WhenGone),
		"cgroups of pods":      k.cgroups.Reconcile(ctx, k.workers.WhenFinished),
		"logs of pods":         k.cfg.Logs.Clean(k.workers.WhenGone),
		"cgroups' CPU of pods": k.cgroups.UpdateQoS(k.active()),
	} {
		if err != nil && ctx.Err() == nil {
			k.log.Warn("cleaning up failed", "what", what, "err", err)
		}
	}
}

// cleanContainers keeps one dead container per name, for its logs and its last state, and the newest sandbox of a pod. A pod that has
// too many is looked at again right before: what is dead and not the newest then will never be anything else.
func (k *Kubelet) cleanContainers(ctx context.Context) error {
	pods, err := k.cri.Pods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		if len(excess(p)) == 0 && len(unused(p)) == 0 {
			continue
		}
		now, err := k.cri.PodStatus(ctx, p.UID)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		now.Name, now.Namespace = p.Name, p.Namespace
		for _, c := range excess(now) {
			errs = append(errs, k.cri.RemoveContainer(ctx, c.ID.ID), k.cfg.Logs.Remove(logs.Of(now, &c)))
		}
		for _, id := range unused(now) {
			errs = append(errs, k.cri.RemoveSandbox(ctx, id))
		}
	}
	return errors.Join(errs...)
}

// unused lists the sandboxes that are neither ready nor the newest and have no containers.
func unused(p *runtime.PodStatus) []string {
	var out []string
	for i, s := range p.Sandboxes {
		if i > 0 && !s.Ready && !slices.ContainsFunc(p.Containers, func(c runtime.Container) bool { return c.SandboxID == s.ID }) {
			out = append(out, s.ID)
		}
	}
	return out
}

// excess lists the dead containers beyond the newest one of each name, besides the one that is current.
func excess(p *runtime.PodStatus) []runtime.Container {
	seen := map[string]int{}
	var out []runtime.Container
	for i, c := range p.Containers {
		if c.State == runtime.StateExited && seen[c.Name] > 0 && deadBefore(p, i) {
			out = append(out, c)
		}
		seen[c.Name]++
	}
	return out
}

// deadBefore tells whether a newer container of the same name has ended too.
func deadBefore(p *runtime.PodStatus, i int) bool {
	for j := range i {
		if p.Containers[j].Name == p.Containers[i].Name && p.Containers[j].State == runtime.StateExited {
			return true
		}
	}
	return false
}
