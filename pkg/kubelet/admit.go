package kubelet

import (
	"context"
	goruntime "runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/sysctl"
)

func (k *Kubelet) composeAdmission() {
	k.admission = admission.New(admission.Config{Node: k.node.Object, Allocatable: k.node.Allocatable, Wake: k.workers.Wake,
		Preempted: func(uid types.UID, lacked corev1.ResourceName) {
			k.metrics.preempted(lacked)
			k.workers.Interrupt(uid)
		},
		Refuse: func(pod *corev1.Pod) *admission.Rejection { return unsupported(pod, k.cfg.Sysctls) }})
}

// openAdmission lets pods of the API server be decided on once all are known that could be before them, and the Node's labels.
func (k *Kubelet) openAdmission(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.node.Registered():
	}
	if cache.WaitForCacheSync(ctx.Done(), k.Synced) {
		k.admission.Open()
	}
	return nil
}

// admit asks whether the node takes, and keeps, a pod; why it does not is kept.
func (k *Kubelet) admit(pod *corev1.Pod, st *podState) admission.Verdict {
	if st.rejected != nil {
		return admission.Rejected
	}
	verdict, why := k.admission.Admit(pod)
	switch verdict {
	case admission.Preempted:
		st.disruption = "Pod was preempted by Kubelet to accommodate a critical pod."
		fallthrough
	case admission.Rejected:
		st.rejected = why
		k.events.Pod(pod, corev1.EventTypeWarning, why.Reason, why.Message)
	}
	if verdict == admission.Admitted && !st.admitted {
		st.admitted = true
		if err := k.cgroups.UpdateQoS(k.active()); err != nil {
			k.log.Warn("cgroups of the service classes not updated", "err", err)
		}
	}
	return verdict
}

// unsupported tells what of a pod this node never does, whatever room it has; nil if there is nothing. It is pure.
func unsupported(pod *corev1.Pod, sysctls *sysctl.Allowed) *admission.Rejection {
	if os := pod.Spec.OS; os != nil && string(os.Name) != goruntime.GOOS {
		return &admission.Rejection{Reason: "PodOSNotSupported", Message: "Failed to admit pod as the OS field doesn't match node OS"}
	}
	if err := sysctls.Check(pod); err != nil {
		return &admission.Rejection{Reason: "SysctlForbidden", Message: "forbidden sysctl: " + err.Error()}
	}
	return nil
}
