// Package always has the admission plug-ins AlwaysAdmit and AlwaysDeny, which upstream has deprecated: one refuses
// nothing, the other every write.
package always

import (
	"context"

	"bonsai/pkg/apiserver/admission"
)

// Admit returns the plug-in AlwaysAdmit.
func Admit() admission.Plugin {
	return admission.Plugin{Name: "AlwaysAdmit", Mutator: admit{}, Validator: admit{}, Deprecated: true}
}

// Deny returns the plug-in AlwaysDeny.
func Deny() admission.Plugin {
	return admission.Plugin{Name: "AlwaysDeny", Mutator: deny{}, Validator: deny{}, Deprecated: true}
}

type admit struct{}

// Admit implements admission.Mutator.
func (admit) Admit(context.Context, *admission.Attributes) error { return nil }

// Validate implements admission.Validator.
func (admit) Validate(context.Context, *admission.Attributes) error { return nil }

type deny struct{}

// Admit implements admission.Mutator.
func (deny) Admit(_ context.Context, a *admission.Attributes) error {
	return admission.Forbid(a, "admission control is denying all modifications")
}

// Validate implements admission.Validator. Deletions have no mutating half.
func (d deny) Validate(ctx context.Context, a *admission.Attributes) error { return d.Admit(ctx, a) }
