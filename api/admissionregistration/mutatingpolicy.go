package admissionregistration

import (
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/admissionregistration/expression"
	"bonsai/api/defaults"
	"bonsai/api/resources"
)

type (
	mutatingPolicy  = admissionregistrationv1.MutatingAdmissionPolicy
	mutatingBinding = admissionregistrationv1.MutatingAdmissionPolicyBinding
)

func mutatingPolicyRow(c *expression.Compiler) resources.Row {
	return resources.Row{
		GVK:      admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicy"),
		Resource: "mutatingadmissionpolicies", Singular: "mutatingadmissionpolicy",
		PlainFinalizers: true,
		Categories:      []string{category},
		StoragePath:     "mutatingadmissionpolicies",
		New:             resources.Make[mutatingPolicy],
		Strategy: resources.Typed[*mutatingPolicy]{
			NeedsVersion: true,
			Default: func(p *mutatingPolicy) {
				defaults.SetPtr(&p.Spec.FailurePolicy, admissionregistrationv1.Fail)
				defaultMatchResources(p.Spec.MatchConstraints)
			},
			Validate:       func(p *mutatingPolicy) field.ErrorList { return validateMutatingPolicy(p, nil, c) },
			ValidateUpdate: func(p, old *mutatingPolicy) field.ErrorList { return validateMutatingPolicy(p, old, c) },
			SpecChanged: func(p, old *mutatingPolicy) bool {
				return !apiequality.Semantic.DeepEqual(p.Spec, old.Spec)
			},
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.IntColumn("Mutations",
				"Mutation indicates the number of mutations rules defined in this configuration"),
			paramKindColumn(),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(p *mutatingPolicy, now time.Time) []any {
			return []any{p.Name, int64(len(p.Spec.Mutations)), paramKindCell(p.Spec.ParamKind),
				resources.Age(p.CreationTimestamp, now)}
		}),
	}
}

func mutatingBindingRow() resources.Row {
	return resources.Row{
		GVK:      admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingAdmissionPolicyBinding"),
		Resource: "mutatingadmissionpolicybindings", Singular: "mutatingadmissionpolicybinding",
		PlainFinalizers: true,
		Categories:      []string{category},
		StoragePath:     "mutatingadmissionpolicybindings",
		New:             resources.Make[mutatingBinding],
		Strategy: resources.Typed[*mutatingBinding]{
			NeedsVersion:   true,
			Default:        func(b *mutatingBinding) { defaultMatchResources(b.Spec.MatchResources) },
			Validate:       validateMutatingBinding,
			ValidateUpdate: func(b, _ *mutatingBinding) field.ErrorList { return validateMutatingBinding(b) },
			SpecChanged: func(b, old *mutatingBinding) bool {
				return !apiequality.Semantic.DeepEqual(b.Spec, old.Spec)
			},
		}.Strategy(),
		Columns: bindingColumns(),
		Cells: resources.Cells(func(b *mutatingBinding, now time.Time) []any {
			return bindingCells(&b.ObjectMeta, b.Spec.PolicyName, b.Spec.ParamRef, now)
		}),
	}
}

// validateMutatingPolicy checks a policy; old is nil for a new one. Match conditions that an update leaves as they are
// are not checked again.
func validateMutatingPolicy(p, old *mutatingPolicy, c *expression.Compiler) field.ErrorList {
	spec := field.NewPath("spec")
	errs := oneOf(spec.Child("failurePolicy"), p.Spec.FailurePolicy, admissionregistrationv1.Fail,
		admissionregistrationv1.Ignore)
	errs = append(errs, validateParamKind(p.Spec.ParamKind, spec.Child("paramKind"))...)
	errs = append(errs, validateConstraints(p.Spec.MatchConstraints, spec.Child("matchConstraints"))...)
	errs = append(errs, validateMutatedOperations(p.Spec.MatchConstraints, spec.Child("matchConstraints"))...)
	in := expression.Scope{Params: p.Spec.ParamKind != nil, Authorizer: true}
	if old == nil || !slices.Equal(old.Spec.MatchConditions, p.Spec.MatchConditions) {
		errs = append(errs, validateMatchConditions(p.Spec.MatchConditions, spec.Child("matchConditions"), in, c)...)
	}
	compile, bad := validateVariables(p.Spec.Variables, in, spec.Child("variables"), c)
	errs = append(errs, bad...)
	in.Patches = true
	if len(p.Spec.Mutations) == 0 {
		errs = append(errs, field.Required(spec.Child("mutations"), "mutations must contain at least one item"))
	}
	for i := range p.Spec.Mutations {
		errs = append(errs, validateMutation(&p.Spec.Mutations[i], spec.Child("mutations").Index(i), in, compile)...)
	}
	reinvocation := spec.Child("reinvocationPolicy")
	if p.Spec.ReinvocationPolicy == "" {
		return append(errs, field.Required(reinvocation, ""))
	}
	return append(errs, oneOf(reinvocation, &p.Spec.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy,
		admissionregistrationv1.IfNeededReinvocationPolicy)...)
}

// validateMutatedOperations: what is deleted cannot be changed.
func validateMutatedOperations(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range m.ResourceRules {
		for j := range m.ResourceRules[i].Operations {
			errs = append(errs, oneOf(at.Child("resourceRules", "operations"), &m.ResourceRules[i].Operations[j],
				admissionregistrationv1.OperationAll,
				admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Connect)...)
		}
	}
	return errs
}

func validateMutation(m *admissionregistrationv1.Mutation, at *field.Path, in expression.Scope,
	compile program) field.ErrorList {
	apply, patch := at.Child("applyConfiguration"), at.Child("jsonPatch")
	missing := func(at *field.Path) field.ErrorList {
		return field.ErrorList{field.Required(at, "must be specified when patchType is "+string(m.PatchType))}
	}
	superfluous := func(at *field.Path, name string) *field.Error {
		return field.Invalid(at, "{"+name+"}", "must not be specified when patchType is "+string(m.PatchType))
	}
	var errs field.ErrorList
	switch m.PatchType {
	case "":
		return field.ErrorList{field.Required(at.Child("patchType"), "")}
	case admissionregistrationv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			errs = missing(apply)
		} else {
			errs = validateMutationExpression(m.ApplyConfiguration.Expression, expression.Object(), apply, in, compile)
		}
		if m.JSONPatch != nil {
			errs = append(errs, superfluous(patch, "jsonPatch"))
		}
		return errs
	case admissionregistrationv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			errs = missing(patch)
		} else {
			errs = validateMutationExpression(m.JSONPatch.Expression, expression.Patch(), patch, in, compile)
		}
		if m.ApplyConfiguration != nil {
			errs = append(errs, superfluous(apply, "applyConfiguration"))
		}
		return errs
	}
	return oneOf(at.Child("patchType"), &m.PatchType, admissionregistrationv1.PatchTypeApplyConfiguration,
		admissionregistrationv1.PatchTypeJSONPatch)
}

func validateMutationExpression(text string, want *cel.Type, at *field.Path, in expression.Scope,
	compile program) field.ErrorList {
	if strings.TrimSpace(text) == "" {
		return field.ErrorList{field.Required(at.Child("expression"), "")}
	}
	if _, err := compile(text, in, want); err != nil {
		return field.ErrorList{field.Invalid(at.Child("expression"), text, err.Error())}
	}
	return nil
}

func validateMutatingBinding(b *mutatingBinding) field.ErrorList {
	spec := field.NewPath("spec")
	return slices.Concat(
		validatePolicyName(b.Spec.PolicyName, spec.Child("policyName")),
		validateParamRef(b.Spec.ParamRef, spec.Child("paramRef")),
		validateMatchResources(b.Spec.MatchResources, spec.Child("matchResources")),
		validateMutatedOperations(b.Spec.MatchResources, spec.Child("matchResources")),
	)
}
