package model

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Key is made of what a plug-in reads of a pod: equal keys mean that it reads the same. Each field is preceded by its
// length or number, so that different fields cannot look alike. The zero value is empty.
type Key struct{ b []byte }

// NewKey returns an empty key with room for size bytes.
func NewKey(size int) Key { return Key{b: make([]byte, 0, size)} }

// KeyOf returns a function that makes the key of a pod, as text to be compared; reads writes into the key what the
// plug-in reads of the pod.
func KeyOf(reads func(pod *PodInfo, k *Key)) func(*PodInfo) string {
	return func(pod *PodInfo) string {
		k := NewKey(128)
		reads(pod, &k)
		return k.String()
	}
}

// String is the key, to be compared.
func (k *Key) String() string { return string(k.b) }

// Num adds a number.
func (k *Key) Num(v int64) { k.b = binary.AppendVarint(k.b, v) }

// Str adds texts.
func (k *Key) Str(list ...string) {
	for _, s := range list {
		k.Num(int64(len(s)))
		k.b = append(k.b, s...)
	}
}

// Bool adds a truth value.
func (k *Key) Bool(v bool) {
	if v {
		k.Num(1)
		return
	}
	k.Num(0)
}

// Pairs adds a map, in any order.
func (k *Key) Pairs(m map[string]string) {
	k.Num(int64(len(m)))
	keys := make([]string, 0, 8)
	for name := range m {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	for _, name := range keys {
		k.Str(name, m[name])
	}
}

// Set adds a set, in any order.
func (k *Key) Set(m map[string]bool) {
	k.Num(int64(len(m)))
	k.Str(slices.Sorted(maps.Keys(m))...)
}

// Selector adds s; one that selects nothing differs from one that selects everything.
func (k *Key) Selector(s labels.Selector) {
	_, selectable := s.Requirements()
	k.Bool(selectable)
	k.Str(s.String())
}

// Resource adds amounts.
func (k *Key) Resource(r *Resource) {
	k.Num(r.MilliCPU)
	k.Num(r.Memory)
	k.Num(r.EphemeralStorage)
	k.Num(int64(len(r.Scalar)))
	names := make([]string, 0, 4)
	for name := range r.Scalar {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		k.Str(name)
		k.Num(r.Scalar[corev1.ResourceName(name)])
	}
}

// Tolerations adds the pod's tolerations.
func (k *Key) Tolerations(pod *corev1.Pod) {
	k.Num(int64(len(pod.Spec.Tolerations)))
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		k.Str(t.Key, string(t.Operator), t.Value, string(t.Effect))
	}
}

// NodeRules adds the pod's node selector and node affinity.
func (k *Key) NodeRules(pod *corev1.Pod) {
	k.Pairs(pod.Spec.NodeSelector)
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		k.proto(a.NodeAffinity)
	} else {
		k.Num(-1)
	}
}

type marshaler interface{ Marshal() ([]byte, error) }

func (k *Key) proto(m marshaler) {
	b, err := m.Marshal()
	if err != nil {
		// Plain API structs in memory always marshal; the empty key would only join pods by mistake, so mark it.
		b = []byte(err.Error())
	}
	k.Num(int64(len(b)))
	k.b = append(k.b, b...)
}
