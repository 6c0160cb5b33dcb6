package kubelet

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/trace"
)

// apiSource takes what the API server says of pods.
type apiSource struct {
	*Kubelet
	// ctx is the source's own, for the records of steps.
	ctx context.Context
}

// Update implements config.Handler.
func (s apiSource) Update(pod *corev1.Pod) {
	k := s.Kubelet
	if runtime.IsMirror(pod) {
		k.mirror(pod, false)
		return
	}
	k.status.Observe(pod.UID, pod)
	k.mu.Lock()
	old := k.pods[pod.UID]
	k.pods[pod.UID] = pod
	k.mu.Unlock()
	if old == nil {
		k.admission.Add(pod)
		now := time.Now()
		trace.Step(s.ctx, k.log, pod, "kubelet.seen", now, now)
	} else {
		k.admission.Update(pod)
	}
	if old == nil || !config.SameWork(old, pod, status.Own) {
		// A pod whose containers have ended reads nothing any more.
		if state, known := k.workers.State(pod.UID); !known || state < podworker.Terminated {
			k.objects.Track(pod)
		}
		if old != nil && (!maps.Equal(old.Labels, pod.Labels) || !maps.Equal(old.Annotations, pod.Annotations)) {
			k.volumes.Update(pod)
		}
		k.workers.Update(pod)
	}
}

// Remove implements config.Handler.
func (s apiSource) Remove(pod *corev1.Pod) {
	k := s.Kubelet
	if runtime.IsMirror(pod) {
		k.mirror(pod, true)
		return
	}
	k.status.Unobserve(pod.UID)
	k.gone(pod)
}

// fileSource takes what the manifests say of static pods.
type fileSource struct{ *Kubelet }

// Update implements config.Handler.
func (s fileSource) Update(pod *corev1.Pod) {
	k := s.Kubelet
	k.mu.Lock()
	k.pods[pod.UID] = pod
	m := k.mirrorLocked(pod)
	k.mu.Unlock()
	if m != nil {
		k.status.Observe(pod.UID, m)
	}
	k.admission.Add(pod)
	k.workers.Update(pod)
	k.pokeMirrors()
}

// Remove implements config.Handler.
func (s fileSource) Remove(pod *corev1.Pod) {
	s.gone(pod)
	s.pokeMirrors()
}

func (k *Kubelet) gone(pod *corev1.Pod) {
	k.mu.Lock()
	delete(k.pods, pod.UID)
	k.mu.Unlock()
	k.admission.Withdraw(pod.UID)
	// A static pod that no worker knows is one of an earlier life of the kubelet.
	if _, known := k.workers.State(pod.UID); known || runtime.IsStatic(pod) {
		k.workers.Remove(pod)
	} else {
		k.objects.Untrack(pod.UID)
	}
}

// mirror takes a change of a mirror pod.
func (k *Kubelet) mirror(m *corev1.Pod, removed bool) {
	name := fullName(m)
	k.mu.Lock()
	if !removed {
		k.mirrors[name] = m
	} else if old := k.mirrors[name]; old != nil && old.UID == m.UID {
		delete(k.mirrors, name)
	}
	if removed {
		delete(k.outlived, m.UID)
	}
	var static *corev1.Pod
	for _, p := range k.pods {
		if runtime.IsStatic(p) && fullName(p) == name {
			static = p
		}
	}
	shown := static != nil && k.mirrorLocked(static) != nil
	k.mu.Unlock()
	switch {
	case static != nil && removed:
		k.status.Unobserve(static.UID)
	case shown:
		k.status.Observe(static.UID, m)
		return
	}
	k.pokeMirrors()
}

// mirrorLocked returns the mirror that shows this static pod, nil if there is none.
func (k *Kubelet) mirrorLocked(pod *corev1.Pod) *corev1.Pod {
	m := k.mirrors[fullName(pod)]
	if m == nil || !runtime.IsStatic(pod) || k.outlived[m.UID] || !config.Matches(m, pod) {
		return nil
	}
	return m
}

func (k *Kubelet) pokeMirrors() {
	select {
	case k.mirrorsDue <- struct{}{}:
	default:
	}
}

// runMirrors keeps the mirror pods equal to the static pods, at once on a change and every ten seconds.
func (k *Kubelet) runMirrors(ctx context.Context) error {
	t := time.NewTicker(10 * time.Second)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-k.node.Registered():
	}
	for {
		if k.Synced() {
			k.syncMirrors(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-k.mirrorsDue:
		}
	}
}

func (k *Kubelet) syncMirrors(ctx context.Context) {
	k.mu.Lock()
	static := map[string]*corev1.Pod{}
	for _, p := range k.pods {
		if runtime.IsStatic(p) {
			static[fullName(p)] = p
		}
	}
	mirrors, outlived := maps.Clone(k.mirrors), maps.Clone(k.outlived)
	k.mu.Unlock()
	for n, p := range static {
		if m := mirrors[n]; m != nil && outlived[m.UID] {
			continue // it is deleted first
		}
		if err := config.EnsureMirror(ctx, k.cfg.Client, p, mirrors[n], k.node.Object()); err != nil && ctx.Err() == nil {
			k.log.Warn("mirror pod not made, it will be tried again", "pod", n, "err", err)
		}
	}
	for n, m := range mirrors {
		if static[n] != nil && !outlived[m.UID] {
			continue
		}
		if err := config.DeleteMirror(ctx, k.cfg.Client, m); err != nil && ctx.Err() == nil {
			k.log.Warn("mirror pod not deleted, it will be tried again", "pod", n, "err", err)
		}
	}
}

// active returns the pods told of by the sources and not finished.
func (k *Kubelet) active() []*corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]*corev1.Pod, 0, len(k.pods))
	for uid, p := range k.pods {
		if s, ok := k.workers.State(uid); ok && s < podworker.Terminated {
			out = append(out, p)
		}
	}
	return out
}

func (k *Kubelet) pod(uid types.UID) *corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pods[uid]
}

func fullName(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }
