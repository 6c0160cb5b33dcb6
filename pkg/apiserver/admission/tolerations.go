package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MergeTolerations returns the tolerations of a pod and more, without those that another one covers. Of two that mean
// the same the later stays. Without more, those of the pod stay as they are.
func MergeTolerations(pod, more []corev1.Toleration) []corev1.Toleration {
	if len(more) == 0 {
		return pod
	}
	all := slices.Concat(pod, more)
	var out []corev1.Toleration
	for i, t := range all {
		covered := func(by corev1.Toleration) bool { return Covers(by, t) }
		if !slices.ContainsFunc(out, covered) && !slices.ContainsFunc(all[i+1:], covered) {
			out = append(out, t)
		}
	}
	return out
}

// Covers reports whether t tolerates every taint that other does, for as long.
func Covers(t, other corev1.Toleration) bool {
	exists := t.Operator == corev1.TolerationOpExists
	switch {
	case t.Key != other.Key && (t.Key != "" || !exists):
		return false
	case t.Effect != "" && t.Effect != other.Effect:
		return false
	case t.TolerationSeconds != nil &&
		(other.TolerationSeconds == nil || *other.TolerationSeconds > *t.TolerationSeconds):
		return false
	}
	return exists || other.Operator != corev1.TolerationOpExists && t.Value == other.Value
}
