package rest

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
)

// serveUpdate replaces an object, or what subresource writes of it, by the body (PUT).
//
// The storage may call the change several times, once for each write that came in between, and defaults and admission
// change the object that it returns. So each attempt gets a copy of what the client sent.
func serveUpdate(x *exchange, subresource string) error {
	a, opts, err := readUpdateOptions(x, forObject)
	if err != nil {
		return err
	}
	obj := x.res.Version.New()
	if err := x.body(x.res.GVK, obj, opts.FieldValidation); err != nil {
		return err
	}
	if err := x.fitNamespace(obj); err != nil {
		return err
	}
	if err := checkName(x, obj); err != nil {
		return err
	}
	if err := ownersOnce(x, obj); err != nil {
		return err
	}
	if obj, err = x.toHub(obj); err != nil {
		return err
	}
	ctx := x.context()
	code := http.StatusOK
	item, updated, err := x.res.Store.UpdateItem(ctx, x.info.Namespace, x.info.Name, subresource,
		func(current runtime.Object, _ *storage.Item) (runtime.Object, error) {
			switch other, err := otherUID(obj, current); {
			case err != nil:
				return nil, err
			case other != nil:
				return nil, other
			}
			return obj.DeepCopyObject(), nil
		}, opts)
	// Only some kinds allow a PUT to create (leases and roles, for example). The caller needs the right to create as
	// well.
	if apierrors.IsNotFound(err) && subresource == "" && x.res.Store.Row.Strategy.CreateOnUpdate {
		// A body with a UID means the object that is gone: 409, not another object under its name.
		switch other, err := otherUID(obj, x.res.Store.New()); {
		case err != nil:
			return err
		case other != nil:
			return x.res.Store.Conflict(x.info.Namespace, x.info.Name, other)
		}
		if err := mayCreate(x); err != nil {
			return err
		}
		code = http.StatusCreated
		if err := withoutVersion(obj); err != nil {
			return err
		}
		begun := time.Now()
		item, updated, err = x.res.Store.CreateItem(ctx, x.info.Namespace, x.info.Name, obj, createOptions(opts))
		if err == nil {
			traceCreated(x, updated, opts.DryRun, begun)
		}
	}
	if err != nil {
		return err
	}
	if err := x.share(a, item, updated); err != nil {
		return err
	}
	return x.writeStored(a, code, item)
}

// createOptions returns the options of a create that an update has become.
func createOptions(opts *metav1.UpdateOptions) *metav1.CreateOptions {
	out := &metav1.CreateOptions{DryRun: opts.DryRun, FieldManager: opts.FieldManager,
		FieldValidation: opts.FieldValidation}
	out.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
	return out
}

// mayCreate refuses a PUT that would create an object if the client may only update. The request was authorized as an
// update: what the name stands for is not known before the storage has answered.
func mayCreate(x *exchange) error {
	if x.Authorizer == nil {
		return nil
	}
	ctx := x.r.Context()
	a := authz.Attributes{User: request.UserFrom(ctx), Info: *x.info}
	a.Verb = "create"
	decision, reason, err := x.Authorizer.Authorize(ctx, a)
	if decision == authz.Allow {
		return nil
	}
	if err != nil {
		x.Log.Warn("authorization failed", "path", a.Path, "err", err)
	}
	return authz.Forbidden(a, reason)
}

// otherUID returns the error for a PUT that means a deleted object of the same name; nil if it means current.
func otherUID(obj, current runtime.Object) (*registry.OtherUID, error) {
	want, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	have, err := meta.Accessor(current)
	if err != nil {
		return nil, err
	}
	if uid := want.GetUID(); uid != "" && uid != have.GetUID() {
		return &registry.OtherUID{Want: uid, Have: have.GetUID()}, nil
	}
	return nil, nil
}

// withoutVersion drops the resourceVersion of an object that a PUT creates. The client read it from a deleted object,
// and a creation refuses any version.
func withoutVersion(obj runtime.Object) error {
	access, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	access.SetResourceVersion("")
	return nil
}

func readUpdateOptions(x *exchange, p purpose) (accepted, *metav1.UpdateOptions, error) {
	a, err := x.negotiate(p)
	if err != nil {
		return a, nil, err
	}
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_UpdateOptions)
	if err != nil {
		return a, nil, err
	}
	opts.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions")) // for admission
	return a, opts, invalidOptions("UpdateOptions", validation.ValidateUpdateOptions(opts))
}

// checkName refuses a PUT whose body does not name the object of the URL. An empty name is refused too: upstream does
// not fill it in.
func checkName(x *exchange, obj runtime.Object) error {
	access, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	switch access.GetName() {
	case x.info.Name:
	case "":
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided",
				x.info.Name))
	default:
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", access.GetName(),
				x.info.Name))
	}
	return nil
}

// serveGetFrom answers with the object of a subresource that has a kind of its own.
func serveGetFrom(x *exchange, rw registry.ReadWriter) error {
	a, err := x.negotiate(forPart)
	if err != nil {
		return err
	}
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_GetOptions)
	if err != nil {
		return err
	}
	notOlderThan, err := revisionOf(opts.ResourceVersion)
	if err != nil {
		return err
	}
	if notOlderThan > 0 { // what is read after it is the newest, but that may be older than what the client has seen
		if _, err := x.res.Store.GetItem(x.r.Context(), x.info.Namespace, x.info.Name, notOlderThan); err != nil {
			return err
		}
	}
	obj, err := rw.Get(x.r.Context(), x.info.Namespace, x.info.Name)
	if err != nil {
		return err
	}
	return x.writePart(rw, a, obj)
}

// serveUpdateWith serves a PUT to a subresource with a kind of its own.
func serveUpdateWith(x *exchange, rw registry.ReadWriter, gvk schema.GroupVersionKind) error {
	a, opts, err := readUpdateOptions(x, forPart)
	if err != nil {
		return err
	}
	obj := rw.New()
	if err := x.body(gvk, obj, opts.FieldValidation); err != nil {
		return err
	}
	if err := x.fitNamespace(obj); err != nil {
		return err
	}
	if err := checkName(x, obj); err != nil {
		return err
	}
	ctx := x.context()
	out, err := rw.Update(ctx, x.info.Namespace, x.info.Name,
		partChange(x, opts, func(current runtime.Object) (runtime.Object, error) {
			obj := obj.DeepCopyObject()
			return obj, noteManager(x, x.res.plain[x.info.Subresource], opts.FieldManager, current, obj)
		}), opts)
	if err != nil {
		return err
	}
	return x.writePart(rw, a, out)
}
