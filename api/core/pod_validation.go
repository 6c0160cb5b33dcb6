package core

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/equal"
	"bonsai/api/podspec"
)

// validatePod checks a pod after defaulting, except for the metadata common to all kinds.
func validatePod(p *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := podspec.ValidateAnnotations(p.Annotations, &p.Spec, field.NewPath("metadata", "annotations"))
	errs = append(errs, podspec.ValidateAppArmorMatch(p.Annotations, &p.Spec, path)...)
	errs = append(errs, podspec.Validate(&p.Spec, path)...)
	errs = append(errs, validateTokens(&p.Spec, path)...)
	return append(errs, validateGates(p, path)...)
}

// validateTokens: a pod without a service account has no token to project.
func validateTokens(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if s.ServiceAccountName != "" {
		return nil
	}
	var errs field.ErrorList
	for i := range s.Volumes {
		if s.Volumes[i].Projected == nil {
			continue
		}
		for j, src := range s.Volumes[i].Projected.Sources {
			if src.ServiceAccountToken != nil {
				errs = append(errs, field.Forbidden(
					path.Child("volumes").Index(i).Child("projected", "sources").Index(j).Child("serviceAccountToken"),
					"must not be specified when serviceAccountName is not set"))
			}
		}
	}
	return errs
}

// validatePodCreate checks a new pod; ephemeral containers come later.
func validatePodCreate(p *corev1.Pod) field.ErrorList {
	var errs field.ErrorList
	if v, ok := p.Annotations[corev1.MirrorPodAnnotationKey]; ok && p.Spec.NodeName == "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(corev1.MirrorPodAnnotationKey),
			v, "must set spec.nodeName if mirror pod annotation is set"))
	}
	errs = append(errs, validatePod(p)...)
	if len(p.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "ephemeralContainers"), "cannot be set on create"))
	}
	return errs
}

// validateGates: a pod that waits at scheduling gates cannot have a node yet.
func validateGates(p *corev1.Pod, path *field.Path) field.ErrorList {
	if p.Spec.NodeName != "" && len(p.Spec.SchedulingGates) > 0 {
		return field.ErrorList{field.Forbidden(path.Child("nodeName"),
			"cannot be set until all schedulingGates have been cleared")}
	}
	return nil
}

// immutableMessage is how the API says what of a pod can be changed.
const immutableMessage = "pod updates may not change fields other than %s\n%v"

// mutableFields names the fields of a pod's spec that can be changed.
const mutableFields = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// validatePodUpdate checks a changed pod: of its spec only images, the active deadline, added tolerations, a negative
// grace period and removed scheduling gates (with a narrower node selection) may change.
func validatePodUpdate(obj, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	errs := append(validatePod(obj), validateMirrorUpdate(obj, old)...)
	errs = append(errs, podspec.ValidateAppArmorUpdate(obj.Annotations, old.Annotations,
		field.NewPath("metadata", "annotations"))...)
	if len(obj.Spec.Containers) != len(old.Spec.Containers) {
		return append(errs, field.Forbidden(path.Child("containers"), "pod updates may not add or remove containers"))
	}
	if len(obj.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return append(errs, field.Forbidden(path.Child("initContainers"),
			"pod updates may not add or remove containers"))
	}
	errs = append(errs, validateDeadlineUpdate(obj.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds,
		path.Child("activeDeadlineSeconds"))...)
	errs = append(errs, validateAddedTolerations(obj.Spec.Tolerations, old.Spec.Tolerations,
		path.Child("tolerations"))...)
	errs = append(errs, validateGatesUpdate(obj, old, path.Child("schedulingGates"))...)

	masked := maskMutable(obj, old)
	gated := len(old.Spec.SchedulingGates) > 0
	if gated {
		errs = append(errs, validateGatedSelection(obj, old, path)...)
		masked.NodeSelector, masked.Affinity = old.Spec.NodeSelector, old.Spec.Affinity
	}
	if !equal.Semantic(masked, &old.Spec) {
		errs = append(errs, field.Forbidden(path,
			fmt.Sprintf(immutableMessage, mutableFields, diff.Diff(old.Spec, *masked))))
	}
	return errs
}

// validateMirrorUpdate: a pod is a mirror of a static pod all its life, or never. What its node may read depends on it.
func validateMirrorUpdate(obj, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("metadata", "annotations").Key(corev1.MirrorPodAnnotationKey)
	now, is := obj.Annotations[corev1.MirrorPodAnnotationKey]
	before, was := old.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case was && (!is || now != before):
		return field.ErrorList{field.Forbidden(path, "may not remove or update mirror pod annotation")}
	case is && !was:
		return field.ErrorList{field.Forbidden(path, "may not add mirror pod annotation")}
	}
	return nil
}

// maskMutable returns obj's spec with the fields that may change taken from old, so that what still differs is
// forbidden.
func maskMutable(obj, old *corev1.Pod) *corev1.PodSpec {
	s := obj.Spec.DeepCopy()
	for i := range s.Containers {
		s.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range s.InitContainers {
		s.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	s.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
	s.Tolerations = old.Spec.Tolerations
	s.SchedulingGates = old.Spec.SchedulingGates
	was, is := old.Spec.TerminationGracePeriodSeconds, s.TerminationGracePeriodSeconds
	if was != nil && *was < 0 && is != nil && *is == 1 {
		s.TerminationGracePeriodSeconds = was
	}
	return s
}

func validateDeadlineUpdate(now, was *int64, path *field.Path) field.ErrorList {
	switch {
	case now != nil && (*now < 0 || *now > 1<<31-1):
		return field.ErrorList{field.Invalid(path, *now, "must be between 0 and 2147483647, inclusive")}
	case now != nil && was != nil && *was < *now:
		return field.ErrorList{field.Invalid(path, *now, "must be less than or equal to previous value")}
	case now == nil && was != nil:
		return field.ErrorList{field.Invalid(path, now, "must not update from a positive integer to nil value")}
	}
	return nil
}

// validateAddedTolerations: old tolerations stay; only how long one tolerates may change.
func validateAddedTolerations(now, was []corev1.Toleration, path *field.Path) field.ErrorList {
	for _, old := range was {
		old.TolerationSeconds = nil
		kept := slices.ContainsFunc(now, func(t corev1.Toleration) bool {
			t.TolerationSeconds = nil
			return t == old
		})
		if !kept {
			return field.ErrorList{field.Forbidden(path,
				"existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return podspec.ValidateTolerations(now, path)
}

// validateGatesUpdate: gates can be removed, never added.
func validateGatesUpdate(obj, old *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	had := sets.New[string]()
	for _, g := range old.Spec.SchedulingGates {
		had.Insert(g.Name)
	}
	for i, g := range obj.Spec.SchedulingGates {
		if !had.Has(g.Name) {
			errs = append(errs, field.Forbidden(path.Index(i).Child("name"),
				"only deletion is allowed, but found new scheduling gate '"+g.Name+"'"))
		}
	}
	return errs
}

// validateGatedSelection: a gated pod's choice of nodes may only become narrower.
func validateGatedSelection(obj, old *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for k, v := range old.Spec.NodeSelector {
		if obj.Spec.NodeSelector[k] != v {
			errs = append(errs, field.Invalid(path.Child("nodeSelector"), obj.Spec.NodeSelector,
				"only additions to spec.nodeSelector are allowed (no mutations or deletions)"))
			break
		}
	}
	now, was := requiredNodes(obj), requiredNodes(old)
	at := path.Child("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
	switch {
	case was == nil:
	case now == nil, len(now.NodeSelectorTerms) != len(was.NodeSelectorTerms):
		errs = append(errs, field.Invalid(at.Child("nodeSelectorTerms"), now,
			"no additions/deletions to non-empty NodeSelectorTerms list are allowed"))
	default:
		for i := range was.NodeSelectorTerms {
			if !narrower(&now.NodeSelectorTerms[i], &was.NodeSelectorTerms[i]) {
				errs = append(errs, field.Invalid(at.Child("nodeSelectorTerms").Index(i), now.NodeSelectorTerms[i],
					"only additions are allowed (no mutations or deletions)"))
			}
		}
	}
	return append(errs, gatedPodAffinity(obj, old, path.Child("affinity"))...)
}

func gatedPodAffinity(obj, old *corev1.Pod, path *field.Path) field.ErrorList {
	pods := func(p *corev1.Pod) corev1.Affinity {
		if p.Spec.Affinity == nil {
			return corev1.Affinity{}
		}
		return corev1.Affinity{PodAffinity: p.Spec.Affinity.PodAffinity,
			PodAntiAffinity: p.Spec.Affinity.PodAntiAffinity}
	}
	if !apiequality.Semantic.DeepEqual(pods(obj), pods(old)) {
		return field.ErrorList{field.Invalid(path, obj.Spec.Affinity, "field is immutable")}
	}
	return nil
}

func requiredNodes(p *corev1.Pod) *corev1.NodeSelector {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// narrower reports whether now has all requirements of was, at the same places.
func narrower(now, was *corev1.NodeSelectorTerm) bool {
	prefix := func(now, was []corev1.NodeSelectorRequirement) bool {
		return len(now) >= len(was) && (len(was) == 0 || apiequality.Semantic.DeepEqual(now[:len(was)], was))
	}
	return prefix(now.MatchExpressions, was.MatchExpressions) && prefix(now.MatchFields, was.MatchFields)
}

// validatePodEphemeralUpdate checks a change of the ephemeral containers: they can be added, not changed or removed.
func validatePodEphemeralUpdate(obj, old *corev1.Pod) field.ErrorList {
	if _, mirror := old.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	path := field.NewPath("spec", "ephemeralContainers")
	errs := validatePod(obj)
	now := map[string]*corev1.EphemeralContainer{}
	for i := range obj.Spec.EphemeralContainers {
		now[obj.Spec.EphemeralContainers[i].Name] = &obj.Spec.EphemeralContainers[i]
	}
	for i := range old.Spec.EphemeralContainers {
		was := &old.Spec.EphemeralContainers[i]
		c, ok := now[was.Name]
		switch {
		case !ok:
			errs = append(errs, field.Forbidden(path,
				fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name)))
		case !apiequality.Semantic.DeepEqual(*c, *was):
			errs = append(errs, field.Forbidden(path,
				fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", was.Name, diff.Diff(*was, *c))))
		}
	}
	return errs
}
