package apiextensions

import v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// Condition returns the condition of a type, nil if there is none.
func Condition(crd *v1.CustomResourceDefinition,
	t v1.CustomResourceDefinitionConditionType) *v1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		if c := &crd.Status.Conditions[i]; c.Type == t {
			return c
		}
	}
	return nil
}

// SetCondition replaces the condition of c's type, or adds c at the end. The transition time stays as long as the
// status does (API conventions).
func SetCondition(crd *v1.CustomResourceDefinition, c v1.CustomResourceDefinitionCondition) {
	was := Condition(crd, c.Type)
	if was == nil {
		crd.Status.Conditions = append(crd.Status.Conditions, c)
		return
	}
	if was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	*was = c
}

// IsTrue reports whether the condition of a type is there and true.
func IsTrue(crd *v1.CustomResourceDefinition, t v1.CustomResourceDefinitionConditionType) bool {
	c := Condition(crd, t)
	return c != nil && c.Status == v1.ConditionTrue
}
