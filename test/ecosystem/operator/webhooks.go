package operator

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"bonsai/test/ecosystem/operator/v1"
)

// maxReplicas is what the validating webhook lets through.
const maxReplicas = 5

// keepLabel protects a Website from deletion.
const keepLabel = v1.Group + "/keep"

// webhooks are the defaulting and the validating webhook of Websites. Conversion needs nothing but the types.
type webhooks struct{}

// setup registers them, and conversion, with the manager's webhook server.
func (w webhooks) setup(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1.Website{}).WithDefaulter(w).WithValidator(w).Complete()
}

// Default implements admission.Defaulter.
func (webhooks) Default(_ context.Context, site *v1.Website) error {
	if site.Spec.Replicas == nil {
		site.Spec.Replicas = new(int32(1))
	}
	return nil
}

// ValidateCreate implements admission.Validator.
func (webhooks) ValidateCreate(_ context.Context, site *v1.Website) (admission.Warnings, error) {
	var warnings admission.Warnings
	if len(site.Spec.Pages) == 0 {
		warnings = append(warnings, "a Website without pages serves nothing")
	}
	if n := *site.Spec.Replicas; n > maxReplicas {
		return warnings, fmt.Errorf("spec.replicas: %d is more than %d", n, maxReplicas)
	}
	return warnings, nil
}

// ValidateUpdate implements admission.Validator.
func (w webhooks) ValidateUpdate(ctx context.Context, _, site *v1.Website) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, site)
}

// ValidateDelete implements admission.Validator.
func (webhooks) ValidateDelete(_ context.Context, site *v1.Website) (admission.Warnings, error) {
	if _, ok := site.Labels[keepLabel]; ok {
		return nil, fmt.Errorf("label %s keeps it", keepLabel)
	}
	return nil, nil
}
