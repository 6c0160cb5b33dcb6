// Package defaulttolerationseconds is the admission plug-in DefaultTolerationSeconds: a pod that does not say how long
// it bears a node that is not ready or unreachable bears it for a time.
package defaulttolerationseconds

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

// Default is how many seconds pods stay on such a node (--default-not-ready-toleration-seconds and
// --default-unreachable-toleration-seconds).
const Default = 300

type plugin struct{ notReady, unreachable int64 }

// New returns the plug-in; the times are seconds.
func New(notReady, unreachable int64) admission.Plugin {
	return admission.Plugin{Name: "DefaultTolerationSeconds", Mutator: plugin{notReady, unreachable}}
}

// Admit implements admission.Mutator.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	for _, t := range []struct {
		key     string
		seconds int64
	}{{corev1.TaintNodeNotReady, p.notReady}, {corev1.TaintNodeUnreachable, p.unreachable}} {
		if !tolerates(pod.Spec.Tolerations, t.key) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: t.key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
				TolerationSeconds: &t.seconds})
		}
	}
	return nil
}

func tolerates(list []corev1.Toleration, key string) bool {
	for _, t := range list {
		if (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return true
		}
	}
	return false
}
