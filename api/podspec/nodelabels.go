package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OldLabel says what has taken the place of a label of nodes: `deprecated since v1.14; use "kubernetes.io/os" instead`;
// "" for a label that is none of the old ones.
func OldLabel(key string) string {
	for _, l := range oldLabels() {
		if l[0] == key {
			return fmt.Sprintf("deprecated since %s; use %q instead", l[1], l[2])
		}
	}
	return ""
}

// oldLabels are old label, version, and new label.
func oldLabels() [][3]string {
	return [][3]string{
		{corev1.LabelFailureDomainBetaZone, "v1.17", corev1.LabelTopologyZone},
		{corev1.LabelFailureDomainBetaRegion, "v1.17", corev1.LabelTopologyRegion},
		{corev1.LabelInstanceType, "v1.17", corev1.LabelInstanceTypeStable},
		{"beta.kubernetes.io/arch", "v1.14", corev1.LabelArchStable},
		{"beta.kubernetes.io/os", "v1.14", corev1.LabelOSStable},
	}
}

// keyWarnings tells of an old label at path, which is a key.
func keyWarnings(key string, path *field.Path) []string {
	if old := OldLabel(key); old != "" {
		return []string{fmt.Sprintf("%s: %s is %s", path, key, old)}
	}
	return nil
}

// SelectorWarnings tells of old labels that nodes are selected by.
func SelectorWarnings(s *corev1.NodeSelector, path *field.Path) []string {
	if s == nil {
		return nil
	}
	var w []string
	for i := range s.NodeSelectorTerms {
		w = append(w, termWarnings(&s.NodeSelectorTerms[i], path.Child("nodeSelectorTerms").Index(i))...)
	}
	return w
}

func termWarnings(t *corev1.NodeSelectorTerm, path *field.Path) []string {
	var w []string
	for i, r := range t.MatchExpressions {
		w = append(w, keyWarnings(r.Key, path.Child("matchExpressions").Index(i).Child("key"))...)
	}
	return w
}

// nodeWarnings tells of old labels of the nodes that a pod wants.
func nodeWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	for _, l := range oldLabels() {
		if _, ok := s.NodeSelector[l[0]]; ok {
			w = append(w, fmt.Sprintf("%s: %s", path.Child("nodeSelector").Key(l[0]), OldLabel(l[0])))
		}
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return w
	}
	a, at := s.Affinity.NodeAffinity, path.Child("affinity", "nodeAffinity")
	w = append(w, SelectorWarnings(a.RequiredDuringSchedulingIgnoredDuringExecution, at.Child(requiredTerms))...)
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		w = append(w, termWarnings(&a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference,
			at.Child(preferredTerms).Index(i).Child("preference"))...)
	}
	return w
}
