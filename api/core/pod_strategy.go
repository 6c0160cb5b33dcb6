package core

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/equal"
	"bonsai/api/podspec"
	"bonsai/api/resources"
)

func podStrategy() resources.Typed[*corev1.Pod] {
	return resources.Typed[*corev1.Pod]{
		ReturnDeleted: true,
		Default:       DefaultPod,
		PrepareCreate: preparePodCreate,
		PrepareUpdate: func(obj, old *corev1.Pod) {
			obj.Status = *old.Status.DeepCopy()
		},
		Validate:       validatePodCreate,
		ValidateUpdate: validatePodUpdate,
		EarlyWarnings:  func(p *corev1.Pod) []string { return podspec.AppArmorWarnings(&p.Spec, p.Annotations) },
		Warnings:       podWarnings,
		SpecChanged:    podSpecChanged,
		Graceful:       podGrace,
	}
}

// podSpecChanged reports whether a write is a new generation of the pod. Binding it to a node, the only write that sets
// spec.nodeName, is none.
func podSpecChanged(obj, old *corev1.Pod) bool {
	spec := obj.Spec
	spec.NodeName = old.Spec.NodeName
	return !equal.Semantic(&spec, &old.Spec)
}

// podStatusStrategy is for pods/status, which kubelets write: the spec, the deletion and the owners stay.
func podStatusStrategy() resources.Typed[*corev1.Pod] {
	s := podStrategy()
	s.PrepareUpdate = func(obj, old *corev1.Pod) {
		obj.Spec = *old.Spec.DeepCopy()
		obj.DeletionTimestamp = old.DeletionTimestamp
		obj.OwnerReferences = old.OwnerReferences
		dropDisabledStatus(&obj.Status, &old.Status)
		keepClaims(&obj.Status, &old.Status)
		if obj.Status.QOSClass == "" {
			obj.Status.QOSClass = old.Status.QOSClass
		}
		if obj.Status.ObservedGeneration == 0 { // from a writer that does not know of it
			obj.Status.ObservedGeneration = old.Status.ObservedGeneration
		}
	}
	s.ValidateUpdate = validatePodStatusUpdate
	s.SpecChanged, s.Warnings = nil, nil
	s.Resets = []string{"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"}
	return s
}

// setPodIPs keeps the single address of the pod and the list of addresses alike; the single one wins where both are
// given and differ.
func setPodIPs(s *corev1.PodStatus) {
	switch {
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
}

// podEphemeralStrategy is for pods/ephemeralcontainers, which only adds to that list.
func podEphemeralStrategy() resources.Typed[*corev1.Pod] {
	s := podStrategy()
	s.PrepareUpdate = func(obj, old *corev1.Pod) {
		added := obj.Spec.EphemeralContainers
		*obj = *withMeta(old, obj)
		obj.Spec.EphemeralContainers = added
	}
	s.ValidateUpdate = validatePodEphemeralUpdate
	s.Warnings = nil
	return s
}

// withMeta returns a copy of old that keeps the resourceVersion the client sent and its managed fields.
func withMeta(old, sent *corev1.Pod) *corev1.Pod {
	p := old.DeepCopy()
	p.ResourceVersion = sent.ResourceVersion
	p.ManagedFields = sent.ManagedFields
	return p
}

// preparePodCreate starts a pod's life: Pending, with its quality of service, and with nothing a client said of its
// status. Plug-ins may have changed its containers; the resources of the pod as a whole follow from these.
func preparePodCreate(p *corev1.Pod) {
	podspec.DefaultPodResources(&p.Spec)
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: podspec.QOSClass(p)}
	applyMatchLabelKeys(p)
	podspec.AppArmorFromAnnotations(&p.Spec, p.Annotations)
	if len(p.Spec.SchedulingGates) > 0 {
		p.Status.Conditions = []corev1.PodCondition{{
			Type:               corev1.PodScheduled,
			LastTransitionTime: p.CreationTimestamp,
			Status:             corev1.ConditionFalse,
			Reason:             corev1.PodReasonSchedulingGated,
			Message:            "Scheduling is blocked due to non-empty scheduling gates",
		}}
	}
}

// applyMatchLabelKeys writes the pod's own values of matchLabelKeys into the selectors of its affinities and spread
// constraints, so that revisions of one workload do not count each other's pods.
func applyMatchLabelKeys(p *corev1.Pod) {
	for i := range p.Spec.TopologySpreadConstraints {
		c := &p.Spec.TopologySpreadConstraints[i]
		addKeys(c.LabelSelector, p.Labels, c.MatchLabelKeys, metav1.LabelSelectorOpIn)
	}
	a := p.Spec.Affinity
	if a == nil {
		return
	}
	if a.PodAffinity != nil {
		addTermKeys(p.Labels, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a.PodAntiAffinity != nil {
		addTermKeys(p.Labels, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func addTermKeys(labels map[string]string, required []corev1.PodAffinityTerm,
	preferred []corev1.WeightedPodAffinityTerm) {
	add := func(t *corev1.PodAffinityTerm) {
		addKeys(t.LabelSelector, labels, t.MatchLabelKeys, metav1.LabelSelectorOpIn)
		addKeys(t.LabelSelector, labels, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
	}
	for i := range required {
		add(&required[i])
	}
	for i := range preferred {
		add(&preferred[i].PodAffinityTerm)
	}
}

func addKeys(s *metav1.LabelSelector, labels map[string]string, keys []string, op metav1.LabelSelectorOperator) {
	if s == nil {
		return
	}
	for _, k := range keys {
		if v, ok := labels[k]; ok {
			s.MatchExpressions = append(s.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{v}})
		}
	}
}

// podGrace returns how many seconds a deleted pod is left to end itself: what the deletion says, else the pod's own
// grace period. A pod that runs nowhere, or has ended, goes at once.
func podGrace(p *corev1.Pod, opts *metav1.DeleteOptions) *int64 {
	var seconds int64
	switch {
	case p.Spec.NodeName == "", p.Status.Phase == corev1.PodFailed, p.Status.Phase == corev1.PodSucceeded:
		return nil
	case opts != nil && opts.GracePeriodSeconds != nil:
		seconds = *opts.GracePeriodSeconds
	case p.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *p.Spec.TerminationGracePeriodSeconds
	}
	if seconds < 0 {
		seconds = 1
	}
	if seconds == 0 {
		return nil
	}
	return &seconds
}

// DefaultPod fills in what a client left out of a pod, its status included, except the resources of the pod as a whole.
func DefaultPod(p *corev1.Pod) {
	podspec.DropInitAnnotations(&p.ObjectMeta)
	podspec.DefaultPod(&p.Spec)
	setPodIPs(&p.Status)
}
