package volume

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Changed reports that something changed which the pods refer to: Run brings their volumes up to date at once. It never
// blocks; what does not fit into the queue (256 pods) waits for the next period.
func (m *Manager) Changed(uids []types.UID) {
	for _, uid := range uids {
		select {
		case m.stale <- uid:
		default:
			return
		}
	}
}

// Update takes a newer version of a pod: volumes that show the pod itself (downward API) follow. A pod that is not
// mounted is not remembered. It never blocks.
func (m *Manager) Update(pod *corev1.Pod) {
	m.mu.Lock()
	p := m.pods[pod.UID]
	if p != nil {
		p.newer = pod
	}
	m.mu.Unlock()
	if p != nil {
		m.Changed([]types.UID{pod.UID})
	}
}

// Run keeps the content of mounted volumes fresh (changed objects, tokens about to expire) until ctx is done. Each pod
// has its own goroutine while it is refreshed, so that a pod whose objects cannot be read holds up no other.
func (m *Manager) Run(ctx context.Context) error {
	tick := time.NewTicker(m.cfg.Period)
	defer tick.Stop()
	var refreshes sync.WaitGroup
	defer refreshes.Wait()
	begin := func(uid types.UID) {
		p := m.entry(uid, false)
		if p == nil {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if p.cancel != nil {
			p.again = true
			return
		}
		var own context.Context
		own, p.cancel = context.WithCancel(ctx)
		refreshes.Go(func() { m.refreshes(ctx, own, p) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case uid := <-m.stale:
			begin(uid)
		case <-tick.C:
			m.mu.Lock()
			uids := slices.Collect(maps.Keys(m.pods))
			m.mu.Unlock()
			for _, uid := range uids {
				begin(uid)
			}
		}
	}
}

// refreshes refreshes a pod until nothing more is due, then gives up its turn. ctx ends with the pod's volumes; the
// measurements use run, and end with the kubelet. again holds any number of requests that came during a refresh: one
// more pass sees all of them. It is read and cancel reset under one lock, so that a request between the two is not
// lost.
func (m *Manager) refreshes(run, ctx context.Context, p *podVolumes) {
	for {
		if pod, mounted := m.refresh(ctx, p); pod != nil {
			m.measure(run, p, pod, mounted)
		}
		m.mu.Lock()
		again := p.again && ctx.Err() == nil
		p.again = false
		if !again {
			p.cancel()
			p.cancel = nil
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
	}
}

// refresh mounts a pod again as it was last mounted, or its newer version, and returns that; nil if it is unmounted. A
// failure is only logged: the pod runs on with the content that it has, and the next period tries again.
func (m *Manager) refresh(ctx context.Context, p *podVolumes) (*corev1.Pod, map[string]Mounted) {
	p.mu.Lock()
	if p.pod == nil {
		p.mu.Unlock()
		return nil, nil
	}
	m.mu.Lock()
	if p.newer != nil {
		p.pod, p.newer = p.newer, nil
	}
	m.mu.Unlock()
	pod := p.pod
	p.mu.Unlock()
	mounted, err := m.mount(ctx, p, pod, true)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errUnmounted) {
		m.cfg.Log.Warn("volumes of a running pod could not be refreshed", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	}
	return pod, mounted
}

// Cleanup removes the directories of pods that are gone, with every mount below them: what a killed kubelet left
// behind, or a pod that was deleted while no kubelet ran. whenGone is asked at the moment of each removal: it runs f if
// the pod is gone, and keeps the pod from coming back until f is done. Cleanup goes on after an error and returns all
// of them.
func (m *Manager) Cleanup(ctx context.Context, whenGone func(uid types.UID, f func() error) error) error {
	entries, err := os.ReadDir(m.cfg.PodsDir)
	if err != nil {
		return err
	}
	var errs []error
	removed, failed := 0, 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		uid := types.UID(e.Name())
		errs = append(errs, whenGone(uid, func() error {
			if err := m.Remove(ctx, uid); err != nil {
				failed++
				return err
			}
			removed++
			m.cfg.Log.Info("removed the directory of a pod that is gone", "uid", uid)
			return nil
		}))
	}
	m.cfg.Metrics.VolumesSwept(removed, failed)
	return errors.Join(errs...)
}
