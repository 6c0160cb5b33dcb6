package policies

import (
	"cmp"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
)

// codeOf is the HTTP code that goes with a reason.
func codeOf(reason metav1.StatusReason) int32 {
	switch reason {
	case metav1.StatusReasonForbidden:
		return http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		return http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusUnprocessableEntity
}

// forbidden is a 403 that names the object.
func forbidden(a *admission.Attributes, message string) *apierrors.StatusError {
	return apierrors.NewForbidden(cmp.Or(a.RequestResource, a.Resource).GroupResource(), shownName(a),
		fmt.Errorf("%s", message))
}

// shownName is the object's name in errors.
func shownName(a *admission.Attributes) string {
	name := nameOf(a)
	if m, err := meta.Accessor(a.Object); name == "" && a.Object != nil && err == nil {
		name = cmp.Or(m.GetName(), m.GetGenerateName())
	}
	return cmp.Or(name, "Unknown")
}

// nameOf is the name that the request has, which is none if it is about a collection.
func nameOf(a *admission.Attributes) string {
	if a.Collection {
		return ""
	}
	return a.Name
}
