package kubelet

import (
	"context"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/volume/emptydir"
)

const (
	// storagePeriod is how often pods with limits for local storage are measured; after a round that took long, the pause is
	// storageRest times as long, so that measuring takes no more than a small part of the disk's time.
	storagePeriod = 10 * time.Second
	storageRest   = 20
	// evictionGrace is what containers of an evicted pod get: they fill the disk meanwhile.
	evictionGrace = time.Second
	reasonEvicted = "Evicted"
)

// watchStorage evicts pods that use more of the node's disk than their limits allow. Pods without such limits cost nothing, and
// static pods are not evicted.
func (k *Kubelet) watchStorage(ctx context.Context) error {
	timer := time.NewTimer(storagePeriod)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		begun := time.Now()
		if err := k.measureStorage(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("local storage of pods not measured", "err", err)
		}
		timer.Reset(max(storagePeriod, storageRest*time.Since(begun)))
	}
}

// measureStorage looks at the pods with limits once. The runtime is asked once for all of them.
func (k *Kubelet) measureStorage(ctx context.Context) error {
	var limited []*corev1.Pod
	for _, p := range k.active() {
		if !config.IsStatic(p) && localstorage.Limited(p) {
			limited = append(limited, p)
		}
	}
	if len(limited) == 0 {
		return nil
	}
	layers, err := k.cri.WritableLayers(ctx)
	if err != nil {
		return err
	}
	for _, p := range limited {
		k.mu.Lock()
		st := k.states[p.UID]
		k.mu.Unlock()
		if st == nil { // it has not begun
			continue
		}
		u, err := k.storageOf(ctx, p, st, layers)
		if err != nil {
			return err
		}
		if why := localstorage.Exceeded(p, u); why != nil {
			st.evict.Store(why)
			k.workers.Wake(p.UID)
		}
	}
	return nil
}

// storageOf measures one pod; layers are the bytes of writable layers by container id.
func (k *Kubelet) storageOf(ctx context.Context, pod *corev1.Pod, st *podState, layers map[string]uint64) (localstorage.Usage, error) {
	u := localstorage.Usage{Containers: map[string]int64{}, Volumes: map[string]int64{}}
	st.mu.Lock()
	rt := st.runtime
	st.mu.Unlock()
	for c := range executor.Containers(pod) {
		u.Containers[c.Name] = localstorage.Logs(filepath.Join(k.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID), c.Name))
		if rt != nil {
			if x := rt.Container(c.Name); x != nil {
				u.Containers[c.Name] += int64(layers[x.ID.ID])
			}
		}
	}
	dir, err := k.volumes.PodDir(pod.UID)
	if err != nil {
		return u, err
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !localstorage.OnDisk(v) {
			continue
		}
		if u.Volumes[v.Name], err = localstorage.Tree(ctx, emptydir.Path(dir, v.Name)); err != nil {
			return u, err
		}
	}
	return u, nil
}

// evicted ends a pod that uses more storage than it may.
func (k *Kubelet) evicted(f lifecycle.Facts, st *podState) bool {
	why := st.evict.Load()
	if why == nil || st.rejected != nil || f.Pod.DeletionTimestamp != nil {
		return false
	}
	st.rejected = &admission.Rejection{Reason: reasonEvicted, Message: why.Message}
	st.disruption = why.Message
	k.metrics.evicted(why.Signal)
	k.events.Pod(f.Pod, corev1.EventTypeWarning, reasonEvicted, why.Message)
	k.report(f, st, false)
	return true
}
