package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

func validateTopologySpread(cs []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]int{}
	for i := range cs {
		seen[spreadKey(&cs[i])]++
	}
	for i := range cs {
		c, at := &cs[i], path.Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "must be greater than zero"))
		}
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(at.Child("topologyKey"), "can not be empty"))
		}
		if w := c.WhenUnsatisfiable; w != corev1.DoNotSchedule && w != corev1.ScheduleAnyway {
			errs = append(errs, field.NotSupported(at.Child("whenUnsatisfiable"), w,
				[]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}))
		}
		key := spreadKey(c)
		if seen[key]--; seen[key] > 0 {
			errs = append(errs, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), key))
		}
		if m := c.MinDomains; m != nil {
			if *m <= 0 {
				errs = append(errs, field.Invalid(at.Child("minDomains"), *m, "must be greater than zero"))
			}
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				errs = append(errs, field.Invalid(at.Child("minDomains"), *m,
					fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule,
						c.WhenUnsatisfiable)))
			}
		}
		for name, p := range map[string]*corev1.NodeInclusionPolicy{"nodeAffinityPolicy": c.NodeAffinityPolicy,
			"nodeTaintsPolicy": c.NodeTaintsPolicy} {
			if p != nil {
				errs = append(errs, validate.OneOf(at.Child(name), *p, corev1.NodeInclusionPolicyHonor,
					corev1.NodeInclusionPolicyIgnore)...)
			}
		}
		errs = append(errs, validateMatchKeys(c.MatchLabelKeys, c.LabelSelector, at.Child("matchLabelKeys"))...)
		errs = append(errs, validate.LabelSelector(c.LabelSelector, at.Child("labelSelector"))...)
	}
	return errs
}

// spreadKey is what must not be the same in two constraints of a pod.
func spreadKey(c *corev1.TopologySpreadConstraint) string {
	return fmt.Sprintf("{%s, %s}", c.TopologyKey, c.WhenUnsatisfiable)
}
