package admissionregistration

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/jsonpath"

	"bonsai/api/admissionregistration/expression"
	"bonsai/api/defaults"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

type (
	validatingPolicy  = admissionregistrationv1.ValidatingAdmissionPolicy
	validatingBinding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
)

func validatingPolicyRow(c *expression.Compiler) resources.Row {
	status := resources.Typed[*validatingPolicy]{
		PrepareUpdate: func(p, old *validatingPolicy) {
			p.Spec = *old.Spec.DeepCopy()
			// but managedFields, which tell who wrote the status
			metav1.ResetObjectMetaForStatus(&p.ObjectMeta, &old.ObjectMeta)
		},
		ValidateUpdate: func(p, _ *validatingPolicy) field.ErrorList {
			return validatePolicyStatus(&p.Status, field.NewPath("status"))
		},
		Resets: []string{"spec", "metadata"},
	}
	return resources.Row{
		GVK:      admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
		Resource: "validatingadmissionpolicies", Singular: "validatingadmissionpolicy",
		PlainFinalizers: true,
		Categories:      []string{category},
		StoragePath:     "validatingadmissionpolicies",
		New:             resources.Make[validatingPolicy],
		Strategy: resources.Typed[*validatingPolicy]{
			NeedsVersion: true,
			Default: func(p *validatingPolicy) {
				defaults.SetPtr(&p.Spec.FailurePolicy, admissionregistrationv1.Fail)
				defaultMatchResources(p.Spec.MatchConstraints)
			},
			PrepareCreate: func(p *validatingPolicy) {
				p.Status = admissionregistrationv1.ValidatingAdmissionPolicyStatus{}
			},
			PrepareUpdate: func(p, old *validatingPolicy) { p.Status = *old.Status.DeepCopy() },
			Validate:      func(p *validatingPolicy) field.ErrorList { return validateValidatingPolicy(p, nil, c) },
			ValidateUpdate: func(p, old *validatingPolicy) field.ErrorList {
				return validateValidatingPolicy(p, old, c)
			},
			SpecChanged: func(p, old *validatingPolicy) bool {
				return !apiequality.Semantic.DeepEqual(p.Spec, old.Spec)
			},
		}.Strategy(),
		Subresources: []resources.Subresource{resources.Status(status.Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.IntColumn("Validations",
				"Validations indicates the number of validation rules defined in this configuration"),
			paramKindColumn(),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(p *validatingPolicy, now time.Time) []any {
			return []any{p.Name, int64(len(p.Spec.Validations)), paramKindCell(p.Spec.ParamKind),
				resources.Age(p.CreationTimestamp, now)}
		}),
	}
}

func validatingBindingRow() resources.Row {
	return resources.Row{
		GVK:      admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		Resource: "validatingadmissionpolicybindings", Singular: "validatingadmissionpolicybinding",
		PlainFinalizers: true,
		Categories:      []string{category},
		StoragePath:     "validatingadmissionpolicybindings",
		New:             resources.Make[validatingBinding],
		Strategy: resources.Typed[*validatingBinding]{
			NeedsVersion:   true,
			Default:        func(b *validatingBinding) { defaultMatchResources(b.Spec.MatchResources) },
			Validate:       validateValidatingBinding,
			ValidateUpdate: func(b, _ *validatingBinding) field.ErrorList { return validateValidatingBinding(b) },
			SpecChanged: func(b, old *validatingBinding) bool {
				return !apiequality.Semantic.DeepEqual(b.Spec, old.Spec)
			},
		}.Strategy(),
		Columns: bindingColumns(),
		Cells: resources.Cells(func(b *validatingBinding, now time.Time) []any {
			return bindingCells(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, now)
		}),
	}
}

// validateValidatingPolicy checks a policy; old is nil for a new one. Match conditions that an update leaves as they
// are are not checked again.
func validateValidatingPolicy(p, old *validatingPolicy, c *expression.Compiler) field.ErrorList {
	spec := field.NewPath("spec")
	errs := oneOf(spec.Child("failurePolicy"), p.Spec.FailurePolicy, admissionregistrationv1.Fail,
		admissionregistrationv1.Ignore)
	errs = append(errs, validateParamKind(p.Spec.ParamKind, spec.Child("paramKind"))...)
	errs = append(errs, validateConstraints(p.Spec.MatchConstraints, spec.Child("matchConstraints"))...)
	in := expression.Scope{Params: p.Spec.ParamKind != nil, Authorizer: true}
	if old == nil || !slices.Equal(old.Spec.MatchConditions, p.Spec.MatchConditions) {
		errs = append(errs, validateMatchConditions(p.Spec.MatchConditions, spec.Child("matchConditions"), in, c)...)
	}
	compile, bad := validateVariables(p.Spec.Variables, in, spec.Child("variables"), c)
	errs = append(errs, bad...)
	if len(p.Spec.Variables) == 0 { // there is no "variables" to name, other than in a mutating policy
		compile = c.Compile
	}
	if len(p.Spec.Validations)+len(p.Spec.AuditAnnotations) == 0 {
		for _, name := range []string{"validations", "auditAnnotations"} {
			errs = append(errs, field.Required(spec.Child(name),
				"validations or auditAnnotations must contain at least one item"))
		}
	}
	for i := range p.Spec.Validations {
		errs = append(errs, validateValidation(&p.Spec.Validations[i], spec.Child("validations").Index(i), in,
			compile)...)
	}
	return append(errs, validateAuditAnnotations(p.Name, p.Spec.AuditAnnotations, spec.Child("auditAnnotations"), in,
		compile)...)
}

// validateValidation checks one rule. A message must not depend on what the client may do, as he reads it: it has no
// authorizer.
func validateValidation(v *admissionregistrationv1.Validation, at *field.Path, in expression.Scope,
	compile program) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(v.Expression) == "" {
		errs = append(errs, field.Required(at.Child("expression"), "expression is not specified"))
	} else if _, err := compile(v.Expression, in, expression.Bool()); err != nil {
		errs = append(errs, field.Invalid(at.Child("expression"), v.Expression, err.Error()))
	}
	if said := strings.TrimSpace(v.MessageExpression); v.MessageExpression != "" && said == "" {
		errs = append(errs, field.Invalid(at.Child("messageExpression"), v.MessageExpression,
			"must be non-empty if specified"))
	} else if said != "" {
		in.Authorizer = false
		if _, err := compile(v.MessageExpression, in, expression.String()); err != nil {
			errs = append(errs, field.Invalid(at.Child("messageExpression"), v.MessageExpression, err.Error()))
		}
	}
	switch message := strings.TrimSpace(v.Message); {
	case v.Message != "" && message == "":
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must be non-empty if specified"))
	case strings.Contains(message, "\n"):
		errs = append(errs, field.Invalid(at.Child("message"), v.Message, "must not contain line breaks"))
	}
	reasons := []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid,
		metav1.StatusReasonRequestEntityTooLarge}
	if v.Reason != nil && !slices.Contains(reasons, *v.Reason) {
		errs = append(errs, field.NotSupported(at.Child("reason"), *v.Reason, reasons))
	}
	return errs
}

// What audit annotations may be, as upstream.
const (
	maxAuditAnnotations          = 20
	maxAuditAnnotationExpression = 5 * 1024
)

func validateAuditAnnotations(policy string, annotations []admissionregistrationv1.AuditAnnotation, at *field.Path,
	in expression.Scope, compile program) field.ErrorList {
	var errs field.ErrorList
	if len(annotations) > maxAuditAnnotations {
		return field.ErrorList{field.Invalid(at, annotations,
			fmt.Sprintf("must not have more than %d auditAnnotations", maxAuditAnnotations))}
	}
	keys := map[string]bool{}
	for i := range annotations {
		a, here := &annotations[i], at.Index(i)
		// The key that audit events have, where the policy's name comes first.
		errs = append(errs, validate.QualifiedName(policy+"/"+a.Key, here.Child("key"))...)
		switch text := strings.TrimSpace(a.ValueExpression); {
		case text == "":
			errs = append(errs, field.Required(here.Child("valueExpression"), "valueExpression is not specified"))
		case len(text) > maxAuditAnnotationExpression:
			errs = append(errs, field.Required(here.Child("valueExpression"),
				fmt.Sprintf("must not exceed %d bytes in length", maxAuditAnnotationExpression)))
		default:
			if _, err := compile(a.ValueExpression, in, expression.String(), expression.Null()); err != nil {
				errs = append(errs, field.Invalid(here.Child("valueExpression"), a.ValueExpression, err.Error()))
			}
		}
		if keys[a.Key] {
			errs = append(errs, field.Duplicate(here.Child("key"), a.Key))
		}
		keys[a.Key] = true
	}
	return errs
}

func validatePolicyStatus(s *admissionregistrationv1.ValidatingAdmissionPolicyStatus, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.TypeChecking != nil {
		for i, w := range s.TypeChecking.ExpressionWarnings {
			here := at.Child("typeChecking", "expressionWarnings").Index(i)
			if w.Warning == "" {
				errs = append(errs, field.Required(here.Child("warning"), ""))
			}
			if w.FieldRef == "" {
				errs = append(errs, field.Required(here.Child("fieldRef"), ""))
			} else if err := jsonpath.New("spec").Parse("{" + w.FieldRef + "}"); err != nil {
				errs = append(errs, field.Invalid(here.Child("fieldRef"), w.FieldRef, "invalid JSONPath: "+err.Error()))
			}
		}
	}
	return append(errs, metav1validation.ValidateConditions(s.Conditions, at.Child("conditions"))...)
}

func validateValidatingBinding(b *validatingBinding) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validatePolicyName(b.Spec.PolicyName, spec.Child("policyName"))
	errs = append(errs, validateParamRef(b.Spec.ParamRef, spec.Child("paramRef"))...)
	errs = append(errs, validateMatchResources(b.Spec.MatchResources, spec.Child("matchResources"))...)
	return append(errs, validateActions(b.Spec.ValidationActions, spec.Child("validationActions"))...)
}

func validateActions(actions []admissionregistrationv1.ValidationAction, at *field.Path) field.ErrorList {
	if len(actions) == 0 {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	have := map[admissionregistrationv1.ValidationAction]bool{}
	for i := range actions {
		if have[actions[i]] {
			errs = append(errs, field.Duplicate(at.Index(i), actions[i]))
		}
		have[actions[i]] = true
		errs = append(errs, oneOf(at.Index(i), &actions[i], admissionregistrationv1.Deny, admissionregistrationv1.Warn,
			admissionregistrationv1.Audit)...)
	}
	if have[admissionregistrationv1.Deny] && have[admissionregistrationv1.Warn] {
		errs = append(errs, field.Invalid(at, actions,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return errs
}

func paramKindColumn() metav1.TableColumnDefinition {
	return resources.Column("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy")
}

func bindingColumns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		resources.NameColumn(),
		resources.Column("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
		resources.Column("ParamRef", "ParamRef indicates the param resource which sets the configuration param"),
		resources.AgeColumn(),
	}
}

func bindingCells(m *metav1.ObjectMeta, policy string, ref *admissionregistrationv1.ParamRef, now time.Time) []any {
	return []any{m.Name, policy, paramRefCell(ref), resources.Age(m.CreationTimestamp, now)}
}
