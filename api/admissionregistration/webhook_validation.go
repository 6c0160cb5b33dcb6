package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/admissionregistration/expression"
	"bonsai/api/validate"
)

// webhook is a webhook of either kind; reinvocation is nil for validating ones.
type webhook struct {
	admissionregistrationv1.ValidatingWebhook
	reinvocation *admissionregistrationv1.ReinvocationPolicyType
}

// reviewVersions are the versions of AdmissionReview that the server speaks, preferred first.
func reviewVersions() []string { return []string{"v1", "v1beta1"} }

// tolerated are the faults that an update may keep because the stored webhooks have them: earlier versions of the API
// let them in. Each stands for all webhooks of a configuration.
type tolerated struct {
	names       bool // several webhooks of one name
	sideEffects bool // Some and Unknown
	versions    bool // no version of AdmissionReview that the server speaks
	conditions  bool // match conditions, which the update leaves as they are
}

// toleratedIn returns the faults that an update from the webhooks old to hooks may keep.
func toleratedIn(old, hooks []webhook) tolerated {
	t := tolerated{conditions: slices.EqualFunc(old, hooks, func(a, b webhook) bool {
		return slices.Equal(a.MatchConditions, b.MatchConditions)
	})}
	names := map[string]bool{}
	for i := range old {
		h := &old[i]
		t.names = t.names || names[h.Name]
		names[h.Name] = true
		t.sideEffects = t.sideEffects || h.SideEffects == nil || !slices.Contains(noSideEffects(), *h.SideEffects)
		t.versions = t.versions || !slices.ContainsFunc(h.AdmissionReviewVersions, spoken)
	}
	return t
}

// noSideEffects are the values of sideEffects that a new webhook may have, in alphabetical order.
func noSideEffects() []admissionregistrationv1.SideEffectClass {
	return []admissionregistrationv1.SideEffectClass{admissionregistrationv1.SideEffectClassNone,
		admissionregistrationv1.SideEffectClassNoneOnDryRun}
}

// spoken reports whether the server speaks a version of AdmissionReview.
func spoken(version string) bool { return slices.Contains(reviewVersions(), version) }

func validateWebhooks(hooks []webhook, allow tolerated, c *expression.Compiler) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range hooks {
		path := field.NewPath("webhooks").Index(i)
		errs = append(errs, validateWebhook(&hooks[i], allow, path, c)...)
		if name := hooks[i].Name; name != "" {
			if names[name] && !allow.names {
				errs = append(errs, field.Duplicate(path.Child("name"), name))
			}
			names[name] = true
		}
	}
	return errs
}

func validateWebhook(h *webhook, allow tolerated, path *field.Path, c *expression.Compiler) field.ErrorList {
	errs := apivalidation.IsFullyQualifiedName(path.Child("name"), h.Name)
	for i := range h.Rules {
		errs = append(errs, validateRule(&h.Rules[i], path.Child("rules").Index(i))...)
	}
	errs = append(errs, oneOf(path.Child("failurePolicy"), h.FailurePolicy, admissionregistrationv1.Fail,
		admissionregistrationv1.Ignore)...)
	errs = append(errs, oneOf(path.Child("matchPolicy"), h.MatchPolicy, admissionregistrationv1.Equivalent,
		admissionregistrationv1.Exact)...)
	errs = append(errs, validateSideEffects(h.SideEffects, allow, path.Child("sideEffects"))...)
	if t := h.TimeoutSeconds; t != nil && (*t < 1 || *t > 30) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *t,
			"the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, validate.LabelSelector(h.NamespaceSelector, path.Child("namespaceSelector"))...)
	errs = append(errs, validate.LabelSelector(h.ObjectSelector, path.Child("objectSelector"))...)
	errs = append(errs, oneOf(path.Child("reinvocationPolicy"), h.reinvocation,
		admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)...)
	errs = append(errs, validateClientConfig(&h.ClientConfig, path.Child("clientConfig"))...)
	if !allow.conditions {
		errs = append(errs, validateMatchConditions(h.MatchConditions, path.Child("matchConditions"),
			expression.Scope{Authorizer: true}, c)...)
	}
	return append(errs, validateReviewVersions(h.AdmissionReviewVersions, allow,
		path.Child("admissionReviewVersions"))...)
}

func validateSideEffects(class *admissionregistrationv1.SideEffectClass, allow tolerated,
	path *field.Path) field.ErrorList {
	valid := noSideEffects()
	if allow.sideEffects {
		valid = append(valid, admissionregistrationv1.SideEffectClassSome,
			admissionregistrationv1.SideEffectClassUnknown)
	}
	if class != nil {
		return oneOf(path, class, valid...)
	}
	names := make([]string, len(valid))
	for i, c := range valid {
		names[i] = string(c)
	}
	return field.ErrorList{field.Required(path, "must specify one of "+strings.Join(names, ", "))}
}

// oneOf validates an optional enumeration. Its error lists the supported values in alphabetical order, as upstream does
// for this group.
func oneOf[T ~string](path *field.Path, value *T, valid ...T) field.ErrorList {
	if value == nil || slices.Contains(valid, *value) {
		return nil
	}
	slices.Sort(valid)
	return field.ErrorList{field.NotSupported(path, *value, valid)}
}

func validateClientConfig(c *admissionregistrationv1.WebhookClientConfig, path *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(path, "exactly one of url or service is required")}
	case c.URL != nil:
		return validate.WebhookURL(path.Child("url"), *c.URL)
	}
	s := c.Service
	var port int32
	if s.Port != nil {
		port = *s.Port
	}
	return validate.WebhookService(path.Child("service"), s.Namespace, s.Name, s.Path, port)
}

func validateReviewVersions(versions []string, allow tolerated, path *field.Path) field.ErrorList {
	known := strings.Join(reviewVersions(), ", ")
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "must specify one of "+known)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, v := range versions {
		if seen[v] {
			errs = append(errs, field.Invalid(path.Index(i), v, "duplicate version"))
			continue
		}
		seen[v] = true
		errs = append(errs, validate.Invalid(path.Index(i), v, apivalidation.IsDNS1035Label(v))...)
	}
	if !allow.versions && !slices.ContainsFunc(versions, spoken) {
		errs = append(errs, field.Invalid(path, versions, "must include at least one of "+known))
	}
	return errs
}

// maxMatchConditions is upstream's.
const maxMatchConditions = 64

func validateMatchConditions(conditions []admissionregistrationv1.MatchCondition, path *field.Path, in expression.Scope,
	c *expression.Compiler) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > maxMatchConditions {
		errs = append(errs, field.TooMany(path, len(conditions), maxMatchConditions))
	}
	names := map[string]bool{}
	for i, m := range conditions[:min(len(conditions), maxMatchConditions)] {
		at := path.Index(i)
		if text := strings.TrimSpace(m.Expression); text == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		} else if _, err := c.Compile(text, in, expression.Bool()); err != nil {
			errs = append(errs, field.Invalid(at.Child("expression"), text, err.Error()))
		}
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case names[m.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), m.Name))
		default:
			errs = append(errs, validate.QualifiedName(m.Name, at.Child("name"))...)
		}
		names[m.Name] = true
	}
	return errs
}

// validateRule checks what requests a webhook or a policy is asked about.
func validateRule(r *admissionregistrationv1.RuleWithOperations, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(r.Operations) == 0 {
		errs = append(errs, field.Required(path.Child("operations"), ""))
	}
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionregistrationv1.OperationAll) {
		errs = append(errs, field.Invalid(path.Child("operations"), r.Operations,
			"if '*' is present, must not specify other operations"))
	}
	for i := range r.Operations {
		errs = append(errs, oneOf(path.Child("operations").Index(i), &r.Operations[i],
			admissionregistrationv1.OperationAll, admissionregistrationv1.Create,
			admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect)...)
	}
	errs = append(errs, wildcard(r.APIGroups, path.Child("apiGroups"), "API groups")...)
	errs = append(errs, wildcard(r.APIVersions, path.Child("apiVersions"), "API versions")...)
	for i, v := range r.APIVersions {
		errs = append(errs, validate.Required(path.Child("apiVersions").Index(i), v)...)
	}
	errs = append(errs, validateRuleResources(r.Resources, path.Child("resources"))...)
	return append(errs, oneOf(path.Child("scope"), r.Scope, admissionregistrationv1.AllScopes,
		admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope)...)
}

// wildcard checks a list in which "*" stands alone.
func wildcard(list []string, path *field.Path, what string) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(list) > 1 && slices.Contains(list, "*") {
		return field.ErrorList{field.Invalid(path, list, "if '*' is present, must not specify other "+what)}
	}
	return nil
}

// validateRuleResources checks a list of resources with subresources; what a wildcard before it covers must not be
// there again.
func validateRuleResources(list []string, path *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	covered := func(i int, by string) {
		errs = append(errs, field.Invalid(path.Index(i), list[i],
			fmt.Sprintf("if '%s' is present, must not specify %s", by, list[i])))
	}
	allOf, everywhere := map[string]bool{}, map[string]bool{} // pods/*, */status
	all, others := false, false                               // "*", and resources after it
	for i, r := range list {
		if r == "" {
			errs = append(errs, field.Required(path.Index(i), ""))
			continue
		}
		resource, sub, has := strings.Cut(r, "/")
		if !has {
			others = others || all && r != "*"
			all = all || r == "*"
			continue
		}
		if allOf[resource] {
			covered(i, resource+"/*")
		}
		if everywhere[sub] {
			covered(i, "*/"+sub)
		}
		if sub == "*" {
			allOf[resource] = true
		}
		if resource == "*" {
			everywhere[sub] = true
		}
	}
	if len(list) > 1 && slices.Contains(list, "*/*") {
		errs = append(errs, field.Invalid(path, list, "if '*/*' is present, must not specify other resources"))
	}
	if others {
		errs = append(errs, field.Invalid(path, list,
			"if '*' is present, must not specify other resources without subresources"))
	}
	return errs
}
