// Package access explains a 403: which rule is missing, and which binding would give it.
package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/pkg/why"
)

// serviceAccounts is how the names of service accounts begin: system:serviceaccount:NAMESPACE:NAME.
const serviceAccounts = "system:serviceaccount:"

// Explain answers why a caller may not, or may, do something. The authorizers decide; roles and bindings only explain
// their answer, since other authorizers may be in force beside RBAC.
func Explain(ctx context.Context, c *why.Case, a why.Access) (why.Answer, error) {
	who := a.User
	if who == "" {
		name, groups, known := c.Self(ctx)
		if known {
			who, a.Groups = name, groups
		}
	} else {
		a.Groups = append(a.Groups, implied(who)...)
	}
	subject := why.Object{Group: rbacv1.GroupName, Kind: "User", Name: cmp.Or(who, "you")}
	answer := why.Answer{Subject: subject}
	asked := a
	if asked.User == "" {
		asked.Groups = nil
	}
	allowed, reason, known := c.Allowed(ctx, asked)
	switch {
	case !known:
		answer.State = fmt.Sprintf("Whether %s may %s is not known.", subject.Name, phrase(a))
		return c.Finish(answer), nil
	case allowed:
		answer.State, answer.Well = fmt.Sprintf("%s may %s.", subject.Name, phrase(a)), true
		if reason != "" {
			answer.Causes = []why.Cause{{Code: "Allowed", Text: "The authorizer says: " + why.Quote(reason) + "."}}
		}
		return c.Finish(answer), nil
	}
	answer.State = fmt.Sprintf("%s may not %s.", subject.Name, phrase(a))
	q := &inquiry{Case: c, access: a, who: who}
	answer.Causes = []why.Cause{q.explain(ctx, subject, reason)}
	return c.Finish(answer), nil
}

// implied are the groups that a user of this name is in without anybody's doing.
func implied(user string) []string {
	rest, ok := strings.CutPrefix(user, serviceAccounts)
	if !ok {
		return []string{"system:authenticated"}
	}
	namespace, _, _ := strings.Cut(rest, ":")
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
}

// phrase is the question in words: "get pods in namespace shop".
func phrase(a why.Access) string {
	if a.Path != "" {
		return a.Verb + " the path " + a.Path
	}
	text := a.Verb + " " + resourceOf(a)
	if a.Group != "" {
		text += "." + a.Group
	}
	if a.Name != "" {
		text += " " + a.Name
	}
	if a.Namespace != "" {
		return text + " in namespace " + a.Namespace
	}
	return text + " in all namespaces"
}

func resourceOf(a why.Access) string {
	if a.Subresource != "" {
		return a.Resource + "/" + a.Subresource
	}
	return a.Resource
}

// inquiry is one question about one caller.
type inquiry struct {
	*why.Case
	access why.Access
	who    string
}

// role is a Role or a ClusterRole.
type role struct {
	object why.Object
	rules  []rbacv1.PolicyRule
	// aggregates says that a controller writes the rules, from those of other roles.
	aggregates bool
}

// binding is a RoleBinding or a ClusterRoleBinding.
type binding struct {
	object   why.Object
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

func (q *inquiry) explain(ctx context.Context, subject why.Object, reason string) why.Cause {
	cause := why.Cause{Code: "NoRule", Evidence: []why.Evidence{why.See(subject,
		"SubjectAccessReview .status.reason", cmp.Or(reason, "no authorizer allows it"))}}
	roles, bindings := q.read(ctx)
	held := 0
	for _, b := range bindings {
		if !q.names(b) {
			if almost := q.almost(b); almost != "" {
				cause.Because = append(cause.Because, why.Cause{Code: "SubjectDiffers",
					Text:     fmt.Sprintf("%s gives rights to %s, which is somebody else.", b.object, almost),
					Evidence: []why.Evidence{why.See(b.object, ".subjects", almost)}})
			}
			continue
		}
		held++
		cause.Because = append(cause.Because, q.gives(b, roles)...)
	}
	switch {
	case held == 0:
		cause.Text = fmt.Sprintf("No binding names %s or one of its groups that others do not have, so that it has "+
			"the rights of everybody alone.", q.who)
	default:
		cause.Text = fmt.Sprintf("%s names it, and no rule allows it to %s.", plural(held), phrase(q.access))
	}
	cause.Because = append(cause.Because, q.others(ctx, roles, bindings)...)
	cause.Fixes = q.fixes(roles)
	return cause
}

// read returns the roles and bindings that may matter for the namespace of the question.
func (q *inquiry) read(ctx context.Context) (roles []role, bindings []binding) {
	clusterRoles, _ := why.List[rbacv1.ClusterRole](ctx, q.World, "", nil)
	for _, r := range clusterRoles {
		roles = append(roles, role{why.ObjectOf(rbacv1.GroupName, "ClusterRole", r), r.Rules, r.AggregationRule != nil})
	}
	clusterBindings, _ := why.List[rbacv1.ClusterRoleBinding](ctx, q.World, "", nil)
	for _, b := range clusterBindings {
		bindings = append(bindings, binding{why.ObjectOf(rbacv1.GroupName, "ClusterRoleBinding", b), b.RoleRef,
			b.Subjects})
	}
	namespaceRoles, _ := why.List[rbacv1.Role](ctx, q.World, "", nil)
	for _, r := range namespaceRoles {
		roles = append(roles, role{why.ObjectOf(rbacv1.GroupName, "Role", r), r.Rules, false})
	}
	namespaceBindings, _ := why.List[rbacv1.RoleBinding](ctx, q.World, "", nil)
	for _, b := range namespaceBindings {
		bindings = append(bindings, binding{why.ObjectOf(rbacv1.GroupName, "RoleBinding", b), b.RoleRef, b.Subjects})
	}
	return roles, bindings
}

// names reports whether a binding names the caller. Groups that all callers have do not count: what they give,
// everybody
// has.
func (q *inquiry) names(b binding) bool {
	return slices.ContainsFunc(b.subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.UserKind:
			return s.Name == q.who
		case rbacv1.GroupKind:
			return s.Name != "system:authenticated" && s.Name != "system:unauthenticated" &&
				s.Name != "system:serviceaccounts" && slices.Contains(q.access.Groups, s.Name)
		}
		return q.who == serviceAccounts+cmp.Or(s.Namespace, b.object.Namespace)+":"+s.Name
	})
}

// almost returns a subject of a binding that is like the caller except for its namespace or its kind, "" if none is.
func (q *inquiry) almost(b binding) string {
	rest, account := strings.CutPrefix(q.who, serviceAccounts)
	namespace, name, _ := strings.Cut(rest, ":")
	for _, s := range b.subjects {
		switch {
		case account && s.Kind == rbacv1.ServiceAccountKind && s.Name == name && b.object.Namespace != "" &&
			(b.object.Namespace == q.access.Namespace || b.object.Namespace == namespace):
			return fmt.Sprintf("the ServiceAccount %s of namespace %s", s.Name, cmp.Or(s.Namespace, b.object.Namespace))
		case account && s.Kind == rbacv1.UserKind && s.Name == name:
			return fmt.Sprintf("a user named %s, not the ServiceAccount of that name", s.Name)
		}
	}
	return ""
}

// refersTo reports whether a binding gives a role.
func (b binding) refersTo(r role) bool {
	return r.object.Kind == b.ref.Kind && r.object.Name == b.ref.Name && (r.object.Namespace == "" ||
		r.object.Namespace == b.object.Namespace)
}

// gives explains what a binding of the caller gives, and why that is not enough.
func (q *inquiry) gives(b binding, roles []role) []why.Cause {
	i := slices.IndexFunc(roles, func(r role) bool { return b.refersTo(r) })
	if i < 0 {
		return []why.Cause{{Code: "RoleMissing",
			Text: fmt.Sprintf("%s refers to the %s %s, which does not exist: it gives nothing.", b.object,
				b.ref.Kind, b.ref.Name),
			Evidence: []why.Evidence{why.See(b.object, ".roleRef", b.ref.Kind+"/"+b.ref.Name),
				why.Absent(b.ref.Kind, b.object.Namespace, b.ref.Name)}}}
	}
	r := roles[i]
	if b.object.Namespace != "" && b.object.Namespace != q.access.Namespace {
		if !q.allowed(r.rules) {
			return nil
		}
		where := "in all namespaces"
		if q.access.Namespace != "" {
			where = "in namespace " + q.access.Namespace
		}
		return []why.Cause{{Code: "OtherNamespace",
			Text: fmt.Sprintf("%s would allow it, but only in namespace %s; it is asked for %s.", b.object,
				b.object.Namespace, where),
			Evidence: []why.Evidence{why.See(b.object, ".metadata.namespace", b.object.Namespace)}}}
	}
	if len(r.rules) == 0 {
		return []why.Cause{{Code: "RoleEmpty",
			Text:     fmt.Sprintf("%s gives it %s, which has no rules%s.", b.object, r.object, aggregated(r)),
			Evidence: []why.Evidence{why.See(r.object, ".rules", "empty")}}}
	}
	for _, rule := range r.rules {
		if text := q.lacks(rule); text != "" {
			return []why.Cause{{Code: "RuleTooNarrow",
				Text:     fmt.Sprintf("%s (by %s) comes closest: %s.", r.object, b.object, text),
				Evidence: []why.Evidence{why.See(r.object, ".rules", ruleText(rule))}}}
		}
	}
	return nil
}

// aggregated says where the rules of a role should come from.
func aggregated(r role) string {
	if r.aggregates {
		return ": its aggregationRule takes those of other ClusterRoles, and selects none that has any"
	}
	return ""
}

// lacks says in what alone a rule differs from the question, "" if in more.
func (q *inquiry) lacks(r rbacv1.PolicyRule) string {
	a := q.access
	group, resource, verb := has(r.APIGroups, a.Group), hasResource(r.Resources, a), has(r.Verbs, a.Verb)
	name := len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name)
	switch {
	case group && resource && !verb:
		return fmt.Sprintf("it allows %s of %s, but not %s", strings.Join(r.Verbs, ", "), resourceOf(a), a.Verb)
	case group && resource && verb && !name:
		return fmt.Sprintf("it allows this only for the objects named %s", why.And(r.ResourceNames))
	case !group && resource && verb:
		return fmt.Sprintf("it names the API group %q, and %s are in the group %q", strings.Join(r.APIGroups, ", "),
			a.Resource, a.Group)
	case group && !resource && verb && a.Subresource != "" && slices.Contains(r.Resources, a.Resource):
		return fmt.Sprintf("it names %s, and not the subresource %s", a.Resource, resourceOf(a))
	}
	return ""
}

// allowed reports whether rules allow what is asked for.
func (q *inquiry) allowed(rules []rbacv1.PolicyRule) bool {
	a := q.access
	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		if a.Path != "" {
			return has(r.Verbs, a.Verb) && slices.ContainsFunc(r.NonResourceURLs, func(p string) bool {
				prefix, star := strings.CutSuffix(p, "*")
				return p == a.Path || star && strings.HasPrefix(a.Path, prefix)
			})
		}
		return has(r.APIGroups, a.Group) && hasResource(r.Resources, a) && has(r.Verbs, a.Verb) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.Name))
	})
}

func has(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}

func hasResource(list []string, a why.Access) bool {
	return has(list, resourceOf(a)) || a.Subresource != "" && slices.Contains(list, "*/"+a.Subresource)
}

// closer reports whether a role is a better one to give than another.
func closer(r, other role) bool {
	if own := r.object.Kind == "Role"; own != (other.object.Kind == "Role") {
		return own
	}
	return breadth(r.rules) < breadth(other.rules)
}

// fixes are a role of that one rule, and an existing role that has it: one of the namespace before a ClusterRole, since
// somebody made it for that place, and the one with the fewest rules.
func (q *inquiry) fixes(roles []role) []why.Fix {
	a := q.access
	subject := "--user=" + why.Word(q.who)
	if rest, ok := strings.CutPrefix(q.who, serviceAccounts); ok {
		subject = "--serviceaccount=" + why.Word(rest)
	}
	if a.Path != "" {
		return []why.Fix{{Text: "Give that path alone.", Command: why.Command("kubectl create clusterrole NAME "+
			"--verb=%s --non-resource-url=%s && kubectl create clusterrolebinding NAME --clusterrole=NAME "+
			"%s", a.Verb, a.Path,
			subject)}}
	}
	kind, scope := "clusterrole", why.CommandLine("")
	if a.Namespace != "" {
		kind, scope = "role", " -n "+why.Word(a.Namespace)
	}
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	name := fmt.Sprintf("%s-%s", strings.ReplaceAll(a.Resource, ".", "-"), a.Verb)
	role := why.Command("kubectl create %s %s%s --verb=%s --resource=%s", kind, name, scope, a.Verb, resource)
	binding := why.Command("kubectl create %sbinding %s%s --%s=%s %s", kind, name, scope, kind, name, subject)
	fixes := []why.Fix{{Text: "Give that one right alone.", Command: why.Then(role, binding)}}
	best := -1
	for i, r := range roles {
		usable := r.object.Kind == "ClusterRole" || r.object.Namespace == a.Namespace
		internal := strings.Contains(r.object.Name, ":") // system:node and the like are made for components
		if usable && !internal && q.allowed(r.rules) && (best < 0 || closer(r, roles[best])) {
			best = i
		}
	}
	if best >= 0 {
		o := roles[best].object
		fixes = append(fixes, why.Fix{Text: fmt.Sprintf("Give all that %s allows, which has it.", o),
			Command: why.Command("kubectl create %sbinding %s%s --%s=%s %s", kind, o.Name, scope,
				strings.ToLower(o.Kind), o.Name, subject)})
	}
	return fixes
}

// breadth is how much rules allow, roughly: the number of combinations that they name, where * counts for many.
func breadth(rules []rbacv1.PolicyRule) (n int) {
	const many = 1000
	width := func(list []string) int {
		if slices.Contains(list, "*") {
			return many
		}
		return max(len(list), 1)
	}
	for _, r := range rules {
		n += width(r.Verbs) * width(r.Resources) * width(r.APIGroups)
	}
	return n
}

func ruleText(r rbacv1.PolicyRule) string {
	return fmt.Sprintf("%s of %s in groups %q", strings.Join(r.Verbs, ","), strings.Join(r.Resources, ","), r.APIGroups)
}

func plural(n int) string {
	if n == 1 {
		return "1 binding"
	}
	return fmt.Sprintf("%d bindings together", n)
}
