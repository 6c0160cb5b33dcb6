package customresource

import (
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/apiextensions"
)

// decide sets the conditions and the accepted names of crd, as far as they follow from itself and from the names that
// the others of its group have. nonStructural is what is wrong with its schemas, serves tells that this server serves
// it already. It changes nothing if all is as it should be.
func decide(crd *v1.CustomResourceDefinition, nonStructural string, others []v1.CustomResourceDefinitionNames,
	serves bool, now metav1.Time) {
	set := func(t v1.CustomResourceDefinitionConditionType, status v1.ConditionStatus, reason, message string) {
		apiextensions.SetCondition(crd,
			v1.CustomResourceDefinitionCondition{Type: t, Status: status, Reason: reason, Message: message,
				LastTransitionTime: now})
	}
	names, why := accept(crd.Spec.Names, crd.Status.AcceptedNames, others)
	crd.Status.AcceptedNames = names
	if why != (conflict{}) {
		set(v1.NamesAccepted, v1.ConditionFalse, why.reason, why.message)
	} else {
		set(v1.NamesAccepted, v1.ConditionTrue, "NoConflicts", "no conflicts found")
	}
	switch {
	case apiextensions.IsTrue(crd, v1.Established): // and stays, whatever names it wants now
	case why != (conflict{}):
		set(v1.Established, v1.ConditionFalse, "NotAccepted", "not all names are accepted")
	case serves:
		set(v1.Established, v1.ConditionTrue, "InitialNamesAccepted", "the initial names have been accepted")
	default:
		set(v1.Established, v1.ConditionFalse, "Installing", "the initial names have been accepted")
	}
	if nonStructural != "" {
		set(v1.NonStructuralSchema, v1.ConditionTrue, "Violations", nonStructural)
	} else {
		drop(crd, v1.NonStructuralSchema)
	}
	if status, reason, message := apiextensions.APIApproval(crd); status != "" {
		set(v1.KubernetesAPIApprovalPolicyConformant, status, reason, message)
	} else {
		drop(crd, v1.KubernetesAPIApprovalPolicyConformant)
	}
}

func drop(crd *v1.CustomResourceDefinition, t v1.CustomResourceDefinitionConditionType) {
	crd.Status.Conditions = slices.DeleteFunc(crd.Status.Conditions, func(c v1.CustomResourceDefinitionCondition) bool {
		return c.Type == t
	})
}

// progress sets why a definition that is being deleted is still there.
func progress(crd *v1.CustomResourceDefinition, reason, message string, now metav1.Time) {
	apiextensions.SetCondition(crd,
		v1.CustomResourceDefinitionCondition{Type: v1.Terminating, Status: v1.ConditionTrue, Reason: reason,
			Message: message, LastTransitionTime: now})
}

// servable reports whether a definition's objects are served, or will be as soon as this server does: its names have
// been accepted.
func servable(crd *v1.CustomResourceDefinition) bool {
	c := apiextensions.Condition(crd, v1.Established)
	return c != nil && (c.Status == v1.ConditionTrue || c.Reason == "Installing")
}
