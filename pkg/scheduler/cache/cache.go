// Package cache keeps what the scheduler knows of nodes and of the pods on them, including pods that were given a node
// but whose binding the API server has not shown yet ("assumed"). Refresh brings a Snapshot up to date by the nodes
// that changed.
//
// A pod is assumed by Assume; then either Add confirms it (its watch event came) or Forget takes it back (binding
// failed). An assumed pod never expires, as in Kubernetes: the room of one that is dropped too early would be given
// away twice. No event is lost for good, because a watch that ends is followed by a list.
//
// Who calls: handlers of watch events add and remove nodes and pods; the scheduling goroutine assumes pods and
// refreshes its Snapshot before each decision; the goroutines of bindings report how a binding ended. An assumed pod
// makes the next decision see the room as taken, long before the watch shows the binding: without it two pods would get
// the same room.
package cache

import (
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/model"
)

// Cache is safe for concurrent use.
type Cache struct {
	// mu guards all below: each change touches several of them. It is held for one change or for a Refresh; decisions
	// are made from the Snapshot, without it.
	mu sync.Mutex
	// generation counts the changes that a verdict may depend on, version all changes of nodes and their pods: a change
	// that no plug-in reads must reach the snapshot, but must not have the node evaluated again.
	generation, version int64
	nodes               map[string]*node
	// slots are the nodes by slot, nil where free. A slot is used again, so that verdicts, which are kept by slot, stay
	// dense.
	slots []*node
	free  []int
	dirty map[*node]bool // those that the snapshot does not have as they are
	gone  []int          // slots emptied since the last Refresh
	pods  map[types.UID]*placed
	// images are those that nodes have; epoch changes with them and with the number of nodes.
	images map[string]model.Image
	epoch  int64
}

// node is a name with what is on it; without the Node object (pods may be seen before their node) it has no slot.
type node struct {
	name string
	info *model.NodeInfo
	slot int // -1: none
}

type placed struct {
	info    *model.PodInfo
	node    *node
	assumed bool
}

// New returns an empty cache.
func New() *Cache {
	return &Cache{nodes: map[string]*node{}, dirty: map[*node]bool{}, pods: map[types.UID]*placed{},
		images: map[string]model.Image{}}
}

func (c *Cache) node(name string) *node {
	n := c.nodes[name]
	if n == nil {
		n = &node{name: name, info: model.NewNodeInfo(nil), slot: -1}
		c.nodes[name] = n
	}
	return n
}

// touch notes a change of a node that verdicts may depend on. Every verdict that was kept for the node is stale then:
// each names the generation that it is of.
func (c *Cache) touch(n *node) {
	c.generation++
	n.info.Generation = c.generation
	c.mark(n)
}

// mark has the next Refresh copy the node.
func (c *Cache) mark(n *node) {
	c.version++
	n.info.Version = c.version
	if n.slot >= 0 {
		c.dirty[n] = true
	}
}

// SetNode adds or replaces a node.
//
// Pods that were seen before their node are on it already.
func (c *Cache) SetNode(obj *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node(obj.Name)
	c.removeImages(n)
	// The last slot that became free is used first.
	if n.slot < 0 {
		if last := len(c.free) - 1; last >= 0 {
			n.slot, c.free = c.free[last], c.free[:last]
			c.slots[n.slot] = n
		} else {
			n.slot = len(c.slots)
			c.slots = append(c.slots, n)
		}
		c.epoch++
	}
	n.info.SetNode(obj)
	n.info.Slot = n.slot
	c.addImages(n)
	c.touch(n)
}

// SetVolumeLimits sets how many volumes of each installed CSI driver a node can have attached. The node may be added
// before or after.
func (c *Cache) SetVolumeLimits(name string, limits map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node(name)
	if maps.Equal(n.info.VolumeLimits, limits) {
		c.drop(n)
		return
	}
	n.info.VolumeLimits = limits
	c.touch(n)
	c.drop(n)
}

// Touch says that verdicts on a node may be others now, for what is no part of it here: its devices.
func (c *Cache) Touch(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[name]; n != nil {
		c.touch(n)
	}
}

// RemoveNode forgets a node; pods still on it are kept until they go.
//
// The watch may show the node's deletion before that of its pods. Their later Remove finds the entry, and drops it with
// the last of them.
func (c *Cache) RemoveNode(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[name]
	if n == nil || n.slot < 0 {
		return
	}
	c.removeImages(n)
	delete(c.dirty, n)
	c.slots[n.slot] = nil
	c.free = append(c.free, n.slot)
	c.gone = append(c.gone, n.slot)
	n.slot = -1
	n.info.SetNode(nil)
	c.epoch++
	c.generation++
	c.drop(n)
}

// drop deletes the entry of a node that has neither object, pods nor limits. With those it stays: their Remove, and a
// node that comes back, must find them.
func (c *Cache) drop(n *node) {
	if n.slot < 0 && len(n.info.Pods) == 0 && n.info.VolumeLimits == nil {
		delete(c.nodes, n.name)
	}
}

func (c *Cache) addImages(n *node) {
	for name := range n.info.Images {
		c.images[name] = c.images[name].On(n.info, name)
		c.epoch++
	}
}

func (c *Cache) removeImages(n *node) {
	for name := range n.info.Images {
		image := c.images[name]
		if image.Nodes--; image.Nodes == 0 {
			delete(c.images, name)
		} else {
			c.images[name] = image
		}
		c.epoch++
	}
}

// Assume counts pod on node before it is bound.
//
// The scheduling goroutine calls it between two decisions. An error means that the pod got a node by another way.
func (c *Cache) Assume(p *model.PodInfo, nodeName string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.pods[p.Pod.UID]; ok {
		return fmt.Errorf("assuming pod %s on node %s: it is on a node already", p.Key(), nodeName)
	}
	c.put(p, nodeName, true)
	return nil
}

func (c *Cache) put(p *model.PodInfo, nodeName string, assumed bool) {
	n := c.node(nodeName)
	n.info.AddPod(p)
	c.pods[p.Pod.UID] = &placed{info: p, node: n, assumed: assumed}
	c.touch(n)
}

func (c *Cache) take(pl *placed) {
	delete(c.pods, pl.info.Pod.UID)
	pl.node.info.RemovePod(pl.info.Pod)
	c.touch(pl.node)
	c.drop(pl.node)
}

// Forget takes back Assume; a pod that was confirmed meanwhile stays.
//
// The watch may have been faster than the answer of the binding: what it shows is true.
func (c *Cache) Forget(p *model.PodInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pl := c.pods[p.Pod.UID]; pl != nil && pl.assumed {
		c.take(pl)
	}
}

// Add counts a pod on its spec.nodeName, confirms an assumed one, or replaces what was known of it.
//
// A pod that turns up on another node than it was assumed on was bound by somebody else, who wins.
func (c *Cache) Add(p *model.PodInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pl := c.pods[p.Pod.UID]
	if pl == nil {
		c.put(p, p.Pod.Spec.NodeName, false)
		return
	}
	if pl.node.name == p.Pod.Spec.NodeName && same(pl.info, p) {
		// Nothing that a verdict depends on has changed: no new generation, no new evaluation. But the next snapshot
		// must have the newer pod: preemption reads its status.
		pl.info, pl.assumed = p, false
		pl.node.info.ReplacePod(p)
		c.mark(pl.node)
		return
	}
	c.take(pl)
	c.put(p, p.Pod.Spec.NodeName, false)
}

// same reports whether two states of a pod are alike to every plug-in.
func same(a, b *model.PodInfo) bool {
	return (a.Pod.DeletionTimestamp == nil) == (b.Pod.DeletionTimestamp == nil) &&
		maps.Equal(a.Pod.Labels, b.Pod.Labels) &&
		a.Requests.Equal(&b.Requests) && a.NonZero.Equal(&b.NonZero) && a.HasTerms() == b.HasTerms() &&
		model.Priority(a.Pod) == model.Priority(b.Pod)
}

// Remove counts out a pod that is gone and returns what was known of it, nil if nothing was.
func (c *Cache) Remove(uid types.UID) *model.PodInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	pl := c.pods[uid]
	if pl == nil {
		return nil
	}
	c.take(pl)
	return pl.info
}

// Has reports whether the pod is on a node, and whether that is only assumed.
func (c *Cache) Has(uid types.UID) (known, assumed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pl := c.pods[uid]
	return pl != nil, pl != nil && pl.assumed
}

// Counts are the numbers of what the cache holds. Assumed are those of Pods whose binding no watch has shown yet.
type Counts struct{ Nodes, Pods, Assumed int }

// Counts returns how much the cache holds.
func (c *Cache) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := Counts{Nodes: len(c.slots) - len(c.free), Pods: len(c.pods)}
	for _, pl := range c.pods {
		if pl.assumed {
			out.Assumed++
		}
	}
	return out
}

// Refresh makes s equal to the cache. It costs as much as nodes changed since the last Refresh; always pass the same s.
//
// Only the scheduling goroutine calls it, and owns s. Each changed node is copied under the lock, and the decision that
// follows reads s without one.
func (c *Cache) Refresh(s *model.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Generation == c.generation && s.ImagesEpoch == c.epoch && len(c.dirty) == 0 {
		return
	}
	for _, slot := range c.gone { // before the changed nodes: one of them may have an emptied slot
		s.Set(slot, nil)
	}
	c.gone = c.gone[:0]
	for n := range c.dirty {
		s.Set(n.slot, n.info.Clone())
		delete(c.dirty, n)
	}
	if s.ImagesEpoch != c.epoch {
		s.Images = maps.Clone(c.images)
		s.ImagesEpoch = c.epoch
	}
	s.Generation = c.generation
}
