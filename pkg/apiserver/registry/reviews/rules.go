package reviews

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// SelfSubjectRulesReview answers POST …/selfsubjectrulesreviews (kubectl auth can-i --list).
type SelfSubjectRulesReview struct{ rules authz.Lister }

var _ registry.Creater = (*SelfSubjectRulesReview)(nil)

// NewSelfSubjectRulesReview returns the behaviour.
func NewSelfSubjectRulesReview(r authz.Lister) *SelfSubjectRulesReview {
	return &SelfSubjectRulesReview{rules: r}
}

// New returns an empty SelfSubjectRulesReview.
func (r *SelfSubjectRulesReview) New() runtime.Object {
	return &authorizationv1.SelfSubjectRulesReview{}
}

// Create answers in the status, for the user of ctx.
func (r *SelfSubjectRulesReview) Create(ctx context.Context, _, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*authorizationv1.SelfSubjectRulesReview)
	if !ok {
		return nil, wrongType("SelfSubjectRulesReview", obj)
	}
	user := request.UserFrom(ctx)
	if user == nil {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	if in.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	out := &authorizationv1.SelfSubjectRulesReview{TypeMeta: in.TypeMeta} // the question is not repeated
	out.Status = r.rules.ReviewRules(ctx, user, in.Spec.Namespace)
	if out.Status.ResourceRules == nil {
		out.Status.ResourceRules = []authorizationv1.ResourceRule{}
	}
	if out.Status.NonResourceRules == nil {
		out.Status.NonResourceRules = []authorizationv1.NonResourceRule{}
	}
	return out, nil
}
