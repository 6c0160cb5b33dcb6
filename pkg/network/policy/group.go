package policy

import (
	"k8s.io/apimachinery/pkg/labels"
)

// namespace has what belongs to one namespace. It may exist before the API has shown the namespace, or after it is
// gone: it is unknown then, and no selector selects it.
//
// It goes when it is unknown and nothing refers to it (forgetLocked).
type namespace struct {
	known    bool
	labels   labels.Set
	pods     map[string]*pod
	policies map[string]*policy
	groups   map[*group]bool // those of this namespace alone
}

// group is the pods that a rule's peer selects: those of one namespace, or of all namespaces that a selector selects.
// Policies whose peers say the same share it, so that a thousand policies of one template cost one set in the kernel.
// key is the text of its namespace, or the selector of namespaces, and of the selector of pods.
type group struct {
	key string
	// namespace is the only one, if namespaces is nil.
	namespace  string
	namespaces labels.Selector
	pods       labels.Selector
	policies   int // that name it
	left       int // pods for which there was no room
}

// matchesNamespace reports whether pods of ns, which is called name, may belong to the group.
//
// A namespace that the API has not shown yet has no labels to judge: its pods join when it is known.
func (g *group) matchesNamespace(name string, ns *namespace) bool {
	if g.namespaces == nil {
		return g.namespace == name
	}
	return ns.known && g.namespaces.Matches(ns.labels)
}

// matchLocked brings the group's members among the pods of a namespace up to date.
func (s *State) matchLocked(g *group, ns *namespace) {
	for _, p := range ns.pods {
		s.memberLocked(g, p, g.matchesNamespace(p.name.Namespace, ns) && g.pods.Matches(p.labels))
	}
}

// memberLocked makes a pod a member of a group, or ends that. Beyond room nobody joins: a rule then allows less than it
// should, never more. left counts them, for the log and for refillLocked.
func (s *State) memberLocked(g *group, p *pod, member bool) {
	if p.groups[g] == member {
		return
	}
	switch {
	case !member:
		delete(p.groups, g)
		s.members--
	case s.members >= s.room:
		g.left++
		return
	default:
		p.groups[g] = true
		s.members++
	}
	s.touchLocked(p)
}

// refillLocked fills groups again that had no room for some pods, once there is room. Take calls it, so that a burst of
// changes costs one walk.
func (s *State) refillLocked() {
	for _, g := range s.groups {
		if g.left > 0 && s.members < s.room {
			g.left = 0
			s.fillLocked(g)
		}
	}
}

// fillLocked finds the members of a group.
func (s *State) fillLocked(g *group) {
	if g.namespaces == nil {
		s.matchLocked(g, s.namespaceLocked(g.namespace))
		return
	}
	for _, ns := range s.namespaces {
		s.matchLocked(g, ns)
	}
}

// useGroupLocked counts one more policy that names the group, and makes it if there is none.
func (s *State) useGroupLocked(want *group) {
	g := s.groups[want.key]
	if g == nil {
		g = want
		s.groups[g.key], s.changedGroups[g.key] = g, true
		if g.namespaces == nil {
			s.namespaceLocked(g.namespace).groups[g] = true
		} else {
			s.wide[g] = true
		}
		s.fillLocked(g)
	}
	g.policies++
}

// leaveGroupLocked counts one policy less. The walk over all pods is rare: it is for the last policy with this peer.
func (s *State) leaveGroupLocked(key string) {
	g := s.groups[key]
	if g.policies--; g.policies > 0 {
		return
	}
	delete(s.groups, key)
	s.changedGroups[key] = true
	delete(s.wide, g)
	if g.namespaces == nil {
		delete(s.namespaceLocked(g.namespace).groups, g)
	}
	for _, p := range s.pods {
		s.memberLocked(g, p, false)
	}
	s.forgetLocked(g.namespace)
}
