// Package resources is the table of everything the API serves: one declarative Row per resource. Routes, discovery,
// storage, watch caches, tables and OpenAPI all come from it; a resource without behaviour of its own needs nothing
// else.
package resources

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Row describes one resource. Funcs are pure and may be nil.
type Row struct {
	// GVK is the kind as clients know it, in the version whose objects are stored: the hub of conversions.
	GVK schema.GroupVersionKind
	// Versions are all versions that are served, preferred first; nil: that of GVK, as it is stored.
	Versions []Version
	Resource string // plural: "pods"
	Singular string // "pod"
	ListKind string // of lists; "": the kind and "List"

	Namespaced bool
	ShortNames []string
	Categories []string // "all"
	// StoragePath is what follows /registry/ in keys: "pods", "services/specs", "minions".
	StoragePath string
	// TTL makes objects vanish by themselves (events: 1h).
	TTL time.Duration
	// NotStored marks resources that are only answered (reviews): their one verb is create, unless they are Observed.
	NotStored bool
	// Observed marks those of them whose objects are made when they are asked for (componentstatuses): their verbs are
	// get and list.
	Observed bool
	// NoDeleteCollection marks the stored resources that cannot be deleted all at once (namespaces).
	NoDeleteCollection bool

	// PlainFinalizers lets finalizers be names without a domain ("example"): of custom resources and their definitions,
	// and of the kinds whose rules do not look at them.
	PlainFinalizers bool
	// Deprecated, if not empty, is the warning that every request for the resource is answered with.
	Deprecated string
	// Ending, if not empty, is why nothing can be created any more (403): "custom resource definition is terminating".
	// Discovery shows only what is left to do.
	Ending string

	// New makes an empty object of the stored kind. Strategy, Fields and Cells work on these.
	New func() runtime.Object
	// Stored, if not nil, is the stored kind where that is not GVK: this resource is a view of the objects of an
	// earlier row with the same StoragePath (events.k8s.io over core events). All its Versions convert.
	Stored *schema.GroupVersionKind
	// StorageVersion, if not empty, is the version that stored objects name where Kubernetes stores an earlier one than
	// GVK's: it can go back to a release that knows no later one. Both must have the same protobuf fields.
	StorageVersion string

	Strategy     Strategy
	Subresources []Subresource

	// Readable, if not nil, tells why what a client wrote, of the row's Go type, is no object of the kind: it cannot be
	// decoded (400).
	Readable func(obj runtime.Object) error
	// KeepsEmpty marks a kind that Kubernetes stores as JSON, which tells an empty list from none.
	KeepsEmpty bool
	// Decoded, if not nil, completes an object read from storage: with what protobuf leaves out (the kinds of embedded
	// objects), or with what the schema of the version that it is stored in says by now (defaults, unknown fields). It
	// must be idempotent.
	Decoded func(obj runtime.Object)
	// Upgrade makes an object without a Go type that was stored in another version of the kind one of GVK; nil:
	// versions differ by their name only.
	Upgrade func(obj runtime.Object) (runtime.Object, error)

	// Fields returns the selectable fields beyond metadata.name and metadata.namespace; FieldNames are their names, for
	// the "field label not supported" error.
	Fields     func(obj runtime.Object) fields.Set
	FieldNames []string

	// Columns and Cells make `kubectl get`'s table: one cell per column. now is for ages.
	Columns []metav1.TableColumnDefinition
	Cells   func(obj runtime.Object, now time.Time) []any
	// CellsAmong returns the Cells of a list's rows, if they depend on the other objects of the list; nil: they do not.
	CellsAmong func(all []runtime.Object) func(obj runtime.Object, now time.Time) []any
	// Conditions, if not nil, returns what a table marks an object's row with, such as the end of a pod.
	Conditions func(obj runtime.Object) []metav1.TableRowCondition
}

// GVR is the storage version's resource.
func (r *Row) GVR() schema.GroupVersionResource { return r.GVK.GroupVersion().WithResource(r.Resource) }

// GroupResource is the resource as errors name it: "deployments.apps".
func (r *Row) GroupResource() schema.GroupResource { return r.GVR().GroupResource() }

// List is the kind of the resource's lists, in every version.
func (r *Row) List() string {
	if r.ListKind != "" {
		return r.ListKind
	}
	return r.GVK.Kind + "List"
}

// Dynamic tells that the objects have no Go type.
func (r *Row) Dynamic() bool {
	_, ok := r.New().(runtime.Unstructured)
	return ok
}

// StoredGVK is the kind of the stored objects.
func (r *Row) StoredGVK() schema.GroupVersionKind {
	if r.Stored != nil {
		return *r.Stored
	}
	return r.GVK
}

// StorageGVK is the kind that stored objects name.
func (r *Row) StorageGVK() schema.GroupVersionKind {
	gvk := r.StoredGVK()
	if r.StorageVersion != "" {
		gvk.Version = r.StorageVersion
	}
	return gvk
}

// Strategy is what the generic registry asks about a kind, in this order for create: Default, mutating admission,
// Default again, PrepareCreate, Validate, Canonicalize; for update: the same with PrepareUpdate and ValidateUpdate
// (which includes what Validate checks). Metadata common to all kinds (name, uid, generation, …) is the registry's
// work.
type Strategy struct {
	// Default fills in what the client left out; it must be idempotent.
	Default func(obj runtime.Object)
	// EarlyWarnings are about a new object as PrepareCreate gets it, and are sent to the client even if it is refused.
	EarlyWarnings func(obj runtime.Object) []string
	// PrepareCreate drops what a client may not set at creation (status) and sets what the system starts with.
	PrepareCreate func(obj runtime.Object)
	// PrepareUpdate drops changes a client may not make (status, on the main resource).
	PrepareUpdate func(obj, old runtime.Object)
	Validate      func(obj runtime.Object) field.ErrorList
	// ValidateUpdate returns the faults of an update, and warnings about the faults that it keeps from old. The client
	// gets the warnings even if the update is refused.
	ValidateUpdate func(obj, old runtime.Object) (faults field.ErrorList, kept []string)
	// Canonicalize completes a new object that rules and admission have found good.
	Canonicalize func(obj runtime.Object)
	// Warnings are sent to the client as Warning headers; old is nil on create.
	Warnings func(obj, old runtime.Object) []string
	// ValidateName checks metadata.name; nil: a DNS-1123 subdomain. prefix is true for a generateName.
	ValidateName func(name string, prefix bool) []string
	// SpecChanged reports whether metadata.generation moves on this update; nil: the kind counts none.
	SpecChanged func(obj, old runtime.Object) bool
	// Graceful returns the grace period in seconds a deletion leaves the object with, nil for at once (pods:
	// spec.terminationGracePeriodSeconds).
	Graceful func(obj runtime.Object, opts *metav1.DeleteOptions) *int64
	// PrepareDelete marks an object whose deletion begins, while it is kept by finalizers, Held or its grace period
	// (namespaces: phase Terminating).
	PrepareDelete func(obj runtime.Object)
	// Held keeps a deleted object although metadata.finalizers is empty (namespaces: until spec.finalizers is empty,
	// too). The update that ends it removes the object.
	Held func(obj runtime.Object) bool
	// CreateOnUpdate lets PUT create a missing object (leases, events, endpoints, nodes' kinds as upstream has it).
	CreateOnUpdate bool
	// NoPropagation: what a deletion begins says nothing to the garbage collector, whatever policy it asks for
	// (definitions).
	NoPropagation bool
	// DefaultOrphan: deletion without a propagation policy orphans dependents (replicationcontrollers, jobs).
	DefaultOrphan bool
	// OrphanWarning, if not empty, is sent to the client of such a deletion as a Warning header (jobs).
	OrphanWarning string
	// ReturnDeleted: a deletion that removes the object answers with it rather than with a Status (pods, podtemplates,
	// resourcequotas, serviceaccounts, services).
	ReturnDeleted bool
	// Resets are the JSON paths ("status", "metadata.labels") that PrepareCreate and PrepareUpdate leave as they are,
	// whatever the client says of them, so that nobody comes to own a field there. Nil: "status" where that is a
	// subresource, and there "spec".
	Resets []string
	// NeedsVersion: a PUT must say which version it replaces (leases, budgets, what drivers say of themselves).
	NeedsVersion bool
}

// Subresource is a path below one object.
type Subresource struct {
	// Name is the path segment: "status", "scale", "binding", "log".
	Name string
	// GVK is the kind it reads and writes where that is not the row's own (scale: autoscaling/v1 Scale).
	GVK *schema.GroupVersionKind
	// Accepts are older versions of GVK, of the same form, that a body may name as well (eviction: policy/v1beta1).
	Accepts []schema.GroupVersionKind
	// Verbs as discovery shows them.
	Verbs []string
	// Strategy is for subresources that write the row's own object ("status", "ephemeralcontainers", "finalize"): the
	// registry applies it in place of the row's. nil means behaviour comes from pkg/apiserver/registry/<...>.
	Strategy *Strategy
}
