package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// exemptPrecedence is the matchingPrecedence of the FlowSchema "exempt" alone, so that nothing comes before it.
const exemptPrecedence = 1

// all is what stands for every value in the lists of rules, where it must stand alone.
const all = "*"

func validateFlowSchema(f *flowSchema) field.ErrorList {
	path := field.NewPath("spec")
	for _, m := range MandatorySchemas() {
		if m.Name == f.Name && !apiequality.Semantic.DeepEqual(m.Spec, f.Spec) {
			return field.ErrorList{field.Invalid(path, f.Spec,
				fmt.Sprintf("spec of '%s' must equal the fixed value", f.Name))}
		}
	}
	spec := &f.Spec
	errs := validatePrecedence(f, path.Child("matchingPrecedence"))
	if m := spec.DistinguisherMethod; m != nil && m.Type != flowcontrolv1.FlowDistinguisherMethodByUserType &&
		m.Type != flowcontrolv1.FlowDistinguisherMethodByNamespaceType {
		errs = append(errs, field.NotSupported(path.Child("distinguisherMethod", "type"), m.Type,
			[]string{string(flowcontrolv1.FlowDistinguisherMethodByNamespaceType),
				string(flowcontrolv1.FlowDistinguisherMethodByUserType)}))
	}
	name := path.Child("priorityLevelConfiguration", "name")
	if level := spec.PriorityLevelConfiguration.Name; level == "" {
		errs = append(errs, field.Required(name, "must reference a priority level"))
	} else {
		errs = append(errs, validate.Invalid(name, level, apivalidation.NameIsDNSSubdomain(level, false))...)
	}
	for i := range spec.Rules {
		errs = append(errs, validateRule(&spec.Rules[i], path.Child("rules").Index(i))...)
	}
	return errs
}

func validatePrecedence(f *flowSchema, path *field.Path) field.ErrorList {
	switch p := f.Spec.MatchingPrecedence; {
	case p <= 0:
		return field.ErrorList{field.Invalid(path, p, "must be a positive value")}
	case p > flowcontrolv1.FlowSchemaMaxMatchingPrecedence:
		return field.ErrorList{field.Invalid(path, p,
			fmt.Sprintf("must not be greater than %v", flowcontrolv1.FlowSchemaMaxMatchingPrecedence))}
	case p == exemptPrecedence && f.Name != flowcontrolv1.FlowSchemaNameExempt:
		return field.ErrorList{field.Invalid(path, p, "only the schema named 'exempt' may have matchingPrecedence 1")}
	}
	return nil
}

func validateRule(r *flowcontrolv1.PolicyRulesWithSubjects, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Subjects) == 0 {
		errs = append(errs, field.Required(path.Child("subjects"), "subjects must contain at least one value"))
	}
	for i := range r.Subjects {
		errs = append(errs, validateSubject(&r.Subjects[i], path.Child("subjects").Index(i))...)
	}
	if len(r.ResourceRules) == 0 && len(r.NonResourceRules) == 0 {
		errs = append(errs, field.Required(path,
			"at least one of resourceRules and nonResourceRules has to be non-empty"))
	}
	for i := range r.ResourceRules {
		errs = append(errs, validateResourceRule(&r.ResourceRules[i], path.Child("resourceRules").Index(i))...)
	}
	for i := range r.NonResourceRules {
		errs = append(errs, validateNonResourceRule(&r.NonResourceRules[i], path.Child("nonResourceRules").Index(i))...)
	}
	return errs
}

// validateSubject: a subject has the field of its kind and no other.
func validateSubject(s *flowcontrolv1.Subject, path *field.Path) field.ErrorList {
	kinds := []flowcontrolv1.SubjectKind{flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount,
		flowcontrolv1.SubjectKindUser}
	if !slices.Contains(kinds, s.Kind) {
		return field.ErrorList{field.NotSupported(path.Child("kind"), s.Kind, kinds)}
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name  string
		kind  flowcontrolv1.SubjectKind
		there bool
		check func(path *field.Path) field.ErrorList
	}{
		{"user", flowcontrolv1.SubjectKindUser, s.User != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("name"), s.User.Name)
		}},
		{"group", flowcontrolv1.SubjectKindGroup, s.Group != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("name"), s.Group.Name)
		}},
		{"serviceAccount", flowcontrolv1.SubjectKindServiceAccount, s.ServiceAccount != nil,
			func(p *field.Path) field.ErrorList {
				return validateServiceAccount(s.ServiceAccount, p)
			}},
	} {
		switch at := path.Child(f.name); {
		case f.kind != s.Kind && f.there:
			errs = append(errs, field.Forbidden(at,
				fmt.Sprintf("%s is forbidden when subject kind is not '%s'", f.name, f.kind)))
		case f.kind == s.Kind && !f.there:
			errs = append(errs, field.Required(at,
				fmt.Sprintf("%s is required when subject kind is '%s'", f.name, f.kind)))
		case f.kind == s.Kind:
			errs = append(errs, f.check(at)...)
		}
	}
	return errs
}

func validateServiceAccount(a *flowcontrolv1.ServiceAccountSubject, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch name := path.Child("name"); a.Name {
	case "":
		errs = append(errs, field.Required(name, ""))
	case flowcontrolv1.NameAll:
	default:
		errs = append(errs, validate.Invalid(name, a.Name, apivalidation.ValidateServiceAccountName(a.Name, false))...)
	}
	ns := path.Child("namespace")
	if a.Namespace == "" {
		return append(errs, field.Required(ns, "must specify namespace for service account"))
	}
	return append(errs, validate.Invalid(ns, a.Namespace, apivalidation.ValidateNamespaceName(a.Namespace, false))...)
}

func validateResourceRule(r *flowcontrolv1.ResourcePolicyRule, path *field.Path) field.ErrorList {
	errs := validateVerbs(r.Verbs, path.Child("verbs"))
	errs = append(errs, validateAlone(r.APIGroups, path.Child("apiGroups"),
		"resource rules must supply at least one api group", "api groups")...)
	errs = append(errs, validateAlone(r.Resources, path.Child("resources"),
		"resource rules must supply at least one resource", "resources")...)
	namespaces := path.Child("namespaces")
	if len(r.Namespaces) == 0 && !r.ClusterScope {
		return append(errs, field.Required(namespaces,
			"resource rules that are not cluster scoped must supply at least one namespace"))
	}
	if len(r.Namespaces) > 1 && slices.Contains(r.Namespaces, all) {
		return append(errs, aloneError(r.Namespaces, namespaces, "namespaces"))
	}
	for i, ns := range r.Namespaces {
		if ns == all {
			continue
		}
		for _, msg := range validation.IsDNS1123Label(ns) {
			errs = append(errs, field.Invalid(namespaces.Index(i), ns,
				"each member of this list must be '*' or a DNS-1123 label; "+msg))
		}
	}
	return errs
}

func validateNonResourceRule(r *flowcontrolv1.NonResourcePolicyRule, path *field.Path) field.ErrorList {
	errs := validateVerbs(r.Verbs, path.Child("verbs"))
	urls := path.Child("nonResourceURLs")
	if alone := validateAlone(r.NonResourceURLs, urls, "nonResourceURLs must contain at least one value",
		"non-resource URLs"); len(alone) > 0 {
		return append(errs, alone...)
	}
	for i, url := range r.NonResourceURLs {
		if msg := wrongURL(url); url != all && msg != "" {
			errs = append(errs, field.Invalid(urls.Index(i), url, msg))
		}
	}
	return errs
}

// wrongURL is what is wrong with a path or prefix of paths ("/healthz", "/healthz/*"), "" if nothing is.
func wrongURL(url string) string {
	switch {
	case url == "":
		return "must not be empty"
	case url == "/":
		return ""
	case url[0] != '/':
		return "must start with slash"
	case strings.Contains(url, " "):
		return "must not contain white-space"
	case strings.Contains(url, "//"):
		return "must not contain double slash"
	case strings.Contains(strings.TrimSuffix(url, "/*"), "*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}

// verbs are the words of rules, in the order of messages.
func verbs() []string {
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}
}

func validateVerbs(words []string, path *field.Path) field.ErrorList {
	if errs := validateAlone(words, path, "verbs must contain at least one value", "verbs"); len(errs) > 0 {
		return errs
	}
	known := append(verbs(), all)
	if slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(known, w) }) {
		return field.ErrorList{field.NotSupported(path, words, verbs())}
	}
	return nil
}

// validateAlone checks a list that has members, and "*" only as the one.
func validateAlone(list []string, path *field.Path, empty, things string) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(path, empty)}
	case len(list) > 1 && slices.Contains(list, all):
		return field.ErrorList{aloneError(list, path, things)}
	}
	return nil
}

func aloneError(list []string, path *field.Path, things string) *field.Error {
	return field.Invalid(path, list, "if '*' is present, must not specify other "+things)
}
