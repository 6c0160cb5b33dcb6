package garbagecollector

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// identity says where an object is served and which one it is. An object known only from the references of others has a
// kind but no resource yet.
type identity struct {
	resource        schema.GroupVersionResource
	kind            schema.GroupVersionKind
	namespace, name string
	uid             types.UID
}

// node is one object in the graph of owners and dependents.
type node struct {
	identity
	// owners are the references as last reported. dependents is the other direction, by uid; both change together under
	// the mutex of the graph, in relink and unlink only.
	owners     []metav1.OwnerReference
	dependents map[types.UID]*node
	// deleting: it has a deletionTimestamp. foreground and orphaning: and the finalizer that asks for that.
	deleting, foreground, orphaning bool
	// virtual means that only references of others name the object: whether it exists must be looked up. missing means
	// that it was not found where the first reference says that it is. The node stays, with its dependents, as long as
	// something refers to it: another reference, from another namespace, may be the right one.
	virtual, missing bool
	// gone: a watch has shown the end of this very object, which need not be looked up, nor can it be once its kind is
	// served no more. It stays as a virtual one does.
	gone bool
}

// todo is what a change of the graph calls for.
type todo struct{ check, orphan []types.UID }

// graph knows which object owns which, by UID. It holds what the watches reported. About deletion it decides only which
// objects need a look; collect.go asks the API server before it deletes anything. It is safe for concurrent use.
//
// Its size is that of the cluster: one node for each watched object, and one for each owner that only references name.
// A node of the second kind goes with its last reference.
type graph struct {
	mu    sync.Mutex
	nodes map[types.UID]*node
}

func newGraph() *graph { return &graph{nodes: map[types.UID]*node{}} }

// observe takes in an object as a watch reported it.
//
// The goroutine of a resource's watch calls it for every addition and change. Most changes touch neither owners nor
// deletion, and call for nothing.
func (g *graph) observe(id identity, obj metav1.Object) (t todo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[id.uid]
	fresh := n == nil
	if fresh {
		n = &node{}
		g.nodes[id.uid] = n
	}
	if n.virtual {
		t.check = append(t.check, n.mismatched(id)...)
	}
	n.identity, n.virtual, n.missing, n.gone = id, false, false, false
	t.check = append(t.check, g.relink(n, obj.GetOwnerReferences())...)
	// A state calls for work when it begins, not as long as it lasts: a controller may write the object many times
	// meanwhile.
	was := *n
	n.deleting = obj.GetDeletionTimestamp() != nil
	n.foreground = n.deleting && slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents)
	n.orphaning = n.deleting && slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents)
	if n.orphaning && !was.orphaning {
		t.orphan = append(t.orphan, id.uid)
	}
	// The dependents first learn that their owner waits; the owner itself may have none, and can then go at once.
	if n.foreground && !was.foreground {
		t.check = append(t.check, n.children()...)
		t.check = append(t.check, id.uid)
	}
	return t
}

// meant reports whether a reference in namespace means this very object: one of its UID, but of another kind, name or
// namespace, it does not.
func (id identity) meant(ref metav1.OwnerReference, namespace string) bool {
	return id.uid == ref.UID && id.name == ref.Name && (id.namespace == "" || id.namespace == namespace) &&
		id.kind.GroupKind() == schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// mismatched returns the dependents whose reference turns out to be wrong: the object of that UID is not what it means.
func (n *node) mismatched(id identity) (out []types.UID) {
	for uid, d := range n.dependents {
		if !slices.ContainsFunc(d.owners, func(r metav1.OwnerReference) bool { return id.meant(r, d.namespace) }) {
			out = append(out, uid)
		}
	}
	return out
}

func (n *node) children() []types.UID {
	out := make([]types.UID, 0, len(n.dependents))
	for uid := range n.dependents {
		out = append(out, uid)
	}
	return out
}

// relink brings the edges from n to its owners up to date; the caller holds g.mu. It returns what needs a look: owners
// that no watch has reported, owners that n no longer blocks, and n itself if it lost an owner.
func (g *graph) relink(n *node, refs []metav1.OwnerReference) (check []types.UID) {
	// First the edges that end, or stop blocking. An owner in foreground deletion may have waited for exactly this.
	for _, old := range n.owners {
		i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == old.UID })
		owner := g.nodes[old.UID]
		if i < 0 && owner != nil {
			delete(owner.dependents, n.uid)
			g.dropVirtual(owner)
		}
		if blocks(old) && (i < 0 || !blocks(refs[i])) && owner != nil && owner.foreground {
			check = append(check, owner.uid)
		}
		if i < 0 {
			check = append(check, n.uid)
		}
	}
	// Then those that begin. An owner that no watch has shown may be gone, or just younger than the cache: only a
	// lookup can say. A new edge to an owner that waits or is missing means that n itself has to be judged now, because
	// the event of the owner was in the past.
	for _, ref := range refs {
		owner := g.nodes[ref.UID]
		if owner == nil {
			owner = virtualOwner(ref, n.namespace)
			g.nodes[ref.UID] = owner
			check = append(check, ref.UID)
		} else if !owner.virtual && !owner.meant(ref, n.namespace) {
			check = append(check, n.uid)
		}
		if owner.dependents == nil {
			owner.dependents = map[types.UID]*node{}
		}
		if _, known := owner.dependents[n.uid]; !known && (owner.foreground || owner.missing) {
			check = append(check, n.uid)
		}
		owner.dependents[n.uid] = n
	}
	n.owners = slices.Clone(refs)
	return check
}

// virtualOwner takes the namespace of the dependent, which is the only one that a reference can mean. For a
// cluster-scoped owner it is ignored (at).
func virtualOwner(ref metav1.OwnerReference, namespace string) *node {
	return &node{virtual: true,
		identity: identity{kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), namespace: namespace,
			name: ref.Name, uid: ref.UID}}
}

// dropVirtual forgets an owner that only references named, once the last reference is gone. The caller holds g.mu.
func (g *graph) dropVirtual(n *node) {
	if n.virtual && len(n.dependents) == 0 {
		delete(g.nodes, n.uid)
	}
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// remove takes out an object that is gone. Its dependents need a look, and so do the owners that waited for it. A node
// that others still refer to stays, marked as virtual, missing and, if a watch had shown the object, gone: so it is not
// taken for an owner that is alive.
//
// A watch calls it, after a deletion or when a new list lacks the object.
func (g *graph) remove(uid types.UID) (t todo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return t
	}
	t.check = append(n.children(), g.unlink(n)...)
	n.gone = n.gone || !n.virtual
	n.virtual, n.missing = true, true
	g.dropVirtual(n)
	return t
}

// unlink takes n from its owners, and clears what was noted of its deletion. It returns the owners that wait for their
// dependents. The caller holds g.mu.
func (g *graph) unlink(n *node) (waiting []types.UID) {
	for _, ref := range n.owners {
		owner := g.nodes[ref.UID]
		if owner == nil {
			continue
		}
		delete(owner.dependents, n.uid)
		g.dropVirtual(owner)
		if owner.foreground {
			waiting = append(waiting, owner.uid)
		}
	}
	n.owners, n.deleting, n.foreground, n.orphaning = nil, false, false, false
	return waiting
}

// sawEnd reports whether a watch has shown the end of the owner that a reference in namespace means.
func (g *graph) sawEnd(ref metav1.OwnerReference, namespace string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[ref.UID]
	return n != nil && n.gone && n.meant(ref, namespace)
}

// leave drops the objects of a resource that is watched no more. Those that others refer to stay as virtual nodes,
// which are looked up at the API server when they matter.
//
// Their dependents are not queued: that a resource is no longer served does not say that its objects are gone.
func (g *graph) leave(gvr schema.GroupVersionResource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.nodes {
		if n.virtual || n.resource != gvr {
			continue
		}
		g.unlink(n)
		n.resource, n.virtual = schema.GroupVersionResource{}, true
		g.dropVirtual(n)
	}
}

// miss notes that the API server does not have a virtual owner. Its dependents are to be looked at, each by its own
// reference. If a watch has shown the owner since, it notes nothing.
func (g *graph) miss(uid types.UID) (t todo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[uid]; n != nil && n.virtual {
		n.missing = true
		t.check = n.children()
	}
	return t
}

// get returns a copy of a node without its edges, and whether it is there.
func (g *graph) get(uid types.UID) (node, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return node{}, false
	}
	c := *n
	c.dependents = nil
	return c, true
}

// dependent is what the owner's deletion needs to know of one of its dependents.
type dependent struct {
	identity
	blocking, foreground bool
}

// dependentsOf returns the dependents of an owner.
//
// The result is a copy of this moment. A dependent that a watch reports later is judged by itself, as one whose owner
// is going or gone.
func (g *graph) dependentsOf(uid types.UID) []dependent {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.nodes[uid]
	if n == nil {
		return nil
	}
	out := make([]dependent, 0, len(n.dependents))
	for _, d := range n.dependents {
		dep := dependent{identity: d.identity, foreground: d.foreground}
		for _, ref := range d.owners {
			dep.blocking = dep.blocking || ref.UID == uid && blocks(ref)
		}
		out = append(out, dep)
	}
	return out
}
