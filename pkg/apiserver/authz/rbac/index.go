package rbac

import (
	"fmt"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/request"
)

// name is an object's namespace ("" for cluster-wide) and name.
type name struct{ namespace, name string }

// subject is one of a binding's subjects, as a user matches it: a service account is the user of that name.
type subject struct{ kind, name string }

// grant is one binding as the index keeps it.
type grant struct {
	binding name
	role    rbacv1.RoleRef
	// all are the binding's subjects, to take it out of the index again. accounts are those that it names as service
	// accounts, for the reason of a decision.
	all      []subject
	accounts map[subject]bool
}

// index finds the bindings of a subject without looking at any other. Roles are kept by reference: they are read-only.
// Four followers write it, each on its own goroutine, and requests read it. Roles and bindings may come in any order: a
// binding whose role is not there yet grants nothing until the role comes.
type index struct {
	mu       sync.RWMutex
	roles    map[name][]rbacv1.PolicyRule
	bindings map[name]*grant
	// bySubject is first by the binding's namespace ("" for ClusterRoleBindings).
	bySubject map[string]map[subject][]*grant
}

func newIndex() *index {
	return &index{roles: map[name][]rbacv1.PolicyRule{}, bindings: map[name]*grant{},
		bySubject: map[string]map[subject][]*grant{}}
}

// nameOf reads namespace and name from the end of a key below prefix.
func nameOf(key, prefix string) name {
	ns, n, ok := strings.Cut(strings.TrimPrefix(key, prefix), "/")
	if !ok {
		return name{name: ns}
	}
	return name{ns, n}
}

// roleHandler and bindingHandler are the index as follow.Handlers.
type roleHandler struct {
	*index
	prefix string
}

func (h roleHandler) Put(key string, obj runtime.Object) {
	var rules []rbacv1.PolicyRule
	switch r := obj.(type) {
	case *rbacv1.Role:
		rules = r.Rules
	case *rbacv1.ClusterRole:
		rules = r.Rules
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.roles[nameOf(key, h.prefix)] = rules
}

func (h roleHandler) Delete(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.roles, nameOf(key, h.prefix))
}

type bindingHandler struct {
	*index
	prefix string
}

// Put implements follow.Handler. The old grant leaves and the new one enters under one lock: no request sees the
// binding missing in between, or both at once.
func (h bindingHandler) Put(key string, obj runtime.Object) {
	g := &grant{binding: nameOf(key, h.prefix)}
	var subjects []rbacv1.Subject
	switch b := obj.(type) {
	case *rbacv1.RoleBinding:
		g.role, subjects = b.RoleRef, b.Subjects
	case *rbacv1.ClusterRoleBinding:
		g.role, subjects = b.RoleRef, b.Subjects
	}
	seen := map[subject]bool{}
	for _, s := range subjects {
		k := subjectOf(s, g.binding.namespace)
		if !seen[k] {
			seen[k] = true
			g.all = append(g.all, k)
			if s.Kind == rbacv1.ServiceAccountKind {
				if g.accounts == nil {
					g.accounts = map[subject]bool{}
				}
				g.accounts[k] = true
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(g.binding)
	h.addLocked(g)
}

func (h bindingHandler) Delete(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(nameOf(key, h.prefix))
}

func (i *index) addLocked(g *grant) {
	i.bindings[g.binding] = g
	m := i.bySubject[g.binding.namespace]
	if m == nil {
		m = map[subject][]*grant{}
		i.bySubject[g.binding.namespace] = m
	}
	for _, s := range g.all {
		m[s] = append(m[s], g)
	}
}

// removeLocked takes a binding out of the index. It builds new lists and removes empty maps, so that deleted bindings
// leave nothing behind.
func (i *index) removeLocked(n name) {
	g := i.bindings[n]
	if g == nil {
		return
	}
	delete(i.bindings, n)
	m := i.bySubject[n.namespace]
	for _, s := range g.all {
		var rest []*grant
		for _, other := range m[s] {
			if other != g {
				rest = append(rest, other)
			}
		}
		if m[s] = rest; rest == nil {
			delete(m, s)
		}
	}
	if len(m) == 0 {
		delete(i.bySubject, n.namespace)
	}
}

func (i *index) knows(role, binding types.NamespacedName) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	_, hasRole := i.roles[name{role.Namespace, role.Name}]
	_, hasBinding := i.bindings[name{binding.Namespace, binding.Name}]
	return (hasRole || role.Name == "") && (hasBinding || binding.Name == "")
}

// subjectOf: in a RoleBinding a service account without a namespace is one of the binding's.
func subjectOf(s rbacv1.Subject, bindingNamespace string) subject {
	if s.Kind != rbacv1.ServiceAccountKind {
		return subject{s.Kind, s.Name}
	}
	ns := s.Namespace
	if ns == "" {
		ns = bindingNamespace
	}
	return subject{rbacv1.UserKind, request.ServiceAccountPrefix + ns + ":" + s.Name}
}

// visit calls f with every rule that user has in namespace (cluster-wide rules always) until f returns false, and
// returns the roles that bindings name and that are not there. f runs under the read lock: it must not wait, and must
// not change the rules. The subjects are the user and each of his groups, so the cost grows with these and not with the
// number of bindings in the cluster.
func (i *index) visit(user *request.User, namespace string,
	f func(g *grant, s subject, r *rbacv1.PolicyRule) bool) (missing []error) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	scopes := []string{"", namespace}
	if namespace == "" {
		scopes = scopes[:1]
	}
	reported := map[name]bool{}
	for _, scope := range scopes {
		m := i.bySubject[scope]
		if len(m) == 0 {
			continue
		}
		for k := -1; k < len(user.Groups); k++ {
			s := subject{rbacv1.UserKind, user.Name}
			if k >= 0 {
				s = subject{rbacv1.GroupKind, user.Groups[k]}
			}
			for _, g := range m[s] {
				n := name{name: g.role.Name}
				if g.role.Kind == "Role" {
					n.namespace = g.binding.namespace
				}
				rules, ok := i.roles[n]
				if !ok && !reported[n] {
					reported[n] = true
					missing = append(missing, notFound(g.role))
				}
				for r := range rules {
					if !f(g, s, &rules[r]) {
						return missing
					}
				}
			}
		}
	}
	return missing
}

func notFound(r rbacv1.RoleRef) error {
	return fmt.Errorf("%s.rbac.authorization.k8s.io %q not found", strings.ToLower(r.Kind), r.Name)
}
