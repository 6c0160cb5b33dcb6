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

// Attributes describes one operation. Object is nil for Delete, OldObject for Create; a mutating plug-in changes Object
// in place, or puts another one of the same kind there. It is defaulted again afterwards. OldObject is read-only.
type Attributes struct {
	Operation Operation
	// Kind is that of Object and OldObject; Resource is where they are stored, or where the request goes if they are
	// not.
	Kind     schema.GroupVersionKind
	Resource schema.GroupVersionResource
	// RequestKind and RequestResource are what the client asked for, which differs through a view of the stored objects
	// (events.k8s.io). Object and OldObject are of Kind all the same. Zero: Kind and Resource.
	RequestKind     schema.GroupVersionKind
	RequestResource schema.GroupVersionResource
	// Subresource is the request's: "status", "scale", "eviction", "exec" …
	Subresource string
	Namespace   string
	// Name is the request's; empty for a create without subresource until mutating admission is over and it is
	// generated.
	Name string
	// Collection tells that the request is for a collection and names no object; Name is that of one of them all the
	// same.
	Collection bool
	// Object of Connect is what the client asks for: *corev1.PodExecOptions, PodProxyOptions and so on.
	Object    runtime.Object
	OldObject runtime.Object
	// Options is the *metav1.CreateOptions, UpdateOptions or DeleteOptions of the operation; nil for Connect.
	Options runtime.Object
	DryRun  bool
	User    *request.User
	// Warn adds a warning (RFC 7234 code 299) to the answer.
	Warn func(string)
	// Default fills in what a mutating plug-in's change of Object left out; nil: nothing.
	Default func(runtime.Object)

	reinvocation reinvocation
}

// Mutator may change the object. A plain error becomes 500; to refuse, return an apierrors Status error (403 for
// policy).
type Mutator interface {
	Admit(ctx context.Context, a *Attributes) error
}

// Validator may refuse the operation, and changes nothing. It should let an update pass if the old object
// has the same fault: removing a finalizer is an update, so the object could not be deleted otherwise.
type Validator interface {
	Validate(ctx context.Context, a *Attributes) error
}

// Plugin is one entry of the chain: its name as in --enable-admission-plugins and what it implements (either may be
// nil).
type Plugin struct {
	Name      string
	Mutator   Mutator
	Validator Validator
	// Deprecated plug-ins are reported when the server starts.
	Deprecated bool
	// Idle says why the plug-in has neither Mutator nor Validator: nothing that it would look at is served.
	Idle string
	// Place is required for a plug-in that Kubernetes does not have, and must be nil for Kubernetes' own.
	Place *Place
}
