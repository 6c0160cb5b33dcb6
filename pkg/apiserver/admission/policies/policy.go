package policies

import (
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/admissionregistration/expression"
	"bonsai/pkg/apiserver/admission/match"
)

// policy is a policy of either kind, read once.
type policy struct {
	name       string
	fixed      bool // a file describes it, not an object of the API
	criteria   criteria
	params     *schema.GroupVersionKind // nil: none
	ignores    bool                     // failurePolicy
	conditions *match.Conditions
	variables  []admissionregistrationv1.Variable
	// Of a validating policy:
	validations []admissionregistrationv1.Validation
	annotations []admissionregistrationv1.AuditAnnotation
	// Of a mutating one:
	mutations []admissionregistrationv1.Mutation
	repeats   bool // reinvocationPolicy

	once     sync.Once
	compiled compiled // guarded by once
}

// binding puts a policy in force.
type binding struct {
	name, policy string
	fixed        bool // as of a policy: a binding is of a policy from the same place
	criteria     criteria
	param        *paramRef // nil: the policy is evaluated without parameters
	actions      []admissionregistrationv1.ValidationAction
}

// paramRef says where a binding's parameters are.
type paramRef struct {
	admissionregistrationv1.ParamRef
	selector labels.Selector // nil: one of a name
}

// denies tells that it is a failure if no parameters are found.
func (p *paramRef) denies() bool {
	return p.ParameterNotFoundAction == nil || *p.ParameterNotFoundAction == admissionregistrationv1.DenyAction
}

func newPolicy(obj runtime.Object) *policy {
	var p *policy
	var kind *admissionregistrationv1.ParamKind
	var failure *admissionregistrationv1.FailurePolicyType
	var conditions []admissionregistrationv1.MatchCondition
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		s := &o.Spec
		p = &policy{name: o.Name, criteria: newCriteria(s.MatchConstraints), variables: s.Variables,
			validations: s.Validations, annotations: s.AuditAnnotations}
		kind, failure, conditions = s.ParamKind, s.FailurePolicy, s.MatchConditions
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		s := &o.Spec
		p = &policy{name: o.Name, criteria: newCriteria(s.MatchConstraints), variables: s.Variables,
			mutations: s.Mutations,
			repeats:   s.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy}
		kind, failure, conditions = s.ParamKind, s.FailurePolicy, s.MatchConditions
	default:
		return &policy{}
	}
	if kind != nil {
		gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		p.params = &gvk
	}
	p.ignores = failure != nil && *failure == admissionregistrationv1.Ignore
	p.conditions = match.NewConditions(conditions, expression.Scope{Params: kind != nil, Authorizer: true})
	return p
}

func newBinding(obj runtime.Object) *binding {
	var b *binding
	var ref *admissionregistrationv1.ParamRef
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		b, ref = &binding{name: o.Name, policy: o.Spec.PolicyName, criteria: newCriteria(o.Spec.MatchResources),
			actions: o.Spec.ValidationActions}, o.Spec.ParamRef
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		b, ref = &binding{name: o.Name, policy: o.Spec.PolicyName, criteria: newCriteria(o.Spec.MatchResources)},
			o.Spec.ParamRef
	default:
		return &binding{}
	}
	if ref != nil {
		b.param = &paramRef{ParamRef: *ref}
		if ref.Selector != nil {
			b.param.selector = selector(ref.Selector)
		}
	}
	return b
}

// selector reads a selector that was valid when it was stored.
func selector(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}
