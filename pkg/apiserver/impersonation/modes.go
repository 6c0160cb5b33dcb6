package impersonation

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/request"
)

// mode is one kind of impersonation, told apart by who is impersonated.
type mode struct {
	name string // as in verbs and metrics
	// concerns reports whether the mode is about such a pair.
	concerns func(caller, wanted *request.User) bool
	// identity is what must be allowed, besides the action, to be wanted.
	identity func(wanted *request.User) []question
	// groups are those of wanted, before the ones of everybody who is authenticated.
	groups func(wanted *request.User) []string
}

const legacy = "legacy"

func (m *mode) constrained() bool { return m.name != legacy }

func (m *mode) constraint() string {
	if !m.constrained() {
		return ""
	}
	return "impersonate:" + m.name
}

// question is one thing that the caller must be allowed. A reason in never refuses it without asking.
type question struct {
	request.Info
	never string
}

// allModes are the modes in the order in which they are tried: the narrower ones first.
func allModes() []*mode {
	given := func(wanted *request.User) []string { return wanted.Groups }
	return []*mode{
		{name: "associated-node", concerns: associated,
			identity: node("impersonate:associated-node", func(string) string {
				return "*"
			}), groups: nodeGroups},
		{name: "arbitrary-node", concerns: func(_, wanted *request.User) bool {
			return onlyNamed(wanted) && nodeName(wanted.Name) != ""
		},
			identity: node("impersonate:arbitrary-node", func(name string) string { return name }), groups: nodeGroups},
		{name: "serviceaccount", concerns: func(_, wanted *request.User) bool {
			return onlyNamed(wanted) && isServiceAccount(wanted.Name)
		},
			identity: func(wanted *request.User) []question {
				ns, name, _ := request.ServiceAccount(wanted.Name)
				return []question{ask("impersonate:serviceaccount", authenticationv1.GroupName, "serviceaccounts", "",
					ns, name)}
			}, groups: accountGroups},
		{name: "user-info", concerns: func(_, wanted *request.User) bool {
			return nodeName(wanted.Name) == "" && !isServiceAccount(wanted.Name)
		}, identity: userInfo, groups: given},
		{name: legacy, concerns: func(_, _ *request.User) bool {
			return true
		}, identity: everything, groups: accountGroups},
	}
}

// onlyNamed: nodes and service accounts have no other groups, uid and extra than the server gives them.
func onlyNamed(u *request.User) bool { return u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0 }

// associated reports whether caller is a service account whose token is bound to the node that it wants to be.
func associated(caller, wanted *request.User) bool {
	name := nodeName(wanted.Name)
	return name != "" && onlyNamed(wanted) && caller.IsServiceAccount() &&
		slices.Equal(caller.Extra[request.ExtraNodeName], []string{name})
}

func ask(verb, group, resource, subresource, ns, name string) question {
	return question{Info: request.Info{IsResource: true, Verb: verb, APIGroup: group, APIVersion: "v1",
		Resource: resource, Subresource: subresource, Namespace: ns, Name: name}}
}

func node(verb string, named func(node string) string) func(*request.User) []question {
	return func(wanted *request.User) []question {
		return []question{ask(verb, authenticationv1.GroupName, "nodes", "", "", named(nodeName(wanted.Name)))}
	}
}

// userInfo asks for each part of a user. Some are not to be had with constraints.
func userInfo(u *request.User) []question {
	const verb = "impersonate:user-info"
	of := func(resource, subresource, name string) question {
		return ask(verb, authenticationv1.GroupName, resource, subresource, "", name)
	}
	out := []question{of("users", "", u.Name)}
	if u.UID != "" {
		out = append(out, of("uids", "", u.UID))
	}
	for _, g := range u.Groups {
		q := of("groups", "", g)
		switch g {
		case "":
			q.never = "impersonating the empty string group is not allowed"
		case request.GroupMasters:
			q.never = "impersonating the system:masters group is not allowed"
		}
		out = append(out, q)
	}
	for _, key := range sortedKeys(u.Extra) {
		if errs := validation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key); len(errs) > 0 {
			q := of("userextras", "", "")
			q.never = "impersonating an invalid key in extra is not allowed: " + errs.ToAggregate().Error()
			out = append(out, q)
			continue
		}
		for _, v := range u.Extra[key] {
			out = append(out, of("userextras", key, v))
		}
	}
	return out
}

// everything asks for each part of a user with the older verb, whose users, groups and service accounts are in the core
// group.
func everything(u *request.User) []question {
	const verb = "impersonate"
	var out []question
	if ns, name, ok := request.ServiceAccount(u.Name); ok {
		out = append(out, ask(verb, "", "serviceaccounts", "", ns, name))
	} else {
		out = append(out, ask(verb, "", "users", "", "", u.Name))
	}
	if u.UID != "" {
		out = append(out, ask(verb, authenticationv1.GroupName, "uids", "", "", u.UID))
	}
	for _, g := range u.Groups {
		out = append(out, ask(verb, "", "groups", "", "", g))
	}
	for _, key := range sortedKeys(u.Extra) {
		for _, v := range u.Extra[key] {
			out = append(out, ask(verb, authenticationv1.GroupName, "userextras", key, "", v))
		}
	}
	return out
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func isServiceAccount(user string) bool {
	_, _, ok := request.ServiceAccount(user)
	return ok
}

// nodeName is the node whose user that is; empty: none's.
func nodeName(user string) string {
	name, ok := strings.CutPrefix(user, request.NodeUserPrefix)
	if !ok || len(apivalidation.NameIsDNSSubdomain(name, false)) > 0 {
		return ""
	}
	return name
}

func nodeGroups(*request.User) []string { return []string{request.GroupNodes} }

// accountGroups are the groups that come with a service account, if no others are asked for.
func accountGroups(u *request.User) []string {
	if ns, _, ok := request.ServiceAccount(u.Name); ok && len(u.Groups) == 0 {
		return []string{request.GroupServiceAccounts, request.GroupServiceAccounts + ":" + ns}
	}
	return u.Groups
}

// completed is u with groups, and with the ones that it would have by being authenticated.
func completed(u *request.User, groups []string) *request.User {
	out := *u
	out.Groups = slices.Clone(groups)
	in := func(g string) bool { return slices.Contains(out.Groups, g) }
	switch {
	case u.Name == request.AnonymousUser:
		if !in(request.GroupUnauthenticated) {
			out.Groups = append(out.Groups, request.GroupUnauthenticated)
		}
	case !in(request.GroupAuthenticated) && !in(request.GroupUnauthenticated):
		out.Groups = append(out.Groups, request.GroupAuthenticated)
	}
	return &out
}
