package model

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// PodInfo is a pod with everything that decisions need of it computed once. It is read-only after NewPodInfo.
type PodInfo struct {
	Pod *corev1.Pod
	// Requests is what the pod asks for; NonZero has defaults for containers that ask for no CPU or memory.
	Requests, NonZero Resource
	Ports             []HostPort
	// Claims are the claims that the pod's volumes name. Disks are the volumes that two pods on one node may not share.
	Claims []PodClaim
	Disks  []*corev1.Volume
	// Terms are the pod's affinity terms, nil if it has none.
	Terms *PodTerms
	// Spread are the topology spread constraints of a pod without a node; those of others are of no interest.
	Spread []SpreadConstraint
	// Err says what could not be parsed; such a pod is not scheduled.
	Err error
}

// NewPodInfo computes the facts of pod, which must not change afterwards.
func NewPodInfo(pod *corev1.Pod) *PodInfo {
	p := &PodInfo{Pod: pod, Ports: hostPorts(pod)}
	p.Claims, p.Disks = podVolumes(pod)
	p.Requests, p.NonZero = requests(pod)
	p.Terms, p.Err = podTerms(pod)
	if pod.Spec.NodeName == "" {
		spread, err := spreadConstraints(pod)
		p.Spread, p.Err = spread, cmp.Or(p.Err, err)
	}
	return p
}

// HasTerms is true when the pod has any affinity or anti-affinity to pods.
func (p *PodInfo) HasTerms() bool { return p.Terms.any() }

// HasRequiredAntiAffinity is true when the pod keeps others away from its topology domain.
func (p *PodInfo) HasRequiredAntiAffinity() bool {
	return p.Terms != nil && len(p.Terms.AntiAffinity) > 0
}

// Key names the pod: namespace/name.
func (p *PodInfo) Key() string { return podKey(p.Pod) }

// podKey names a pod: namespace/name.
func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// Priority is the pod's priority, 0 by default.
func Priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority != nil {
		return *pod.Spec.Priority
	}
	return 0
}

// CountMatching counts the pods of the namespace that sel selects and that are not being deleted.
func CountMatching(pods []*PodInfo, namespace string, sel labels.Selector) int {
	if sel.Empty() {
		return 0
	}
	n := 0
	for _, p := range pods {
		if p.Pod.DeletionTimestamp == nil && p.Pod.Namespace == namespace && sel.Matches(labels.Set(p.Pod.Labels)) {
			n++
		}
	}
	return n
}
