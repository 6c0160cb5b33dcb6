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

// patchRequest is a PATCH whose body has been read. It is applied once for each attempt of the write, always on the
// request's goroutine.
type patchRequest struct {
	*exchange
	apply *patch.Applier
	media types.PatchType
	// bare: the patch may be applied to the object without managedFields, which saves decoding them; noting the write
	// restores them. It is set for merge patches that do not mention managedFields.
	bare  bool
	opts  *metav1.PatchOptions
	gvk   schema.GroupVersionKind
	empty func() runtime.Object
}

// readPatch reads options, type and body of a PATCH on objects of kind gvk. The patch is parsed here, once. Attempts
// only apply it. The media type is checked before the options: an unknown one is a 415 even if the options contradict
// each other.
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
	if !json.Valid(body) {
		return a, nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	apply, err := patch.Read(types.PatchType(media), body, sample)
	if err != nil {
		return a, nil, patchError(err)
	}
	// A search of the text, not of the keys: where the word stands for something else, the patch takes the slower way.
	bare := media != string(types.JSONPatchType) && !bytes.Contains(body, []byte("managedFields"))
	return a, &patchRequest{exchange: x, apply: apply, media: types.PatchType(media), bare: bare, opts: opts, gvk: gvk,
		empty: empty}, nil
}

// errPatchType is the 415 for an unknown patch format.
func errPatchType() error {
	return &apierrors.StatusError{
		ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType,
			Reason:  metav1.StatusReasonUnsupportedMediaType,
			Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{}}}
}

// to applies the patch to an object's JSON. It tries the cheap ways first, splicing the text and leaving out
// managedFields. If one fails or finds something to warn about, the patch is applied to the whole object: messages
// quote it. Warnings of an attempt that loses to another writer stay; warn drops repeated ones.
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

// on applies the patch by decoding the object, and returns the warnings. The request's context bounds it: some patches
// take long on large objects.
func (p *patchRequest) on(current []byte) (runtime.Object, []error, error) {
	patched, err := p.apply.To(p.r.Context(), current)
	if err != nil {
		return nil, nil, patchError(err)
	}
	return p.read(patched)
}

// read makes an object of the patched document, and returns the warnings. The order of the checks decides which error a
// client gets for a document with several faults. Upstream decodes Go types, custom resources and the results of
// strategic merge patches in three different ways, and each has its own words; hence the cases.
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

// notRestored returns why the result of a strategic merge patch is not an object like obj, in the words of the
// conversion that Kubernetes uses for such patches. It returns nil if the conversion succeeds.
func notRestored(patched []byte, obj runtime.Object) error {
	doc := map[string]any{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(patched, &doc); err != nil {
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(doc, obj)
}

// keepsKind reports whether the write keeps the object's kind anyway: a status write of a custom resource ignores the
// kind in the body, within the same version.
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

// patchError maps the errors of a patch to answers: 400 if it is not a patch, 422 if it does not apply, 500 for a
// directive that cannot be carried out (in the error's own words), 413 if it is too large.
func patchError(err error) error {
	// The request ended while the patch was applied: no fault of the patch. WriteError knows the answer.
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

// servePatch changes an object, or the part that subresource writes. If another writer came first, the patch is applied
// again to the newest object, unless it names a resourceVersion. change may run several times, on this goroutine, and
// leaves nothing behind but warnings: it makes a new object each time.
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
		// The patch is in the client's version, so it meets the object in that one, and the result goes back to the
		// stored one.
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

// currentJSON returns the object's JSON in the client's version. For the stored version that is the encoding that the
// item shares. A version that converts pays for the conversion and an encoding in each attempt.
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

// servePatchWith serves a PATCH of a subresource with a kind of its own. No store keeps objects of that kind, so the
// change itself notes the manager in the object.
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
