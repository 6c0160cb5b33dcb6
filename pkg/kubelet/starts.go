package kubelet

import (
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
)

// starts is what is remembered of the starts of one container: why it waits, and until when.
type starts struct {
	// hash is what the container is made of. A corrected container begins with a clean sheet.
	hash    string
	backOff lifecycle.BackOff
	// reason is why it does not run, its zero value if there is none.
	reason lifecycle.Reason
	// retry is when a container that could not be started is to be tried again, zero: now.
	retry time.Time
	// secrets is images.Fingerprint of the pull secrets that the wait for an image is about, "" if it does not wait for one.
	secrets string
}

// starts returns what is remembered of a container as its spec is now.
func (st *podState) starts(c *corev1.Container) *starts {
	hash := lifecycle.Hash(c)
	s := st.byName[c.Name]
	if s == nil || s.hash != hash {
		s = &starts{hash: hash}
		st.byName[c.Name] = s
	}
	return s
}

// containers are the containers of a pod's spec, of all kinds.
func containers(pod *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		for i := range pod.Spec.EphemeralContainers {
			if !yield((*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// reasons are the reasons why containers wait, by name.
func (st *podState) reasons(pod *corev1.Pod) map[string]lifecycle.Reason {
	out := map[string]lifecycle.Reason{}
	for c := range containers(pod) {
		if r := st.starts(c).reason; r != (lifecycle.Reason{}) {
			out[c.Name] = r
		}
	}
	return out
}
