package syncloop

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Listed looks at a list of the runtime for pods that no source knows: they are ended. Until all sources have spoken,
// no pod counts as unknown, and until the manifests could be read no static one. No source speaks meanwhile, so that a
// pod that comes just now is not taken for an orphan. The first list, before any source speaks, has the pods of the
// kubelet's life before. Lists come one after the other.
func (l *Loop) Listed(pods []*runtime.PodStatus) {
	select {
	case <-l.listed:
	default:
		for _, p := range pods {
			if len(p.Sandboxes) > 0 {
				l.cfg.Admission.Ran(p.UID)
			}
			if pod := remains(p); runtime.IsStatic(pod) {
				l.left[p.UID] = pod
			}
		}
		close(l.listed)
	}
	if !l.Spoken() {
		return
	}
	synced := l.Synced()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range pods {
		if l.cfg.Workers.Known(p.UID) || l.cfg.Pods.Known(p.UID) || p.Name == "" {
			continue
		}
		pod := remains(p)
		if runtime.IsStatic(pod) && !synced {
			continue
		}
		l.cfg.Log.Info("a pod in the container runtime is known to no source, it is ended", "pod",
			p.Namespace+"/"+p.Name, "uid", p.UID)
		if l.cfg.Orphaned != nil {
			l.cfg.Orphaned()
		}
		l.cfg.Workers.Remove(pod)
	}
}

// remains returns a pod that only the runtime knows, as far as it can be reconstructed.
func remains(p *runtime.PodStatus) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID,
		Annotations: p.Annotations},
		Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(1))}}
}
