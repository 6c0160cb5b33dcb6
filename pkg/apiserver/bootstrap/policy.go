package bootstrap

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

//go:embed policy.txt
var policyText string

// Policy is a set of roles and bindings.
type Policy struct {
	ClusterRoles        []*rbacv1.ClusterRole
	Roles               []*rbacv1.Role
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding
	RoleBindings        []*rbacv1.RoleBinding
}

// DefaultPolicy returns the roles and bindings every cluster starts with (policy.txt), aggregated roles with the rules
// of their parts.
func DefaultPolicy() (*Policy, error) {
	p, err := parsePolicy(policyText)
	if err != nil {
		return nil, fmt.Errorf("reading the default policy: %w", err)
	}
	p.aggregate()
	return p, nil
}

// ClusterRoleRules returns the rules of a ClusterRole, nil if it is not there.
func (p *Policy) ClusterRoleRules(name string) []rbacv1.PolicyRule {
	for _, r := range p.ClusterRoles {
		if r.Name == name {
			return r.Rules
		}
	}
	return nil
}

// Names calls yield with every role and its namespace ("" for ClusterRoles), then with every binding, until it returns
// false.
func (p *Policy) Names(yield func(role, binding types.NamespacedName) bool) {
	name := func(m metav1.ObjectMeta) types.NamespacedName {
		return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
	}
	none := types.NamespacedName{}
	for _, r := range p.ClusterRoles {
		if !yield(name(r.ObjectMeta), none) {
			return
		}
	}
	for _, r := range p.Roles {
		if !yield(name(r.ObjectMeta), none) {
			return
		}
	}
	for _, b := range p.ClusterRoleBindings {
		if !yield(none, name(b.ObjectMeta)) {
			return
		}
	}
	for _, b := range p.RoleBindings {
		if !yield(none, name(b.ObjectMeta)) {
			return
		}
	}
}

// parser reads policy.txt; meta, rules and subjects are those of the object being read.
type parser struct {
	policy    Policy
	meta      *metav1.ObjectMeta
	rules     *[]rbacv1.PolicyRule
	subjects  *[]rbacv1.Subject
	aggregate **rbacv1.AggregationRule
}

func parsePolicy(text string) (*Policy, error) {
	var p parser
	n := 0
	for line := range strings.Lines(text) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		var ok bool
		if line[0] == ' ' {
			ok = p.meta != nil && p.detail(words)
		} else {
			ok = p.object(words)
		}
		if !ok {
			return nil, fmt.Errorf("line %d: %q is not understood", n, strings.TrimSpace(line))
		}
	}
	return &p.policy, nil
}

// object begins a new one.
func (p *parser) object(words []string) bool {
	if len(words) < 2 {
		return false
	}
	binding := strings.HasSuffix(words[0], "binding")
	if binding != (len(words) == 4) || !binding && len(words) != 2 {
		return false
	}
	meta := metav1.ObjectMeta{
		Name:        words[1],
		Labels:      map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
	if ns, name, ok := strings.Cut(words[1], "/"); ok {
		meta.Namespace, meta.Name = ns, name
	}
	*p = parser{policy: p.policy}
	switch words[0] {
	case "clusterrole":
		r := &rbacv1.ClusterRole{ObjectMeta: meta}
		p.policy.ClusterRoles = append(p.policy.ClusterRoles, r)
		p.meta, p.rules, p.aggregate = &r.ObjectMeta, &r.Rules, &r.AggregationRule
	case "role":
		r := &rbacv1.Role{ObjectMeta: meta}
		p.policy.Roles = append(p.policy.Roles, r)
		p.meta, p.rules = &r.ObjectMeta, &r.Rules
	case "clusterrolebinding":
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: roleRef(words[2], words[3])}
		p.policy.ClusterRoleBindings = append(p.policy.ClusterRoleBindings, b)
		p.meta, p.subjects = &b.ObjectMeta, &b.Subjects
	case "rolebinding":
		b := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: roleRef(words[2], words[3])}
		p.policy.RoleBindings = append(p.policy.RoleBindings, b)
		p.meta, p.subjects = &b.ObjectMeta, &b.Subjects
	default:
		return false
	}
	return true
}

func roleRef(kind, name string) rbacv1.RoleRef {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	if kind == "clusterrole" {
		ref.Kind = "ClusterRole"
	}
	return ref
}

// detail adds one indented line to the object.
func (p *parser) detail(words []string) bool {
	switch {
	case words[0] == "label" && len(words) == 2:
		k, v, ok := strings.Cut(words[1], "=")
		p.meta.Labels[k] = v
		return ok
	case words[0] == "aggregate" && len(words) == 2 && p.aggregate != nil:
		k, v, ok := strings.Cut(words[1], "=")
		if *p.aggregate == nil {
			*p.aggregate = &rbacv1.AggregationRule{}
		}
		(*p.aggregate).ClusterRoleSelectors = append((*p.aggregate).ClusterRoleSelectors,
			metav1.LabelSelector{MatchLabels: map[string]string{k: v}})
		return ok
	case p.subjects != nil && len(words) == 2:
		return p.subject(words[0], words[1])
	case p.rules != nil && len(words) >= 3 && len(words) <= 4:
		*p.rules = append(*p.rules, rule(words))
		return true
	}
	return false
}

func (p *parser) subject(kind, name string) bool {
	s := rbacv1.Subject{APIGroup: rbacv1.GroupName, Name: name}
	switch kind {
	case "user":
		s.Kind = rbacv1.UserKind
	case "group":
		s.Kind = rbacv1.GroupKind
	case "serviceaccount":
		ns, n, ok := strings.Cut(name, "/")
		if !ok {
			return false
		}
		s = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: n}
	default:
		return false
	}
	*p.subjects = append(*p.subjects, s)
	return true
}

func rule(words []string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: strings.Split(words[0], ",")}
	if words[1] == "url" {
		r.NonResourceURLs = strings.Split(words[2], ",")
		return r
	}
	r.APIGroups, r.Resources = strings.Split(words[1], ","), strings.Split(words[2], ",")
	for i, g := range r.APIGroups {
		if g == "core" {
			r.APIGroups[i] = ""
		}
	}
	if len(words) == 4 {
		r.ResourceNames = strings.Split(words[3], ",")
	}
	return r
}

// aggregate fills the rules of aggregated roles in. A part may itself be aggregated (view is a part of edit, edit of
// admin), so it goes on until nothing is new.
func (p *Policy) aggregate() {
	for again := true; again; {
		again = false
		for _, whole := range p.ClusterRoles {
			if whole.AggregationRule != nil && p.collect(whole) {
				again = true
			}
		}
	}
}

// collect adds the rules of all parts that whole has not yet, and reports whether there were any.
func (p *Policy) collect(whole *rbacv1.ClusterRole) (added bool) {
	for _, sel := range whole.AggregationRule.ClusterRoleSelectors {
		for _, part := range p.ClusterRoles {
			if part == whole || !matches(sel.MatchLabels, part.Labels) {
				continue
			}
			for _, r := range part.Rules {
				if !slices.ContainsFunc(whole.Rules, func(x rbacv1.PolicyRule) bool { return sameRule(x, r) }) {
					whole.Rules = append(whole.Rules, r)
					added = true
				}
			}
		}
	}
	return added
}

func matches(want, have map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

func sameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) &&
		slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}
