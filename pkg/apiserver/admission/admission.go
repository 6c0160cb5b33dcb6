// Package admission changes or refuses objects on their way into storage. A plug-in is one rule, each in a subpackage;
// Chain runs the mutating ones in order, then, after the strategy's validation, the validating ones.
package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/request"
)

// Operation is what is done to the object.
type Operation string

// The operations, in the words of admissionregistration.k8s.io.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Attributes describes one operation. Object is nil for Delete, OldObject for Create; a mutating plug-in changes Object in
// place, or puts another one of the same kind there. It is defaulted again afterwards. OldObject is read-only.
type Attributes struct {
	Operation   Operation
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string
	Name        string
	Object      runtime.Object
	OldObject   runtime.Object
	// Options is the *metav1.CreateOptions, UpdateOptions, PatchOptions or DeleteOptions of the request.
	Options runtime.Object
	DryRun  bool
	User    *request.User
	// Warn adds a warning (RFC 7234 code 299) to the answer.
	Warn func(string)
}

// Mutator may change the object. A plain error becomes 500; to refuse, return an apierrors Status error (403 for policy).
type Mutator interface {
	Admit(ctx context.Context, a *Attributes) error
}

// Validator may refuse the operation, and changes nothing.
type Validator interface {
	Validate(ctx context.Context, a *Attributes) error
}

// Plugin is one entry of the chain: its name as in --enable-admission-plugins and what it implements (either may be nil).
type Plugin struct {
	Name      string
	Mutator   Mutator
	Validator Validator
}
