package printers

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RuleRows are the rows of a table of rules: resource, URLs, names, verbs. Each row speaks of one resource (of one
// name, if names are given) or of one URL; the verbs of all rules about the same resource are put together. Rows are
// sorted by the printed form of their rule, which begins with the verbs: that is the order kubectl users know.
func RuleRows(rules []rbacv1.PolicyRule) [][4]string {
	var apart []rbacv1.PolicyRule
	for _, r := range rules {
		apart = append(apart, single(r)...)
	}
	all := together(apart)
	text := make(map[*rbacv1.PolicyRule]string, len(all))
	for _, r := range all {
		text[r] = r.String()
	}
	sort.SliceStable(all, func(i, j int) bool { return text[all[i]] < text[all[j]] })
	out := make([][4]string, 0, len(all))
	for _, r := range all {
		out = append(out, [4]string{ruleResource(r), fmt.Sprint(r.NonResourceURLs), fmt.Sprint(r.ResourceNames),
			fmt.Sprint(r.Verbs)})
	}
	return out
}

// ruleResource is "pods/log", "deployments.apps/scale" or, for URLs, "".
func ruleResource(r *rbacv1.PolicyRule) string {
	if len(r.Resources) == 0 {
		return ""
	}
	if r.APIGroups[0] == "" {
		return r.Resources[0]
	}
	name, sub, ok := strings.Cut(r.Resources[0], "/")
	name += "." + r.APIGroups[0]
	if ok {
		name += "/" + sub
	}
	return name
}

// single takes a rule apart into rules of one verb and one resource, name or URL.
func single(r rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, g := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				one := rbacv1.PolicyRule{APIGroups: []string{g}, Resources: []string{resource}, Verbs: []string{verb}}
				if len(r.ResourceNames) == 0 {
					out = append(out, one)
				}
				for _, name := range r.ResourceNames {
					named := one
					named.ResourceNames = []string{name}
					out = append(out, named)
				}
			}
		}
	}
	for _, u := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			out = append(out, rbacv1.PolicyRule{NonResourceURLs: []string{u}, Verbs: []string{verb}})
		}
	}
	return out
}

// together joins the verbs of the single rules about the same resource; those about URLs stay as they are.
func together(all []rbacv1.PolicyRule) []*rbacv1.PolicyRule {
	var out []*rbacv1.PolicyRule
	seen := map[string]*rbacv1.PolicyRule{}
	for i := range all {
		r := &all[i]
		if len(r.Resources) == 0 {
			out = append(out, r)
			continue
		}
		key := strings.Join([]string{r.APIGroups[0], r.Resources[0], strings.Join(r.ResourceNames, "")}, "\x00")
		known := seen[key]
		if known == nil {
			seen[key] = r
			out = append(out, r)
			continue
		}
		if !slices.Contains(known.Verbs, r.Verbs[0]) {
			known.Verbs = append(known.Verbs, r.Verbs[0])
		}
	}
	return out
}
