package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// AffinityTerm is a pod affinity term, parsed.
type AffinityTerm struct {
	// Namespaces the term looks into: these, and those whose labels NamespaceSelector selects.
	Namespaces        map[string]bool
	NamespaceSelector labels.Selector
	Selector          labels.Selector
	TopologyKey       string
	// Weight of a preferred term; 0 for required ones.
	Weight int32
	// ID is equal for terms that are about the same pods: all of the above but TopologyKey and Weight.
	ID string
}

// Matches reports whether the term is about pod, which is in a namespace with these labels.
func (t *AffinityTerm) Matches(pod *corev1.Pod, namespaceLabels labels.Set) bool {
	if !t.Namespaces[pod.Namespace] && !t.NamespaceSelector.Matches(namespaceLabels) {
		return false
	}
	return t.Selector.Matches(labels.Set(pod.Labels))
}

// PodTerms are all affinity terms of a pod.
type PodTerms struct {
	Affinity, AntiAffinity                   []AffinityTerm
	PreferredAffinity, PreferredAntiAffinity []AffinityTerm
}

func (t *PodTerms) any() bool {
	return t != nil && len(t.Affinity)+len(t.AntiAffinity)+len(t.PreferredAffinity)+len(t.PreferredAntiAffinity) > 0
}

// All calls yield with every term.
func (t *PodTerms) All(yield func(*AffinityTerm) bool) {
	if t == nil {
		return
	}
	for _, list := range [][]AffinityTerm{t.Affinity, t.AntiAffinity, t.PreferredAffinity, t.PreferredAntiAffinity} {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// podTerms parses the pod's affinity; nil if it has none. Terms that cannot be parsed are reported and match nothing.
func podTerms(pod *corev1.Pod) (*PodTerms, error) {
	a := pod.Spec.Affinity
	if a == nil || (a.PodAffinity == nil && a.PodAntiAffinity == nil) {
		return nil, nil
	}
	p := termParser{pod: pod}
	t := &PodTerms{}
	if pa := a.PodAffinity; pa != nil {
		t.Affinity = p.required(pa.RequiredDuringSchedulingIgnoredDuringExecution)
		t.PreferredAffinity = p.preferred(pa.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if pa := a.PodAntiAffinity; pa != nil {
		t.AntiAffinity = p.required(pa.RequiredDuringSchedulingIgnoredDuringExecution)
		t.PreferredAntiAffinity = p.preferred(pa.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return t, p.err
}

type termParser struct {
	pod *corev1.Pod
	err error
}

func (p *termParser) required(in []corev1.PodAffinityTerm) []AffinityTerm {
	var out []AffinityTerm
	for i := range in {
		out = append(out, p.term(&in[i], 0))
	}
	return out
}

func (p *termParser) preferred(in []corev1.WeightedPodAffinityTerm) []AffinityTerm {
	var out []AffinityTerm
	for i := range in {
		if in[i].Weight != 0 {
			out = append(out, p.term(&in[i].PodAffinityTerm, in[i].Weight))
		}
	}
	return out
}

func (p *termParser) term(in *corev1.PodAffinityTerm, weight int32) AffinityTerm {
	t := AffinityTerm{TopologyKey: in.TopologyKey, Weight: weight, Namespaces: map[string]bool{}}
	for _, ns := range in.Namespaces {
		t.Namespaces[ns] = true
	}
	if len(in.Namespaces) == 0 && in.NamespaceSelector == nil {
		t.Namespaces[p.pod.Namespace] = true
	}
	t.Selector = p.selector(in.LabelSelector)
	t.NamespaceSelector = p.selector(in.NamespaceSelector)
	var k Key
	k.Set(t.Namespaces)
	k.Selector(t.NamespaceSelector)
	k.Selector(t.Selector)
	t.ID = k.String()
	return t
}

// selector parses s; nil selects nothing.
func (p *termParser) selector(s *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		if p.err == nil {
			p.err = fmt.Errorf("parsing an affinity term of pod %s/%s: %w", p.pod.Namespace, p.pod.Name, err)
		}
		return labels.Nothing()
	}
	return parsed
}
