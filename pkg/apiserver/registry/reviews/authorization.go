package reviews

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// SubjectAccessReview answers POST …/subjectaccessreviews and, in a namespace, …/localsubjectaccessreviews.
type SubjectAccessReview struct {
	auth  authz.Authorizer
	local bool
}

// SelfSubjectAccessReview answers POST …/selfsubjectaccessreviews (kubectl auth can-i).
type SelfSubjectAccessReview struct{ auth authz.Authorizer }

var (
	_ registry.Creater = (*SubjectAccessReview)(nil)
	_ registry.Creater = (*SelfSubjectAccessReview)(nil)
)

// NewSubjectAccessReview returns the cluster-wide review.
func NewSubjectAccessReview(a authz.Authorizer) *SubjectAccessReview {
	return &SubjectAccessReview{auth: a}
}

// NewLocalSubjectAccessReview returns the review that is limited to the namespace it is posted in.
func NewLocalSubjectAccessReview(a authz.Authorizer) *SubjectAccessReview {
	return &SubjectAccessReview{auth: a, local: true}
}

// NewSelfSubjectAccessReview returns the review of the caller's own rights.
func NewSelfSubjectAccessReview(a authz.Authorizer) *SelfSubjectAccessReview {
	return &SelfSubjectAccessReview{auth: a}
}

// New returns an empty review of the kind.
func (r *SubjectAccessReview) New() runtime.Object {
	if r.local {
		return &authorizationv1.LocalSubjectAccessReview{}
	}
	return &authorizationv1.SubjectAccessReview{}
}

// Create answers in the status.
func (r *SubjectAccessReview) Create(ctx context.Context, ns, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	switch in := obj.(type) {
	case *authorizationv1.SubjectAccessReview:
		if errs := append(validateSpec(&in.Spec), validateMetadata(in.ObjectMeta, "must be empty")...); len(errs) > 0 {
			return nil, invalid(errs)
		}
		out := in.DeepCopy()
		out.Status = ask(ctx, r.auth, &in.Spec)
		return out, nil
	case *authorizationv1.LocalSubjectAccessReview:
		errs := validateSpec(&in.Spec)
		bare := in.ObjectMeta
		bare.Namespace = ""
		if len(validateMetadata(bare, "")) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("metadata"), in.ObjectMeta,
				"must be empty except for namespace"))
		}
		spec := field.NewPath("spec")
		if a := in.Spec.ResourceAttributes; a != nil && a.Namespace != ns {
			errs = append(errs, field.Invalid(spec.Child("resourceAttributes.namespace"), a.Namespace,
				"must match metadata.namespace"))
		}
		if in.Spec.NonResourceAttributes != nil {
			errs = append(errs, field.Invalid(spec.Child("nonResourceAttributes"), in.Spec.NonResourceAttributes,
				"disallowed on this kind of request"))
		}
		if len(errs) > 0 {
			return nil, invalid(errs)
		}
		out := in.DeepCopy()
		out.Status = ask(ctx, r.auth, &in.Spec)
		return out, nil
	}
	return nil, wrongType("SubjectAccessReview", obj)
}

// New returns an empty SelfSubjectAccessReview.
func (r *SelfSubjectAccessReview) New() runtime.Object {
	return &authorizationv1.SelfSubjectAccessReview{}
}

// Create answers in the status, for the user of ctx.
func (r *SelfSubjectAccessReview) Create(ctx context.Context, _, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*authorizationv1.SelfSubjectAccessReview)
	if !ok {
		return nil, wrongType("SelfSubjectAccessReview", obj)
	}
	user := request.UserFrom(ctx)
	if user == nil {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	spec := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: in.Spec.ResourceAttributes, NonResourceAttributes: in.Spec.NonResourceAttributes,
		User: user.Name, UID: user.UID, Groups: user.Groups,
	}
	errs := append(validateAttributes(&spec), validateSelectors(spec.ResourceAttributes)...)
	if errs = append(errs, validateMetadata(in.ObjectMeta, "must be empty")...); len(errs) > 0 {
		return nil, invalid(errs)
	}
	out := in.DeepCopy()
	out.Status = decide(ctx, r.auth, user, &spec)
	return out, nil
}

// invalid names no kind, as upstream does for all reviews.
func invalid(errs field.ErrorList) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
}

func validateSpec(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateAttributes(s)
	if s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec").Child("user"), s.User,
			"at least one of user or group must be specified"))
	}
	return append(errs, validateSelectors(s.ResourceAttributes)...)
}

func validateAttributes(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	if (s.ResourceAttributes == nil) != (s.NonResourceAttributes == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), s.NonResourceAttributes,
		"exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

// validateMetadata: a review is not an object that could have a name or labels.
func validateMetadata(m metav1.ObjectMeta, message string) field.ErrorList {
	m.ManagedFields = nil
	if equality.Semantic.DeepEqual(m, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), m, message)}
}

// validateSelectors checks what the list or watch asked about would be limited to: in one form or the other.
// Requirements that nobody knows are no error, they only limit nothing.
func validateSelectors(a *authorizationv1.ResourceAttributes) field.ErrorList {
	if a == nil {
		return nil
	}
	path := field.NewPath("spec", "resourceAttributes")
	var errs field.ErrorList
	if s := a.FieldSelector; s != nil {
		errs = append(errs, validateSelector(s.RawSelector, len(s.Requirements), path.Child("fieldSelector"))...)
	}
	if s := a.LabelSelector; s != nil {
		errs = append(errs, validateSelector(s.RawSelector, len(s.Requirements), path.Child("labelSelector"))...)
	}
	return errs
}

func validateSelector(raw string, requirements int, path *field.Path) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(path.Child("rawSelector"), raw,
			"may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(path.Child("requirements"),
			fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path))}
	}
	return nil
}

// ask decides for the user that the spec names.
func ask(ctx context.Context, a authz.Authorizer,
	s *authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	user := &request.User{Name: s.User, UID: s.UID, Groups: s.Groups}
	for k, v := range s.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[k] = v
	}
	return decide(ctx, a, user, s)
}

func decide(ctx context.Context, a authz.Authorizer, user *request.User,
	s *authorizationv1.SubjectAccessReviewSpec) authorizationv1.SubjectAccessReviewStatus {
	d, reason, err := a.Authorize(ctx, authz.Attributes{User: user, Info: infoOf(s)})
	st := authorizationv1.SubjectAccessReviewStatus{Allowed: d == authz.Allow, Denied: d == authz.Deny, Reason: reason}
	if err != nil {
		st.EvaluationError = err.Error()
	}
	return st
}

func infoOf(s *authorizationv1.SubjectAccessReviewSpec) request.Info {
	if n := s.NonResourceAttributes; n != nil {
		return request.Info{Path: n.Path, Verb: n.Verb}
	}
	a := s.ResourceAttributes
	version := a.Version
	if version == "" {
		version = "*"
	}
	return request.Info{
		IsResource: true, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.Group, APIVersion: version,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name, FieldSelector: selectorOf(a.FieldSelector),
		LabelSelector: labelsOf(a.LabelSelector),
	}
}

// labelsOf is the label selector that a request would have. A requirement that no label selector can say limits
// nothing.
func labelsOf(a *authorizationv1.LabelSelectorAttributes) string {
	switch {
	case a == nil:
		return ""
	case a.RawSelector != "":
		return a.RawSelector
	}
	var all labels.Requirements
	for _, r := range a.Requirements {
		operator := map[metav1.LabelSelectorOperator]selection.Operator{metav1.LabelSelectorOpIn: selection.In,
			metav1.LabelSelectorOpNotIn: selection.NotIn, metav1.LabelSelectorOpExists: selection.Exists,
			metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist}[r.Operator]
		if one, err := labels.NewRequirement(r.Key, operator, r.Values); err == nil {
			all = append(all, *one)
		}
	}
	return labels.NewSelector().Add(all...).String()
}

// selectorOf is the field selector that a request would have. What a field selector cannot say limits nothing.
func selectorOf(a *authorizationv1.FieldSelectorAttributes) string {
	switch {
	case a == nil:
		return ""
	case a.RawSelector != "":
		return a.RawSelector
	}
	var terms []fields.Selector
	for _, r := range a.Requirements {
		switch {
		case len(r.Values) != 1:
		case r.Operator == metav1.FieldSelectorOpIn:
			terms = append(terms, fields.OneTermEqualSelector(r.Key, r.Values[0]))
		case r.Operator == metav1.FieldSelectorOpNotIn:
			terms = append(terms, fields.OneTermNotEqualSelector(r.Key, r.Values[0]))
		}
	}
	return fields.AndSelectors(terms...).String()
}
