package core

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/quantity"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func nodeRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Node"), Resource: "nodes", Singular: "node",
		ShortNames:  []string{"no"},
		StoragePath: "minions",
		New:         resources.Make[corev1.Node],
		Strategy:    nodeStrategy().Strategy(),
		Subresources: []resources.Subresource{
			resources.Action("proxy", corev1.SchemeGroupVersion.WithKind("NodeProxyOptions"), "create", "delete", "get",
				"patch", "update"),
			resources.Status(nodeStatusStrategy().Strategy()),
		},
		FieldNames: []string{"spec.unschedulable"},
		Fields: resources.Fields(func(n *corev1.Node) fields.Set {
			return fields.Set{"spec.unschedulable": boolText(n.Spec.Unschedulable)}
		}),
		Columns: nodeColumns(),
		Cells:   resources.Cells(nodeCells),
	}
}

func nodeStrategy() resources.Typed[*corev1.Node] {
	return resources.Typed[*corev1.Node]{
		Default: defaultNode,
		PrepareCreate: func(n *corev1.Node) {
			dropNodeConfig(n)
			n.Spec.PodPreemptionPolicy = nil // of a feature that is off by default
		},
		PrepareUpdate: func(obj, old *corev1.Node) {
			dropNodeConfig(obj)
			if old.Spec.PodPreemptionPolicy == nil {
				obj.Spec.PodPreemptionPolicy = nil
			}
			obj.Status = *old.Status.DeepCopy()
		},
		Validate:       validateNode,
		ValidateUpdate: validateNodeUpdate,
		Warnings:       nodeWarnings,
		ValidateName:   apivalidation.NameIsDNSSubdomain,
	}
}

func nodeStatusStrategy() resources.Typed[*corev1.Node] {
	s := nodeStrategy()
	s.PrepareUpdate = func(obj, old *corev1.Node) {
		dropNodeConfig(obj)
		obj.Spec = *old.Spec.DeepCopy()
	}
	s.Warnings = nil
	return s
}

// defaultNode keeps podCIDR and podCIDRs alike (podCIDR wins), and allocatable at the capacity where it is not given.
func defaultNode(n *corev1.Node) {
	s := &n.Spec
	switch {
	case s.PodCIDR == "" && len(s.PodCIDRs) > 0:
		s.PodCIDR = s.PodCIDRs[0]
	case s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR):
		s.PodCIDRs = []string{s.PodCIDR}
	}
	quantity.RoundUp(n.Status.Capacity)
	quantity.RoundUp(n.Status.Allocatable)
	if n.Status.Allocatable == nil && len(n.Status.Capacity) > 0 {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
}

// dropNodeConfig drops what the dynamic configuration of kubelets left in the API.
func dropNodeConfig(n *corev1.Node) {
	n.Spec.ConfigSource, n.Status.Config = nil, nil
}

// nodeWarnings tells of old labels and of fields that no longer mean anything.
func nodeWarnings(n, old *corev1.Node) []string {
	var w []string
	same := old != nil && apiequality.Semantic.DeepEqual(n.Spec, old.Spec) &&
		apiequality.Semantic.DeepEqual(n.Labels, old.Labels)
	if n.Spec.DoNotUseExternalID != "" && !same {
		w = append(w, field.NewPath("spec", "externalID").String()+
			": this field is deprecated, and is unused by Kubernetes")
	}
	for i, cidr := range n.Spec.PodCIDRs {
		w = append(w, validate.CIDRWarnings(field.NewPath("spec", "podCIDRs").Index(i), cidr)...)
	}
	return w
}
