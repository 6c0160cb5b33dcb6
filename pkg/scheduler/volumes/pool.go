package volumes

import (
	corev1 "k8s.io/api/core/v1"
)

// pool are the free volumes of a class. Those that only nodes of certain host names can use, as local ones, are found
// by these.
//
// With local volumes a class has one per disk of each node; a walk over all of them for each node would be quadratic.
type pool struct {
	byHost map[string]map[string]*corev1.PersistentVolume
	others map[string]*corev1.PersistentVolume
	names  map[string]bool
}

func newPool() *pool {
	return &pool{byHost: map[string]map[string]*corev1.PersistentVolume{},
		others: map[string]*corev1.PersistentVolume{}, names: map[string]bool{}}
}

func (p *pool) empty() bool { return len(p.names) == 0 }

func (p *pool) add(pv *corev1.PersistentVolume) {
	p.names[pv.Name] = true
	hosts := hostsOf(pv)
	if hosts == nil {
		p.others[pv.Name] = pv
		return
	}
	for _, h := range hosts {
		if p.byHost[h] == nil {
			p.byHost[h] = map[string]*corev1.PersistentVolume{}
		}
		p.byHost[h][pv.Name] = pv
	}
}

// remove takes a volume out, as it was added; false if it is not there.
func (p *pool) remove(pv *corev1.PersistentVolume) bool {
	if !p.names[pv.Name] {
		return false
	}
	delete(p.names, pv.Name)
	delete(p.others, pv.Name)
	for _, h := range hostsOf(pv) {
		if delete(p.byHost[h], pv.Name); len(p.byHost[h]) == 0 {
			delete(p.byHost, h)
		}
	}
	return true
}

// hostsOf returns the values of the label hostname that let a node use the volume. It returns nil if that label alone
// does not decide.
//
// Several terms are ORed, so that one label of one of them would exclude too much: then the volume is in others, and
// usableOn decides.
func hostsOf(pv *corev1.PersistentVolume) []string {
	a := pv.Spec.NodeAffinity
	if a == nil || a.Required == nil || len(a.Required.NodeSelectorTerms) != 1 {
		return nil
	}
	for _, e := range a.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn {
			return e.Values
		}
	}
	return nil
}

// on calls yield with the volumes that the node may be able to use.
func (p *pool) on(node *corev1.Node, yield func(*corev1.PersistentVolume)) {
	if p == nil {
		return
	}
	for _, pv := range p.byHost[node.Labels[corev1.LabelHostname]] {
		yield(pv)
	}
	for _, pv := range p.others {
		yield(pv)
	}
}
