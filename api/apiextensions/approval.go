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

// isProtected reports whether a group is Kubernetes' own, in which APIs need an approval.
func isProtected(group string) bool {
	return group == "k8s.io" || strings.HasSuffix(group, ".k8s.io") || group == "kubernetes.io" ||
		strings.HasSuffix(group, ".kubernetes.io")
}

// APIApproval is the condition KubernetesAPIApprovalPolicyConformant; an empty status for none.
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

// NonStructural is the message of the condition NonStructuralSchema; "" for a structural schema.
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
