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

// Changed tells the manager that something the pods refer to changed: Run brings their volumes up to date at once. It
// never blocks; what does not fit into the queue waits for the next period.
func (m *Manager) Changed(uids []types.UID) {
	for _, uid := range uids {
		select {
		case m.stale <- uid:
		default:
			return
		}
	}
}

// Update tells of a newer version of a pod: what its volumes show of the pod itself follows. A pod that is not mounted
// is not remembered. It never blocks.
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

// Run keeps the content of mounted volumes fresh (changed objects, tokens near their end) until ctx is done. Pods do
// not wait for each other, so that one whose objects cannot be had holds up no other.
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

// refreshes refreshes a pod until nothing more is due, then lets go of its turn. Its volumes are measured until run
// ends.
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

// refresh mounts a pod again as it was last mounted, and returns that; nil if it is no more.
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

// Cleanup removes the directories of pods that are gone, with every mount beneath them: what a kubelet that was killed
// or a pod deleted meanwhile left behind. whenGone is asked for each directory at the moment of its removal: it does f
// if the pod is gone, and keeps it from coming back until f is done. Cleanup goes on after an error and returns them
// all.
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
