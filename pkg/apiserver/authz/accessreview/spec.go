package accessreview

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"bonsai/pkg/apiserver/authz"
)

// specOf is the question as a webhook gets it.
func specOf(at *authz.Attributes) *authorizationv1.SubjectAccessReviewSpec {
	s := &authorizationv1.SubjectAccessReviewSpec{}
	if u := at.User; u != nil {
		s.User, s.UID, s.Groups = u.Name, u.UID, u.Groups
		for k, v := range u.Extra {
			if s.Extra == nil {
				s.Extra = map[string]authorizationv1.ExtraValue{}
			}
			s.Extra[k] = v
		}
	}
	if !at.IsResource {
		s.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: at.Path, Verb: at.Verb}
		return s
	}
	s.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: at.Namespace, Verb: at.Verb,
		Group: at.APIGroup, Version: at.APIVersion, Resource: at.Resource, Subresource: at.Subresource, Name: at.Name,
		FieldSelector: fieldsOf(at.FieldSelector), LabelSelector: labelsOf(at.LabelSelector)}
	return s
}

// fieldsOf returns the requirements of a field selector. A selector only narrows a request, so one that cannot be read,
// which the request will be refused for, is left out.
func fieldsOf(text string) *authorizationv1.FieldSelectorAttributes {
	if text == "" {
		return nil
	}
	s, err := fields.ParseSelector(text)
	if err != nil || s.Empty() {
		return nil
	}
	out := &authorizationv1.FieldSelectorAttributes{}
	for _, r := range s.Requirements() {
		operator := metav1.FieldSelectorOpIn
		if r.Operator == selection.NotEquals {
			operator = metav1.FieldSelectorOpNotIn
		}
		out.Requirements = append(out.Requirements,
			metav1.FieldSelectorRequirement{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	return out
}

// labelsOf is fieldsOf for a label selector. Comparisons of numbers have no form in a review.
func labelsOf(text string) *authorizationv1.LabelSelectorAttributes {
	if text == "" {
		return nil
	}
	all, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil
	}
	var out []metav1.LabelSelectorRequirement
	for i := range all {
		one := metav1.LabelSelectorRequirement{Key: all[i].Key(), Values: all[i].ValuesUnsorted()}
		switch all[i].Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			one.Operator, one.Values = metav1.LabelSelectorOpIn, all[i].Values().List()
		case selection.NotEquals, selection.NotIn:
			one.Operator, one.Values = metav1.LabelSelectorOpNotIn, all[i].Values().List()
		case selection.Exists:
			one.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			one.Operator = metav1.LabelSelectorOpDoesNotExist
		default:
			continue
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil
	}
	return &authorizationv1.LabelSelectorAttributes{Requirements: out}
}

// betaOf is a review of v1beta1, which names groups otherwise.
func betaOf(of metav1.TypeMeta, s *authorizationv1.SubjectAccessReviewSpec) *authorizationv1beta1.SubjectAccessReview {
	out := &authorizationv1beta1.SubjectAccessReview{TypeMeta: of,
		Spec: authorizationv1beta1.SubjectAccessReviewSpec{User: s.User, UID: s.UID, Groups: s.Groups}}
	for k, v := range s.Extra {
		if out.Spec.Extra == nil {
			out.Spec.Extra = map[string]authorizationv1beta1.ExtraValue{}
		}
		out.Spec.Extra[k] = authorizationv1beta1.ExtraValue(v)
	}
	if r := s.ResourceAttributes; r != nil {
		out.Spec.ResourceAttributes = &authorizationv1beta1.ResourceAttributes{Namespace: r.Namespace, Verb: r.Verb,
			Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
			FieldSelector: r.FieldSelector, LabelSelector: r.LabelSelector}
	}
	if n := s.NonResourceAttributes; n != nil {
		out.Spec.NonResourceAttributes = &authorizationv1beta1.NonResourceAttributes{Path: n.Path, Verb: n.Verb}
	}
	return out
}
