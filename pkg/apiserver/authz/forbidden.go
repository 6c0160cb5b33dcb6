package authz

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ForbiddenMessage says that a is not allowed, in Kubernetes' words: `User "x" cannot list resource "pods" in API group
// "" in the namespace "default"`, with the authorizers' reason, if there is one, behind a colon. The client gets the
// text with the reason.
func ForbiddenMessage(a Attributes, reason string) string {
	name := ""
	if a.User != nil {
		name = a.User.Name
	}
	var msg string
	switch {
	case !a.IsResource:
		msg = fmt.Sprintf("User %q cannot %s path %q", name, a.Verb, a.Path)
	default:
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		msg = fmt.Sprintf("User %q cannot %s resource %q in API group %q", name, a.Verb, resource, a.APIGroup)
		if a.Namespace != "" {
			msg += fmt.Sprintf(" in the namespace %q", a.Namespace)
		} else {
			msg += " at the cluster scope"
		}
	}
	if reason != "" {
		msg += ": " + reason
	}
	return msg
}

// Forbidden returns the 403 Status for a: `pods "web" is forbidden: User …`, or `forbidden: User …` for a path.
func Forbidden(a Attributes, reason string) *apierrors.StatusError {
	gr := schema.GroupResource{Group: a.APIGroup, Resource: a.Resource}
	if !a.IsResource {
		gr = schema.GroupResource{}
	}
	return apierrors.NewForbidden(gr, a.Name, errors.New(ForbiddenMessage(a, reason)))
}
