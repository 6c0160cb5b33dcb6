// Package registry keeps API objects: one generic Store for all kinds, told apart by their row in api/resources.
// Subpackages exist only for behaviour that is more than storing (binding, eviction, scale, token, logs, service IPs,
// …); they use Stores and implement one of the small interfaces here.
package registry

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Creater is a resource or subresource that only answers a POST: reviews, binding, eviction, token.
// For a subresource ns and name are those of the parent.
type Creater interface {
	// New returns an empty request body.
	New() runtime.Object
	Create(ctx context.Context, ns, name string, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error)
}

// Preparer is a Creater that fills in and checks what it was asked for before admission judges: plug-ins that only
// judge see what will be done, and are not asked about what is refused anyway.
type Preparer interface {
	Creater
	// Default fills in what a client left out, before any plug-in sees it.
	Default(obj runtime.Object)
	// Prepare completes obj between the plug-ins that may change it and those that judge. create then does the work.
	Prepare(ctx context.Context, ns, name string,
		obj runtime.Object) (create func(context.Context) (runtime.Object, error), err error)
}

// Lister is a resource whose objects are made when they are asked for: componentstatuses. They are few, and of no
// namespace.
type Lister interface {
	List(ctx context.Context) ([]runtime.Object, error)
}

// ReadWriter is a subresource with get, update and patch on an object of its own kind: scale.
type ReadWriter interface {
	New() runtime.Object
	Get(ctx context.Context, ns, name string) (runtime.Object, error)
	// Update applies change to the current object under optimistic concurrency and returns the result. change may be
	// made several times.
	Update(ctx context.Context, ns, name string, change PartChange, opts *metav1.UpdateOptions) (runtime.Object, error)
	// Columns and Cells make the table of its object: one cell per column. now is for ages.
	Columns() []metav1.TableColumnDefinition
	Cells(obj runtime.Object, now time.Time) []any
}

// PartChange is what a request does to the object of a ReadWriter.
type PartChange struct {
	// Make returns what the client, and admission's plug-ins that may change it, make of current.
	Make func(current runtime.Object) (runtime.Object, error)
	// Validate asks the plug-ins that judge. obj is the object as it will be read: without what a client wrote to no
	// effect.
	Validate func(obj, old runtime.Object) error
}

// Connecter is a subresource that takes over the HTTP exchange: log, exec, attach, portforward, proxy.
type Connecter interface {
	// Options reads what the client asks for out of the query and of the path that follows the subresource in the URL
	// ("" or "/…"). They are what admission decides on, and may change; nil is for what is only read (log), which it is
	// not asked about.
	Options(path string, query url.Values) (runtime.Object, error)
	Connect(ctx context.Context, ns, name string, opts runtime.Object, w http.ResponseWriter, r *http.Request) error
}

// Answerer answers for a subresource in one of three ways: exactly one field is set.
type Answerer struct {
	Creater    Creater
	ReadWriter ReadWriter
	Connecter  Connecter
}

// Check tells what is wrong with an Answerer that does not answer in exactly one way.
func (a Answerer) Check() error {
	ways := 0
	for _, set := range []bool{a.Creater != nil, a.ReadWriter != nil, a.Connecter != nil} {
		if set {
			ways++
		}
	}
	if ways != 1 {
		return fmt.Errorf("it is answered in %d ways, not in one", ways)
	}
	return nil
}

// Stores finds the generic store of a resource; nil if the server does not serve it.
type Stores interface {
	Store(gr schema.GroupResource) Store
}

// Reader reads the objects of one resource.
type Reader interface {
	Getter
	// List returns the objects that match the label selector ("" = all), from the watch cache, with all that was
	// written through this store before.
	List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error)
	// Each is List for callers that look at one object after the other: each is decoded when it is its turn, so that
	// their number costs no memory. An error, such as the end of ctx, comes last, without an object.
	Each(ctx context.Context, ns, labelSelector string) iter.Seq2[runtime.Object, error]
}

// Store is the generic registry of one resource, as subresources and admission plug-ins use it. Objects it returns
// belong to the caller.
type Store interface {
	New() runtime.Object
	Reader
	// Shared returns a reader of the same objects that decodes each once, for all its callers: what it returns must not
	// be changed. It is for few and small objects that very many requests look at.
	Shared() Reader
	// Create runs the whole path: admission, strategy, validation, storage.
	Create(ctx context.Context, ns string, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error)
	// Update runs change on a copy of the current object, then admission, strategy ("" or the named subresource's) and
	// validation, and retries on conflicts (unless change set a resourceVersion that does not match: 409). A named
	// subresource whose row has no Strategy (binding) is written as change made it, without strategy and validation;
	// generic metadata rules hold.
	Update(ctx context.Context, ns, name, subresource string,
		change func(current runtime.Object) (runtime.Object, error), opts *metav1.UpdateOptions) (runtime.Object, error)
	// Admitted returns a store of the same objects that does not ask admission, and leaves managedFields as they are
	// made: for writes that carry out what admission has let in as another request, such as the binding or the eviction
	// of a pod.
	Admitted() Store
	// Delete returns the object and whether it is gone (false: it waits for finalizers or its grace period).
	Delete(ctx context.Context, ns, name string, opts *metav1.DeleteOptions) (obj runtime.Object, gone bool, err error)
}

// Checker checks updates of one resource, and of its subresources, by who makes them. The answer reports its errors
// beside those of the validation.
type Checker interface {
	CheckUpdate(ctx context.Context, subresource string, obj, old runtime.Object) field.ErrorList
}

// Checkers are several of them, in the order in which they tell.
type Checkers []Checker

// CheckUpdate implements Checker.
func (c Checkers) CheckUpdate(ctx context.Context, subresource string, obj, old runtime.Object) (errs field.ErrorList) {
	for _, one := range c {
		errs = append(errs, one.CheckUpdate(ctx, subresource, obj, old)...)
	}
	return errs
}

// Hook takes part in the writes of one resource's store, for state that is kept beside the objects (service IPs and
// node ports). A store runs it after mutating admission and the strategy's Prepare, before validation, as it may fill
// in fields.
type Hook interface {
	// BeforeCreate may change obj and reserve what it needs. done is called exactly once, when the write is stored
	// (committed) or was given up; it is never nil when err is nil. A dry run reserves nothing. An error that is an
	// apierrors Status is answered as it is.
	BeforeCreate(ctx context.Context, obj runtime.Object, dryRun bool) (done func(committed bool), err error)
	// BeforeUpdate is the same for an update; old is read-only. It runs once per attempt, each with its own done.
	BeforeUpdate(ctx context.Context, obj, old runtime.Object, dryRun bool) (done func(committed bool), err error)
	// AfterDelete frees what obj held, after it is gone from storage.
	AfterDelete(ctx context.Context, obj runtime.Object)
}
