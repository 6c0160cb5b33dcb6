package networking

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/resources"
)

func networkPolicyRow() resources.Row {
	return resources.Row{
		GVK: networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), Resource: "networkpolicies",
		Singular:    "networkpolicy",
		Namespaced:  true,
		ShortNames:  []string{"netpol"},
		StoragePath: "networkpolicies",
		New:         resources.Make[networkingv1.NetworkPolicy],
		Strategy: resources.Typed[*networkingv1.NetworkPolicy]{
			Default:        defaultNetworkPolicy,
			Validate:       validateNetworkPolicy,
			ValidateUpdate: validateNetworkPolicyUpdate,
			Warnings:       networkPolicyWarnings,
			SpecChanged: func(obj, old *networkingv1.NetworkPolicy) bool {
				return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
			},
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Pod-Selector", networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(p *networkingv1.NetworkPolicy, now time.Time) []any {
			return []any{p.Name, metav1.FormatLabelSelector(&p.Spec.PodSelector),
				resources.Age(p.CreationTimestamp, now)}
		}),
	}
}

// defaultNetworkPolicy: a policy that does not say what it is about isolates ingress, and egress if it has rules for
// it.
func defaultNetworkPolicy(p *networkingv1.NetworkPolicy) {
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	for i := range p.Spec.Ingress {
		defaultPolicyPorts(p.Spec.Ingress[i].Ports)
	}
	for i := range p.Spec.Egress {
		defaultPolicyPorts(p.Spec.Egress[i].Ports)
	}
}

func defaultPolicyPorts(ports []networkingv1.NetworkPolicyPort) {
	for i := range ports {
		if ports[i].Protocol == nil {
			ports[i].Protocol = new(corev1.ProtocolTCP)
		}
	}
}
