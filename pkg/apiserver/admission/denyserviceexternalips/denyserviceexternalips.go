// Package denyserviceexternalips is the admission plug-in DenyServiceExternalIPs, which is off unless it is enabled: no
// Service gets an external IP that it did not have. A user who may write one has the traffic to it brought to their
// pods, on every node.
package denyserviceexternalips

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin {
	return admission.Plugin{Name: "DenyServiceExternalIPs", Validator: plugin{}}
}

// Validate implements admission.Validator. An update may keep addresses and drop some.
func (plugin) Validate(_ context.Context, a *admission.Attributes) error {
	svc, ok := a.Object.(*corev1.Service)
	if !ok || !a.Is(corev1.Resource("services")) || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	var had []string
	if old, ok := a.OldObject.(*corev1.Service); ok {
		had = old.Spec.ExternalIPs
	}
	for _, ip := range svc.Spec.ExternalIPs {
		if !slices.Contains(had, ip) {
			return admission.Forbid(a, "Use of external IPs is denied by admission control")
		}
	}
	return nil
}
