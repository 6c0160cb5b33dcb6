package cpu

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Runtime is the container runtime.
type Runtime interface {
	PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error)
	// SetCPUs lets a running container run on these CPUs.
	SetCPUs(ctx context.Context, id, cpus string) error
}

// Run keeps running containers on the CPUs that they should have, until ctx ends: at once after a change of what is
// given, and in periods, for containers that have started since. Without it, containers on the shared CPUs would keep
// running on those that Allocate has just given to another one alone.
func (m *Manager) Run(ctx context.Context) error {
	if m.cfg.Policy != Static {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(m.cfg.Period)
	defer tick.Stop()
	has := map[string]string{}
	for {
		has = m.reconcile(ctx, has)
		select {
		case <-ctx.Done():
			return nil
		case <-m.changed:
		case <-tick.C:
		}
	}
}

// reconcile gives running containers their CPUs if has, by container id, shows other ones; it returns what they have
// then. has saves a call to the runtime for each container and period. It starts empty, so after a restart of the
// kubelet each container is set once. A container whose update failed is missing in the result, and the next round
// tries it again.
func (m *Manager) reconcile(ctx context.Context, has map[string]string) map[string]string {
	now := map[string]string{}
	for _, pod := range m.cfg.Pods() {
		rt, err := m.cfg.Runtime.PodStatus(ctx, pod.UID)
		if err != nil {
			m.note(ctx, pod, err)
			continue
		}
		for i := range rt.Containers {
			c := &rt.Containers[i]
			if c.State != runtime.StateRunning {
				continue
			}
			want := m.cpus(pod.UID, c.Name)
			if has[c.ID.ID] != want {
				if err := m.cfg.Runtime.SetCPUs(ctx, c.ID.ID, want); err != nil {
					m.note(ctx, pod, err)
					continue
				}
			}
			now[c.ID.ID] = want
		}
	}
	return now
}

func (m *Manager) note(ctx context.Context, pod *corev1.Pod, err error) {
	if ctx.Err() == nil {
		m.cfg.Log.Warn("containers keep the CPUs they have for now", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	}
}
