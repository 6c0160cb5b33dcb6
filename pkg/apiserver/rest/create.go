package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/trace"
)

// serveCreate stores the body as a new object. Admission, validation and the write are the store's; here the body
// becomes an object of the stored version. All of that happens once, however often the store tries: nothing here looks
// at other objects.
func serveCreate(x *exchange) error {
	a, opts, err := readCreateOptions(x, forObject)
	if err != nil {
		return err
	}
	obj := x.res.Version.New()
	if err := x.body(x.res.GVK, obj, opts.FieldValidation); err != nil {
		return err
	}
	if err := stillTaken(x, obj); err != nil {
		return err
	}
	if err := x.fitNamespace(obj); err != nil { // before conversion: a webhook must see the namespace
		return err
	}
	if err := ownersOnce(x, obj); err != nil {
		return err
	}
	if obj, err = x.toHub(obj); err != nil {
		return err
	}
	begun := time.Now()
	ctx := x.context()
	item, obj, err := x.res.Store.CreateItem(ctx, x.info.Namespace, "", obj, opts)
	if err != nil {
		return err
	}
	traceCreated(x, obj, opts.DryRun, begun)
	if err := x.share(a, item, obj); err != nil {
		return err
	}
	return x.writeStored(a, http.StatusCreated, item)
}

// ownersOnce drops owner references that a body has twice.
func ownersOnce(x *exchange, obj runtime.Object) error {
	access, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	registry.OwnersOnce(access, registry.OwnersSent, x.warn)
	return nil
}

// stillTaken refuses an object of a resource that is being removed: the object would be deleted with it, or keep the
// removal from ending.
func stillTaken(x *exchange, obj runtime.Object) error {
	why := x.res.Row.Ending
	if why == "" {
		return nil
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return apierrors.NewForbidden(x.res.Row.GroupResource(), access.GetName(),
		fmt.Errorf("create not allowed while %s", why))
}

func readCreateOptions(x *exchange, p purpose) (accepted, *metav1.CreateOptions, error) {
	a, err := x.negotiate(p)
	if err != nil {
		return a, nil, err
	}
	if !slices.Contains(allTypes(), bodyType(x.r)) {
		return a, nil, unsupportedMedia(allTypes()...)
	}
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_CreateOptions)
	if err != nil {
		return a, nil, err
	}
	opts.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions")) // for admission
	return a, opts, invalidOptions("CreateOptions", validation.ValidateCreateOptions(opts))
}

// traceCreated records the first step of the new object's trace, which links it to the trace of the request, and to
// that of its owner. Objects that live for a while only, which are events, tell about others: they have no story.
func traceCreated(x *exchange, obj runtime.Object, dryRun []string, begun time.Time) {
	access, err := meta.Accessor(obj)
	if err != nil || !x.Tracer.Records(access.GetUID()) || x.res.Row.TTL > 0 || len(dryRun) > 0 {
		return
	}
	o := trace.About(x.res.GVK, x.res.Row.Resource, access)
	x.Tracer.Step(o, trace.Step{Name: "apiserver.create", Start: begun, End: time.Now(),
		Links: append(trace.ToRequest(x.r.Context()), trace.ToOwner(o.Owner.UID, oteltrace.SpanID{})...)})
}

// serveCreateWith answers a POST for a kind that is not stored: reviews, binding, eviction, token. Mutating admission
// comes before Prepare, which may read objects, and validating admission after it, with what will be done.
func serveCreateWith(x *exchange, c registry.Creater, gvk schema.GroupVersionKind, name string) error {
	a, opts, err := readCreateOptions(x, forPlain)
	if err != nil {
		return err
	}
	obj := c.New()
	if err := x.bodyAs(gvk, obj, opts.FieldValidation); err != nil {
		return err
	}
	if err := x.fitNamespace(obj); err != nil {
		return err
	}
	preparer, prepares := c.(registry.Preparer)
	if prepares {
		preparer.Default(obj)
	}
	if err := noteManager(x, x.res.plain[x.info.Subresource], opts.FieldManager, nil, obj); err != nil {
		return err
	}
	called := name
	if access, metaErr := meta.Accessor(obj); metaErr == nil && called == "" {
		called = access.GetName()
	}
	admitted := x.creation(called, obj, opts)
	if err := x.mutate(&admitted); err != nil {
		return err
	}
	// Again: a webhook may have set another namespace, which the client was not authorized for.
	if err := x.fitNamespace(admitted.Object); err != nil {
		return err
	}
	ctx := x.context()
	create := func(ctx context.Context) (runtime.Object, error) {
		return c.Create(ctx, x.info.Namespace, name, admitted.Object, opts)
	}
	if prepares {
		if create, err = preparer.Prepare(ctx, x.info.Namespace, name, admitted.Object); err != nil {
			return err
		}
	}
	if err := x.validate(&admitted); err != nil {
		return err
	}
	out, err := create(ctx)
	if err != nil {
		return err
	}
	return x.writeObject(a, http.StatusCreated, out)
}

// fitNamespace sets the namespace of an object from the request, and refuses a different one. Authorization was for the
// request's namespace only.
func (x *exchange) fitNamespace(obj runtime.Object) error {
	access, err := meta.Accessor(obj)
	if err != nil || !x.res.Row.Namespaced {
		return nil
	}
	switch access.GetNamespace() {
	case x.info.Namespace:
	case "":
		access.SetNamespace(x.info.Namespace)
	default:
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}
