package admissionregistration

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"bonsai/api/admissionregistration/expression"
	"bonsai/api/defaults"
	"bonsai/api/validate"
)

// program is what expressions are compiled by: a compiler, or the variables of a policy.
type program func(text string, in expression.Scope, want *cel.Type, more ...*cel.Type) (*expression.Program, error)

// validateParamKind checks what resources parameterize a policy.
func validateParamKind(k *admissionregistrationv1.ParamKind, at *field.Path) field.ErrorList {
	if k == nil {
		return nil
	}
	var errs field.ErrorList
	version := at.Child("apiVersion")
	if k.APIVersion == "" {
		errs = append(errs, field.Required(version, ""))
	} else if gv, err := schema.ParseGroupVersion(k.APIVersion); err != nil {
		errs = append(errs, field.Invalid(version, k.APIVersion, err.Error()))
	} else {
		if gv.Group != "" {
			errs = append(errs, validate.Invalid(version, gv.Group, apivalidation.IsDNS1123Subdomain(gv.Group))...)
		}
		if gv.Version == "" {
			errs = append(errs, field.Invalid(version, k.APIVersion, "version must be specified"))
		} else {
			errs = append(errs, validate.Invalid(version, gv.Version, apivalidation.IsDNS1035Label(gv.Version))...)
		}
	}
	if k.Kind == "" {
		return append(errs, field.Required(at.Child("kind"), ""))
	}
	if msgs := apivalidation.IsDNS1035Label(strings.ToLower(k.Kind)); len(msgs) > 0 {
		errs = append(errs, field.Invalid(at.Child("kind"), k.Kind,
			"may have mixed case, but should otherwise match: "+strings.Join(msgs, ",")))
	}
	return errs
}

// validateMatchResources checks what requests a policy or a binding is about.
func validateMatchResources(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	errs := oneOf(at.Child("matchPolicy"), m.MatchPolicy, admissionregistrationv1.Exact,
		admissionregistrationv1.Equivalent)
	errs = append(errs, validate.LabelSelector(m.NamespaceSelector, at.Child("namespaceSelector"))...)
	errs = append(errs, validate.LabelSelector(m.ObjectSelector, at.Child("objectSelector"))...)
	errs = append(errs, validateNamedRules(m.ResourceRules, at.Child("resourceRules"))...)
	return append(errs, validateNamedRules(m.ExcludeResourceRules, at.Child("excludeResourceRules"))...)
}

func validateNamedRules(rules []admissionregistrationv1.NamedRuleWithOperations, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		here := at.Index(i)
		names := map[string]bool{}
		for j, name := range rules[i].ResourceNames {
			errs = append(errs, validate.Invalid(here.Child("resourceNames").Index(j), name,
				path.ValidatePathSegmentName(name, false))...)
			if names[name] {
				errs = append(errs, field.Duplicate(here.Child("resourceNames").Index(j), name))
			}
			names[name] = true
		}
		errs = append(errs, validateRule(&rules[i].RuleWithOperations, here)...)
	}
	return errs
}

// validateConstraints checks a policy's match constraints, which it must have.
func validateConstraints(m *admissionregistrationv1.MatchResources, at *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := validateMatchResources(m, at)
	if len(m.ResourceRules) == 0 {
		errs = append(errs, field.Required(at.Child("resourceRules"), ""))
	}
	return errs
}

// validateVariables checks a policy's variables and returns what its further expressions are compiled with.
func validateVariables(variables []admissionregistrationv1.Variable, in expression.Scope, at *field.Path,
	c *expression.Compiler) (program, field.ErrorList) {
	var errs field.ErrorList
	composed := c.Compose()
	for i := range variables {
		v, here := &variables[i], at.Index(i)
		if strings.TrimSpace(v.Name) == "" {
			errs = append(errs, field.Required(here.Child("name"), "name is not specified"))
		} else if !identifier(v.Name) {
			errs = append(errs, field.Invalid(here.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		if text := strings.TrimSpace(v.Expression); text == "" {
			errs = append(errs, field.Required(here.Child("expression"), "expression is not specified"))
		} else if err := composed.Add(v.Name, v.Expression, in); err != nil {
			errs = append(errs, field.Invalid(here.Child("expression"), v.Expression, err.Error()))
		}
	}
	return composed.Compile, errs
}

// identifier reports whether a name can be one of a CEL variable: letters, digits and "_", and no word of the language.
func identifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	escaped, _ := apiservercel.Escape(name)
	return escaped != "__"+name+"__"
}

// validateParamRef checks where a binding's parameters are.
func validateParamRef(r *admissionregistrationv1.ParamRef, at *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if r.Name != "" {
		errs = append(errs, validate.Invalid(at.Child("name"), r.Name, path.ValidatePathSegmentName(r.Name, false))...)
		if r.Selector != nil {
			errs = append(errs, field.Forbidden(at.Child("name"), "name and selector are mutually exclusive"))
		}
	}
	if r.Selector != nil {
		errs = append(errs, validate.LabelSelector(r.Selector, at.Child("selector"))...)
		if r.Name != "" {
			errs = append(errs, field.Forbidden(at.Child("selector"), "name and selector are mutually exclusive"))
		}
	}
	if r.Name == "" && r.Selector == nil {
		errs = append(errs, field.Required(at, "one of name or selector must be specified"))
	}
	action := at.Child("parameterNotFoundAction")
	valid := []admissionregistrationv1.ParameterNotFoundActionType{admissionregistrationv1.DenyAction,
		admissionregistrationv1.AllowAction}
	switch {
	case r.ParameterNotFoundAction == nil || *r.ParameterNotFoundAction == "":
		errs = append(errs, field.Required(action, ""))
	case !slices.Contains(valid, *r.ParameterNotFoundAction):
		errs = append(errs, field.NotSupported(action, *r.ParameterNotFoundAction, valid))
	}
	return errs
}

// validatePolicyName checks the name of the policy that a binding binds.
func validatePolicyName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return validate.Invalid(at, name, apivalidation.IsDNS1123Subdomain(name))
}

// defaultMatchResources fills in what policies and bindings leave out of what they are about.
func defaultMatchResources(m *admissionregistrationv1.MatchResources) {
	if m == nil {
		return
	}
	defaults.SetPtr(&m.NamespaceSelector, metav1.LabelSelector{})
	defaults.SetPtr(&m.ObjectSelector, metav1.LabelSelector{})
	defaults.SetPtr(&m.MatchPolicy, admissionregistrationv1.Equivalent)
	for _, rules := range [][]admissionregistrationv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			defaults.SetPtr(&rules[i].Scope, admissionregistrationv1.AllScopes)
		}
	}
}

// paramKindCell and paramRefCell are what tables show of parameters.
func paramKindCell(k *admissionregistrationv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

func paramRefCell(r *admissionregistrationv1.ParamRef) string {
	switch {
	case r == nil:
		return unset
	case r.Selector != nil:
		return r.Selector.String()
	case r.Namespace != "":
		return r.Namespace + "/" + r.Name
	}
	return "*/" + r.Name
}

const unset = "<unset>"
