package apiextensions

import (
	"fmt"
	"net/url"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/apiextensions/structural"
)

const approvalHelp = "https://github.com/kubernetes/enhancements/pull/1111"

// isProtected reports whether a group is one of Kubernetes' own, *.k8s.io or *.kubernetes.io. APIs in these need an
// approval by the project (approvalHelp), so that nobody takes the name of a future API.
func isProtected(group string) bool {
	return group == "k8s.io" || strings.HasSuffix(group, ".k8s.io") || group == "kubernetes.io" ||
		strings.HasSuffix(group, ".kubernetes.io")
}

// APIApproval returns the condition KubernetesAPIApprovalPolicyConformant, and an empty status for groups that need no
// approval. An annotation that begins with "unapproved" admits itself: the definition is accepted and the condition is
// false.
func APIApproval(crd *definition) (status apiextensionsv1.ConditionStatus, reason, message string) {
	if !isProtected(crd.Spec.Group) {
		return "", "", ""
	}
	annotation := apiextensionsv1.KubeAPIApprovedAnnotation
	value := crd.Annotations[annotation]
	switch u, err := url.ParseRequestURI(value); {
	case value == "":
		return apiextensionsv1.ConditionFalse, "MissingAnnotation",
			fmt.Sprintf("protected groups must have approval annotation %q, see %s", annotation, approvalHelp)
	case strings.HasPrefix(value, "unapproved"):
		return apiextensionsv1.ConditionFalse, "UnapprovedAnnotation", fmt.Sprintf("not approved: %q", value)
	case err == nil && u.Host != "" && u.Scheme != "":
		return apiextensionsv1.ConditionTrue, "ApprovedAnnotation", fmt.Sprintf("approved in %v", value)
	}
	return apiextensionsv1.ConditionFalse, "InvalidAnnotation",
		fmt.Sprintf("protected groups must have approval annotation %q with either a URL or a reason starting with \"unapproved\", see %s", annotation, approvalHelp)
}

// An API without any annotation is refused at creation, and existing ones are left alone (validateUpdate): they may be
// older than the rule.
func validateApproval(crd *definition) field.ErrorList {
	_, reason, message := APIApproval(crd)
	path := field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch reason {
	case "MissingAnnotation":
		return field.ErrorList{field.Required(path, message)}
	case "InvalidAnnotation":
		return field.ErrorList{field.Invalid(path, crd.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], message)}
	}
	return nil
}

// NonStructural returns the message of the condition NonStructuralSchema, "" if all schemas are structural. Definitions
// from the time of v1beta1 may have schemas that v1 refuses; they stay served, with this condition.
func NonStructural(crd *definition) string {
	var messages []string
	for v, at := range schemaPart.places(crd) {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		for _, err := range structural.CheckStructural(v.Schema.OpenAPIV3Schema, at) {
			messages = append(messages, err.Error())
		}
	}
	if len(messages) == 0 {
		return ""
	}
	if len(messages) == 1 {
		return messages[0]
	}
	return "[" + strings.Join(messages, ", ") + "]"
}
