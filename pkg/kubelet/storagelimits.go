package kubelet

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume/emptydir"
)

const (
	// evictionGrace is what containers of an evicted pod get: they fill the disk meanwhile.
	evictionGrace = time.Second
	reasonEvicted = "Evicted"
)

// newStorage composes what watches the pods' use of the disk. Static pods are not evicted.
func (k *Kubelet) newStorage() (*localstorage.Watcher, error) {
	return localstorage.NewWatcher(localstorage.Config{Runtime: k.cri, Exceeded: k.workers.Wake, Log: k.log,
		Pods:   func() []*corev1.Pod { return slices.DeleteFunc(k.active(), runtime.IsStatic) },
		LogDir: func(pod *corev1.Pod) string { return k.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID) },
		EmptyDir: func(pod *corev1.Pod, volume string) (string, error) {
			dir, err := k.volumes.PodDir(pod.UID)
			return emptydir.Path(dir, volume), err
		}})
}

// evicted ends a pod that uses more storage than it may.
func (k *Kubelet) evicted(f lifecycle.Facts, st *podState) bool {
	why := k.storage.Excess(f.Pod.UID)
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
