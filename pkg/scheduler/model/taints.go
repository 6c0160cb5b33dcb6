package model

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Tolerated reports whether one of the pod's tolerations covers the taint.
func Tolerated(pod *corev1.Pod, taint *corev1.Taint) bool {
	for i := range pod.Spec.Tolerations {
		if pod.Spec.Tolerations[i].ToleratesTaint(klog.Logger{}, taint, true) {
			return true
		}
	}
	return false
}

// Untolerated returns the first taint that keeps the pod off the node (NoSchedule or NoExecute), nil if there is none.
func Untolerated(pod *corev1.Pod, node *corev1.Node) *corev1.Taint {
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) && !Tolerated(pod, t) {
			return t
		}
	}
	return nil
}
