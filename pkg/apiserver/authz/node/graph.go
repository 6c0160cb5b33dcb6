package node

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/podspec"
)

// object names one namespaced object that a node may need, by its resource.
type object struct{ resource, namespace, name string }

// needsOf returns what p gives its node a right to read: p itself first, then all that it refers to. A mirror pod gives
// nothing but itself: the node wrote it, and what runs is already known to the node.
func needsOf(p *corev1.Pod) []object {
	list := []object{{"pods", p.Namespace, p.Name}}
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return list
	}
	for r := range podspec.References(p) {
		if r.Name != "" {
			list = append(list, object{r.Resource, p.Namespace, r.Name})
		}
	}
	return list
}

// graph knows which node needs which objects, from the pods bound to it, the volumes that their claims are bound to,
// the volumes attached to it, and the devices on it. It is the follow.Handler of pods; volumes and named are those of
// the others.
type graph struct {
	mu    sync.RWMutex
	pods  map[string]pod // by key
	nodes map[string]map[object]int
	// volumes are the PersistentVolumes that name a claim, by name; secrets says which volumes name a secret.
	volumes map[string]boundVolume
	secrets map[object]map[string]bool
	// named are the nodes that VolumeAttachments, ResourceSlices and PodCertificateRequests name.
	named map[object]string
	// changed is closed and replaced when a pod comes to a node, and when a volume gets a claim, or an object names a
	// node.
	changed chan struct{}
}

// boundVolume is what the graph keeps of a PersistentVolume.
type boundVolume struct {
	claim   object
	secrets []object
}

// pod is what the graph keeps of one.
type pod struct {
	node  string
	needs []object // the pod itself first
}

func newGraph() *graph {
	return &graph{pods: map[string]pod{}, nodes: map[string]map[object]int{}, volumes: map[string]boundVolume{},
		secrets: map[object]map[string]bool{},
		named:   map[object]string{}, changed: make(chan struct{})}
}

// Put implements follow.Handler.
func (g *graph) Put(key string, obj runtime.Object) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.putPodLocked(key, p)
}

// tellLocked wakes those who wait for news.
func (g *graph) tellLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *graph) putPodLocked(key string, p *corev1.Pod) {
	n := pod{node: p.Spec.NodeName, needs: needsOf(p)}
	if old, known := g.pods[key]; known && old.node == n.node && slices.Equal(old.needs, n.needs) {
		return // most changes are of the status
	}
	g.removeLocked(key)
	if n.node == "" {
		return
	}
	g.pods[key] = n
	m := g.nodes[n.node]
	if m == nil {
		m = map[object]int{}
		g.nodes[n.node] = m
	}
	for _, o := range n.needs {
		m[o]++
	}
	g.tellLocked()
}

// Delete implements follow.Handler.
func (g *graph) Delete(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removeLocked(key)
}

func (g *graph) removeLocked(key string) {
	p, ok := g.pods[key]
	if !ok {
		return
	}
	delete(g.pods, key)
	m := g.nodes[p.node]
	for _, o := range p.needs {
		if m[o]--; m[o] <= 0 {
			delete(m, o)
		}
	}
	if len(m) == 0 {
		delete(g.nodes, p.node)
	}
}

// needs reports whether a pod on node needs o, itself or for a volume that it claims, or o names node; changed is
// closed when it is worth asking again.
func (g *graph) needs(node string, o object) (yes bool, changed <-chan struct{}) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	need := g.nodes[node]
	switch o.resource {
	case "volumeattachments", "resourceslices", "podcertificaterequests":
		return g.named[o] == node, g.changed
	case "persistentvolumes":
		v, bound := g.volumes[o.name]
		return bound && need[v.claim] > 0, g.changed
	}
	if need[o] > 0 {
		return true, g.changed
	}
	for name := range g.secrets[o] {
		if need[g.volumes[name].claim] > 0 {
			return true, g.changed
		}
	}
	return false, g.changed
}
