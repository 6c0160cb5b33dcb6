package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
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
			if pod := left(p); runtime.IsStatic(pod) {
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
