package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	sigsjson "sigs.k8s.io/json"

	"bonsai/pkg/apiserver/patch"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// patchRequest is a PATCH that has been read.
type patchRequest struct {
	*exchange
	apply *patch.Applier
	media types.PatchType
	// bare tells that the patch may be applied to an object without managedFields, which come back when the write is
	// noted: it merges, and does not say anything of them.
	bare  bool
	opts  *metav1.PatchOptions
	gvk   schema.GroupVersionKind
	empty func() runtime.Object
}

// readPatch reads options, type and body of a PATCH on objects of kind gvk.
func readPatch(x *exchange, p purpose, gvk schema.GroupVersionKind, empty func() runtime.Object) (
	accepted, *patchRequest, error,
) {
	a, err := x.negotiate(p)
	if err != nil {
		return a, nil, err
	}
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_PatchOptions)
	if err != nil {
		return a, nil, err
	}
	media := bodyType(x.r)
	sample := empty()
	supported := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	dynamic := x.res.Version.Dynamic()
	if !dynamic { // the fields of Go types say how they merge
		supported = append(supported, string(types.StrategicMergePatchType))
	}
	switch {
	case slices.Contains(supported, media):
	case dynamic: // as upstream words it for each
		return a, nil, unsupportedMedia(append(supported, typeApply)...)
	default:
		return a, nil, errPatchType()
	}
	if err := invalidOptions("PatchOptions",
		validation.ValidatePatchOptions(opts, types.PatchType(media))); err != nil {
		return a, nil, err
	}
	body, err := x.document(nil)
	if err != nil {
		return a, nil, err
	}
	x.auditPatch(body)
	apply, err := patch.Read(types.PatchType(media), body, sample)
	if err != nil {
		return a, nil, patchError(err)
	}
	bare := media != string(types.JSONPatchType) && !bytes.Contains(body, []byte("managedFields"))
	return a, &patchRequest{exchange: x, apply: apply, media: types.PatchType(media), bare: bare, opts: opts, gvk: gvk,
		empty: empty}, nil
}

// errPatchType is the 415 for a patch of a format that there is not.
func errPatchType() error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
			Reason:  metav1.StatusReasonUnsupportedMediaType,
			Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{}}}
}

// to applies the patch to an object's JSON.
func (p *patchRequest) to(current []byte) (runtime.Object, error) {
	doc := current
	if p.bare {
		doc = patch.Bare(current)
	}
	patched, spliced := p.apply.Spliced(doc)
	var obj runtime.Object
	var warnings []error
	var err error
	if spliced {
		obj, warnings, err = p.read(patched)
	} else {
		obj, warnings, err = p.on(doc)
	}
	// they show the whole object, and its fields in their order
	if err != nil && (spliced || len(doc) < len(current)) || spliced && len(warnings) > 0 {
		obj, warnings, err = p.on(current)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		p.warn(w.Error())
	}
	return obj, nil
}

// on is to without the warnings, which it returns.
func (p *patchRequest) on(current []byte) (runtime.Object, []error, error) {
	patched, err := p.apply.To(p.r.Context(), current)
	if err != nil {
		return nil, nil, patchError(err)
	}
	return p.read(patched)
}

// read makes an object of the patched document, and returns the warnings.
func (p *patchRequest) read(patched []byte) (_ runtime.Object, _ []error, err error) {
	obj, w := p.empty(), p.wanted(p.gvk)
	_, dynamic := obj.(runtime.Unstructured)
	strategic := p.media == types.StrategicMergePatchType // that knows the kind
	var strict []error
	strict, err = readJSON(patched, obj, w.prune, p.opts.FieldValidation)
	switch {
	case err == nil:
		// nothing is named, or a version that is none
		if !dynamic && obj.GetObjectKind().GroupVersionKind().Version == "" {
			_, err = named(patched)
		}
	case strategic:
		err = cmp.Or(notRestored(patched, p.empty()), err)
	case !dynamic:
		got, kindErr := named(patched)
		err = cmp.Or(kindErr, w.differs(got, patched), err)
	}
	if err == nil && !strategic && w.differs(obj.GetObjectKind().GroupVersionKind(), patched) == nil {
		err = w.read(obj)
	}
	if p.opts.FieldValidation != metav1.FieldValidationIgnore {
		strict = append(slices.Clone(p.apply.Duplicates), strict...)
	}
	if err == nil && len(strict) > 0 && p.opts.FieldValidation == metav1.FieldValidationStrict {
		err = runtime.NewStrictDecodingError(strict)
	}
	if err != nil {
		return nil, nil, invalidPatch(p.apply.Shown(patched), err)
	}
	if u, ok := obj.(runtime.Unstructured); ok {
		if err := checkUnstructuredKind(u, p.gvk, patched); err != nil && !p.keepsKind(obj) {
			return nil, nil, err
		}
	}
	if err := w.differs(obj.GetObjectKind().GroupVersionKind(), patched); err != nil && !p.keepsKind(obj) &&
		!strategic {
		return nil, strict, invalidPatch(string(patched), err)
	}
	if err := w.read(obj); err != nil {
		return nil, nil, registry.Plain(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(p.gvk)
	if err := p.fitNamespace(obj); err != nil {
		return nil, strict, err
	}
	return obj, strict, checkName(p.exchange, obj)
}

// notRestored is why a document that a strategic merge patch made is no object like obj, in the words of the conversion
// that Kubernetes applies such patches by; nil if that takes it.
func notRestored(patched []byte, obj runtime.Object) error {
	doc := map[string]any{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(patched, &doc); err != nil {
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(doc, obj)
}

// keepsKind tells that a write of the status of a custom resource keeps the object's kind, whatever kind it names in
// the same version.
func (p *patchRequest) keepsKind(obj runtime.Object) bool {
	named := obj.GetObjectKind().GroupVersionKind()
	return p.res.Version.Dynamic() && p.info.Subresource == "status" && named.GroupVersion() == p.gvk.GroupVersion() &&
		named.Kind != ""
}

// invalidPatch is the 422 for a patch, or a patched object, that cannot be read as an object.
func invalidPatch(shown string, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "",
		field.ErrorList{field.Invalid(field.NewPath("patch"), shown, err.Error())})
}

// patchError tells the ways in which a patch can be wrong: not a patch (400), not applicable (422), an order that
// cannot be carried out (500, in the words of the error itself), too long (413).
func patchError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, patch.ErrNotApplicable) {
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
			err.Error(), 0, false)
	}
	if errors.Is(err, patch.ErrDirective) {
		return plainError(http.StatusInternalServerError, "", err.Error())
	}
	if errors.Is(err, patch.ErrTooLarge) || errors.Is(err, patch.ErrLongList) {
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	return apierrors.NewBadRequest(err.Error())
}

// servePatch changes an object, or what subresource writes of it. It is applied to the newest object again when another
// writer came between, unless it names a resourceVersion.
func servePatch(x *exchange, subresource string) error {
	if x.applies() {
		return serveApply(x, subresource)
	}
	a, p, err := readPatch(x, forObject, x.res.GVK, x.res.Version.New)
	if err != nil {
		return err
	}
	ctx := x.context()
	change := func(current runtime.Object, item *storage.Item) (runtime.Object, error) {
		b, err := currentJSON(x, current, item)
		if err != nil {
			return nil, internal(err)
		}
		obj, err := p.to(b)
		if err != nil {
			return nil, err
		}
		return x.toHub(obj)
	}
	item, obj, err := x.res.Store.UpdateItem(ctx, x.info.Namespace, x.info.Name, subresource, change,
		registry.PatchToUpdate(p.opts))
	if err != nil {
		return err
	}
	if err := x.share(a, item, obj); err != nil {
		return err
	}
	return x.writeStored(a, http.StatusOK, item)
}

// currentJSON is the object as the client sees it; in the stored version its shared encoding.
func currentJSON(x *exchange, current runtime.Object, item *storage.Item) ([]byte, error) {
	if x.res.Version.FromHub == nil {
		return x.res.Store.Codec().AppendJSON(nil, item)
	}
	obj, err := x.fromHub(current)
	if err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// servePatchWith is a PATCH of a subresource that has a kind of its own.
func servePatchWith(x *exchange, rw registry.ReadWriter, gvk schema.GroupVersionKind) error {
	if x.applies() {
		return serveApplyWith(x, rw, x.res.plain[x.info.Subresource])
	}
	a, p, err := readPatch(x, forPart, gvk, rw.New)
	if err != nil {
		return err
	}
	ctx := x.context()
	opts := registry.PatchToUpdate(p.opts)
	out, err := rw.Update(ctx, x.info.Namespace, x.info.Name,
		partChange(x, opts, func(current runtime.Object) (runtime.Object, error) {
			current.GetObjectKind().SetGroupVersionKind(gvk)
			b, err := json.Marshal(current)
			if err != nil {
				return nil, apierrors.NewInternalError(err)
			}
			obj, err := p.to(b)
			if err != nil {
				return nil, err
			}
			return obj, noteManager(x, x.res.plain[x.info.Subresource], opts.FieldManager, current, obj)
		}), opts)
	if err != nil {
		return err
	}
	return x.writePart(rw, a, out)
}
