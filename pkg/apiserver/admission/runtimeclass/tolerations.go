package runtimeclass

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// merged are the pod's tolerations and its class's, without those that another one covers. Of two that mean the same
// the later stays.
func merged(pod, class []corev1.Toleration) []corev1.Toleration {
	all := slices.Concat(pod, class)
	if len(class) == 0 {
		return pod
	}
	var out []corev1.Toleration
	for i, t := range all {
		covered := func(by corev1.Toleration) bool { return covers(by, t) }
		if !slices.ContainsFunc(out, covered) && !slices.ContainsFunc(all[i+1:], covered) {
			out = append(out, t)
		}
	}
	return out
}

// covers reports whether t tolerates every taint that other does, for as long.
func covers(t, other corev1.Toleration) bool {
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

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
