package framework

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Class is a key of everything in the pod that node-local plug-ins read: resources, ports, node selector and affinity,
// tolerations, images, and a node already named. Two pods of one class get the same verdicts and scores of those plug-ins on
// every node. Labels and namespace are no part of it.
func (p *PodInfo) Class() string {
	if p.class == "" {
		p.class = classOf(p)
	}
	return p.class
}

// keyWriter builds an unambiguous key: every field is preceded by its length.
type keyWriter struct{ b []byte }

func (w *keyWriter) num(v int64) { w.b = binary.AppendVarint(w.b, v) }

func (w *keyWriter) str(s string) {
	w.num(int64(len(s)))
	w.b = append(w.b, s...)
}

func (w *keyWriter) pairs(m map[string]string) {
	w.num(int64(len(m)))
	keys := make([]string, 0, 8)
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		w.str(k)
		w.str(m[k])
	}
}

func (w *keyWriter) bool(v bool) {
	if v {
		w.num(1)
		return
	}
	w.num(0)
}

func (w *keyWriter) set(m map[string]bool) {
	w.num(int64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.str(k)
	}
}

// selector writes s; one that selects nothing differs from one that selects everything.
func (w *keyWriter) selector(s labels.Selector) {
	_, selectable := s.Requirements()
	w.bool(selectable)
	w.str(s.String())
}

func (w *keyWriter) resource(r *Resource) {
	w.num(r.MilliCPU)
	w.num(r.Memory)
	w.num(r.EphemeralStorage)
	w.num(int64(len(r.Scalar)))
	names := make([]string, 0, 4)
	for k := range r.Scalar {
		names = append(names, string(k))
	}
	slices.Sort(names)
	for _, k := range names {
		w.str(k)
		w.num(r.Scalar[corev1.ResourceName(k)])
	}
}

type marshaler interface{ Marshal() ([]byte, error) }

func (w *keyWriter) proto(m marshaler) {
	b, err := m.Marshal()
	if err != nil {
		// Plain API structs in memory always marshal; the empty key would only join classes by mistake, so mark it.
		b = []byte(err.Error())
	}
	w.num(int64(len(b)))
	w.b = append(w.b, b...)
}

func classOf(p *PodInfo) string {
	w := &keyWriter{b: make([]byte, 0, 256)}
	spec := &p.Pod.Spec
	w.resource(&p.Requests)
	w.resource(&p.NonZero)
	w.num(int64(len(p.Ports)))
	for _, port := range p.Ports {
		w.str(string(port.Protocol))
		w.str(port.IP)
		w.num(int64(port.Port))
	}
	w.str(spec.NodeName)
	w.tolerations(spec.Tolerations)
	w.nodeRules(p.Pod)
	w.num(int64(len(spec.InitContainers)))
	for i := range spec.InitContainers {
		w.str(spec.InitContainers[i].Image)
	}
	w.num(int64(len(spec.Containers)))
	for i := range spec.Containers {
		w.str(spec.Containers[i].Image)
	}
	return string(w.b)
}

func (w *keyWriter) tolerations(list []corev1.Toleration) {
	w.num(int64(len(list)))
	for i := range list {
		t := &list[i]
		w.str(t.Key)
		w.str(string(t.Operator))
		w.str(t.Value)
		w.str(string(t.Effect))
	}
}

// nodeRules writes the node selector and the node affinity.
func (w *keyWriter) nodeRules(pod *corev1.Pod) {
	w.pairs(pod.Spec.NodeSelector)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		w.proto(a.NodeAffinity)
	} else {
		w.num(-1)
	}
}

// NodeRulesKey is a key of the pod's node selector and node affinity.
func (p *PodInfo) NodeRulesKey() string {
	w := &keyWriter{}
	w.nodeRules(p.Pod)
	return string(w.b)
}

// TolerationsKey is a key of the pod's tolerations.
func (p *PodInfo) TolerationsKey() string {
	w := &keyWriter{}
	w.tolerations(p.Pod.Spec.Tolerations)
	return string(w.b)
}

// JoinKeys makes one key of several, such that different lists make different keys.
func JoinKeys(parts ...string) string {
	w := &keyWriter{}
	for _, part := range parts {
		w.str(part)
	}
	return string(w.b)
}
