package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// serveDelete removes an object, or marks it for removal while it has finalizers or time to end gracefully. The
// answer for a removed object is a Status, unless its kind returns deleted objects; for a marked one it is the object.
func serveDelete(x *exchange) error {
	a, err := x.negotiate(forObject)
	if err != nil {
		return err
	}
	opts, err := readDeleteOptions(x)
	if err != nil {
		return err
	}
	ctx := x.context()
	if ignore := opts.IgnoreStoreReadErrorWithClusterBreakingPotential; ignore != nil && *ignore {
		return discard(ctx, x, a, opts)
	}
	item, obj, gone, err := x.res.Store.DeleteItem(ctx, x.info.Namespace, x.info.Name, opts)
	if err != nil {
		return err
	}
	if gone && !x.res.Store.Row.Strategy.ReturnDeleted {
		return writeDeleted(x, a, obj)
	}
	if err := x.share(a, item, obj); err != nil {
		return err
	}
	// 202 if the object waits for its dependents and the client asked for that by the deprecated field. As in
	// Kubernetes, propagationPolicy makes no such difference.
	code := http.StatusOK
	if o := opts.OrphanDependents; !gone && o != nil && !*o { //nolint:staticcheck // deprecated, but part of the API
		code = http.StatusAccepted
	}
	return x.writeStored(a, code, item)
}

// ignoreReadError is the option of a deletion that removes an object that nobody can read.
const ignoreReadError = "ignoreStoreReadErrorWithClusterBreakingPotential"

// discard removes an object that nobody can read. That needs a right of its own, and is noted in the audit.
func discard(ctx context.Context, x *exchange, a accepted, opts *metav1.DeleteOptions) error {
	if err := mayDiscard(x); err != nil {
		return err
	}
	request.Annotate(x.r.Context(), "apiserver.k8s.io/unsafe-delete-ignore-read-error", "")
	if _, _, _, err := x.res.Store.DeleteItem(ctx, x.info.Namespace, x.info.Name, opts); err != nil {
		return err
	}
	return x.writeSuccess(a, http.StatusOK, &metav1.StatusDetails{Name: x.info.Name, Kind: x.res.Row.GVK.Kind})
}

// mayDiscard refuses a client that may delete the object, but not without its being read.
func mayDiscard(x *exchange) error {
	const verb = "unsafe-delete-ignore-read-errors"
	if x.Authorizer == nil {
		return nil
	}
	ctx := x.r.Context()
	a := authz.Attributes{User: request.UserFrom(ctx), Info: *x.info}
	a.Verb = verb
	decision, reason, err := x.Authorizer.Authorize(ctx, a)
	if decision == authz.Allow {
		return nil
	}
	if err != nil {
		x.Log.Warn("authorization failed", "path", a.Path, "err", err)
	}
	return apierrors.NewForbidden(x.res.Row.GroupResource(), x.info.Name,
		fmt.Errorf("not permitted to do %q, reason: %s", verb, reason))
}

// readDeleteOptions reads the options from the body or, without one, from the query: some clients and proxies cannot
// send a DELETE with a body.
func readDeleteOptions(x *exchange) (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	body, err := x.document(opts)
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		// Clients send DeleteOptions in "v1", "meta.k8s.io/v1" and in the resource's own group and version.
		w := wanted{GroupVersionKind: deleteOptionsKind(x, body)}
		if err := decode(body, bodyType(x.r), w, opts, metav1.FieldValidationIgnore, x.warn); err != nil {
			var bad *bodyError
			if errors.As(err, &bad) {
				return nil, apierrors.NewBadRequest(bad.cause.Error())
			}
			return nil, err
		}
		x.auditDeletion(opts)
	} else if opts, err = fromQuery(x.query, metav1.Convert_url_Values_To_v1_DeleteOptions); err != nil {
		return nil, err
	}
	opts.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions")) // for admission
	return opts, invalidOptions("DeleteOptions", validation.ValidateDeleteOptions(opts))
}

func deleteOptionsKind(x *exchange, body []byte) schema.GroupVersionKind {
	gv := namedVersion(x, body)
	if gv.Empty() {
		gv = metav1.SchemeGroupVersion
	}
	return gv.WithKind("DeleteOptions")
}

// namedVersion returns the version that a body names, empty if it cannot be read.
func namedVersion(x *exchange, body []byte) schema.GroupVersion {
	named := peekKind(body, bodyType(x.r))
	gv, err := schema.ParseGroupVersion(named.APIVersion)
	if err != nil {
		return schema.GroupVersion{}
	}
	return gv
}

// writeDeleted answers with a Status for an object that is gone.
func writeDeleted(x *exchange, a accepted, obj runtime.Object) error {
	access, err := meta.Accessor(obj)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	gr := x.res.Row.GroupResource()
	return x.writeSuccess(a, 0, &metav1.StatusDetails{
		Name: access.GetName(), Group: gr.Group, Kind: gr.Resource, UID: access.GetUID()})
}

// writeSuccess answers with a Status, which has code if it is not 0.
func (x *exchange) writeSuccess(a accepted, code int32, details *metav1.StatusDetails) error {
	status := &metav1.Status{Status: metav1.StatusSuccess, Code: code, Details: details}
	status.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Status"})
	return x.writeObject(accepted{media: a.media, pretty: a.pretty}, http.StatusOK, status)
}

// serveDeleteCollection deletes the objects that the selectors match, and answers with the list of them, each as it was
// before.
func serveDeleteCollection(x *exchange) error {
	a, err := x.negotiate(forList)
	if err != nil {
		return err
	}
	list, err := listOptions(x.query)
	if err != nil {
		return err
	}
	chosen, err := x.choose(list, "")
	if err != nil {
		return err
	}
	x.ready(chosen)
	in, err := storageList(list, chosen.filter)
	if err != nil {
		return err
	}
	opts, err := readDeleteOptions(x)
	if err != nil {
		return err
	}
	if ignore := opts.IgnoreStoreReadErrorWithClusterBreakingPotential; ignore != nil && *ignore {
		return invalidOptions("DeleteOptions", field.ErrorList{field.Invalid(field.NewPath(ignoreReadError), true,
			"is not allowed with DELETECOLLECTION, try again after removing the option")})
	}
	ctx := x.context()
	page, err := x.res.Store.DeleteItems(ctx, x.info.Namespace, opts, in)
	if err == nil && chosen.err != nil {
		err = internal(chosen.err)
	}
	if err != nil {
		return err
	}
	return writePage(x, a, page, chosen.filter == nil)
}
