package fairness

import (
	"cmp"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"bonsai/pkg/apiserver/request"
)

const accountPrefix = request.ServiceAccountPrefix

// classifier is a configuration, compiled. It does not change. Any number of requests read it at once, without a lock.
type classifier struct {
	// The rules by who they are for, each list in the order in which they are asked.
	anybody  []*rule
	users    map[string][]*rule
	groups   map[string][]*rule
	accounts map[string][]*rule // by the namespace of service accounts
	// rest is where a request goes that no rule matches.
	rest *schema
}

// schema is a FlowSchema, as it is now.
type schema struct {
	name string
	// uid and levelUID are the values of the headers; nil for what is not stored. They are here, not with the level, as
	// requests read them while the dispatcher makes the next classifier.
	uid, levelUID []string
	method        flowcontrolv1.FlowDistinguisherMethodType
	level         *level
	stats         *stats
}

// rule is one rule of a schema. Lower orders are asked first. A rule that several subjects share stands in several
// lists, as the same pointer.
type rule struct {
	order     int
	schema    *schema
	resources []resourceRule
	paths     []pathRule
}

type resourceRule struct {
	verbs, groups, resources, namespaces words
	clusterScope                         bool
}

type pathRule struct{ verbs, paths words }

// words are those of a list, or all. Most schemas name a few verbs or groups, for which a scan is faster than a hash.
// Both stay immutable, so requests share them.
type words struct {
	all  bool
	list []string
	set  map[string]struct{} // instead of a long list
}

// longList is from which length on a list is looked up and not looked through.
const longList = 16

func newWords(list []string) words {
	switch {
	case slices.Contains(list, "*"):
		return words{all: true}
	case len(list) < longList:
		return words{list: list}
	}
	w := words{set: make(map[string]struct{}, len(list))}
	for _, s := range list {
		w.set[s] = struct{}{}
	}
	return w
}

func (w *words) have(s string) bool {
	if w.all {
		return true
	}
	if w.set != nil {
		_, ok := w.set[s]
		return ok
	}
	return slices.Contains(w.list, s)
}

// compile makes a classifier of schemas, each with the level that it refers to. rest is where requests go that match
// none. find returns nil for a schema whose level is missing or leaving. Such a schema matches nothing, as the
// condition Dangling says; its requests go on to the next one. Names break ties of precedence, so every server chooses
// alike.
func compile(objects []*flowcontrolv1.FlowSchema, find func(*flowcontrolv1.FlowSchema) *schema,
	rest *schema) *classifier {
	s := &classifier{users: map[string][]*rule{}, groups: map[string][]*rule{}, accounts: map[string][]*rule{},
		rest: rest}
	objects = slices.SortedFunc(slices.Values(objects), func(a, b *flowcontrolv1.FlowSchema) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), cmp.Compare(a.Name, b.Name))
	})
	order := 0
	for _, f := range objects {
		to := find(f)
		if to == nil {
			continue
		}
		for i := range f.Spec.Rules {
			order++
			s.add(newRule(order, to, &f.Spec.Rules[i]), f.Spec.Rules[i].Subjects)
		}
	}
	return s
}

func newRule(order int, to *schema, from *flowcontrolv1.PolicyRulesWithSubjects) *rule {
	r := &rule{order: order, schema: to}
	for _, x := range from.ResourceRules {
		r.resources = append(r.resources,
			resourceRule{verbs: newWords(x.Verbs), groups: newWords(x.APIGroups), resources: newWords(x.Resources),
				namespaces: newWords(x.Namespaces), clusterScope: x.ClusterScope})
	}
	for _, x := range from.NonResourceRules {
		r.paths = append(r.paths, pathRule{verbs: newWords(x.Verbs), paths: newWords(x.NonResourceURLs)})
	}
	return r
}

// add files a rule under those that it is for; the same subject twice does no harm.
func (s *classifier) add(r *rule, subjects []flowcontrolv1.Subject) {
	for _, x := range subjects {
		switch {
		case x.User != nil && x.User.Name == flowcontrolv1.NameAll,
			x.Group != nil && x.Group.Name == flowcontrolv1.NameAll:
			s.anybody = append(s.anybody, r)
		case x.User != nil:
			s.users[x.User.Name] = append(s.users[x.User.Name], r)
		case x.Group != nil:
			s.groups[x.Group.Name] = append(s.groups[x.Group.Name], r)
		case x.ServiceAccount != nil && x.ServiceAccount.Name == flowcontrolv1.NameAll:
			s.accounts[x.ServiceAccount.Namespace] = append(s.accounts[x.ServiceAccount.Namespace], r)
		case x.ServiceAccount != nil:
			name := accountPrefix + x.ServiceAccount.Namespace + ":" + x.ServiceAccount.Name
			s.users[name] = append(s.users[name], r)
		}
	}
}

// usualLists is for how many lists of rules there is room without making any: three, and one for each group of a user.
const usualLists = 12

// classify is the schema of a request: that of the first rule which matches. It merges the lists that concern the user,
// each sorted by order, and tries the rules in the common order. The lists are slices of shared arrays: advancing one
// changes only the local header. A user with more groups than there is room for costs an allocation and nothing else.
func (s *classifier) classify(user *request.User, info *request.Info) *schema {
	var room [usualLists][]*rule
	lists := append(room[:0], s.anybody, s.users[user.Name])
	if name, ok := strings.CutPrefix(user.Name, accountPrefix); ok {
		ns, _, _ := strings.Cut(name, ":")
		lists = append(lists, s.accounts[ns])
	}
	for _, g := range user.Groups {
		if rules := s.groups[g]; len(rules) > 0 {
			lists = append(lists, rules)
		}
	}
	for {
		first := -1
		for i, l := range lists {
			if len(l) > 0 && (first < 0 || l[0].order < lists[first][0].order) {
				first = i
			}
		}
		if first < 0 {
			return s.rest
		}
		r := lists[first][0]
		if r.matches(info) {
			return r.schema
		}
		lists[first] = lists[first][1:]
	}
}

func (r *rule) matches(info *request.Info) bool {
	if !info.IsResource {
		for i := range r.paths {
			if p := &r.paths[i]; p.verbs.have(info.Verb) && p.matches(info.Path) {
				return true
			}
		}
		return false
	}
	for i := range r.resources {
		x := &r.resources[i]
		if x.verbs.have(info.Verb) && x.groups.have(info.APIGroup) && x.covers(info) && x.has(info) {
			return true
		}
	}
	return false
}

// covers reports whether the rule is about the namespace of a request, or about requests without one.
func (x *resourceRule) covers(info *request.Info) bool {
	if info.Namespace == "" {
		return x.clusterScope
	}
	return x.namespaces.have(info.Namespace)
}

// has reports whether the rule names the resource of a request. "pods" does not cover "pods/log", and only "*" covers
// subresources that are not named.
func (x *resourceRule) has(info *request.Info) bool {
	if info.Subresource == "" || x.resources.all {
		return x.resources.have(info.Resource)
	}
	// Looked through, so that no text is put together for each request.
	for _, s := range x.resources.list {
		if resource, sub, ok := strings.Cut(s, "/"); ok && resource == info.Resource && sub == info.Subresource {
			return true
		}
	}
	return x.resources.set != nil && x.resources.have(info.Resource+"/"+info.Subresource)
}

// matches reports whether a path is one of the rule's, or below one that ends in "/*".
func (p *pathRule) matches(path string) bool {
	if p.paths.have(path) {
		return true
	}
	below := func(s string) bool { return strings.HasSuffix(s, "/*") && strings.HasPrefix(path, s[:len(s)-1]) }
	for s := range p.paths.set {
		if below(s) {
			return true
		}
	}
	return slices.ContainsFunc(p.paths.list, below)
}

// flow is what tells the requests of one schema apart. Requests of one flow share its hand of queues. Without a
// distinguisher the whole schema is one flow, and one client can fill the queues for all others in it.
func (s *schema) flow(user *request.User, info *request.Info) string {
	switch s.method {
	case flowcontrolv1.FlowDistinguisherMethodByUserType:
		return user.Name
	case flowcontrolv1.FlowDistinguisherMethodByNamespaceType:
		return info.Namespace
	}
	return ""
}
