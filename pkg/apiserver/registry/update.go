package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	pathsegment "k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/storage"
)

// Change makes the new object from the current one, which it may change and return. item is the current object's bytes.
// A resourceVersion that it sets must be the current object's (409 otherwise); OtherUID is answered with 409, too.
type Change func(current runtime.Object, item *storage.Item) (runtime.Object, error)

// Update implements Store.
func (g *Generic) Update(ctx context.Context, ns, name, subresource string,
	change func(runtime.Object) (runtime.Object, error), opts *metav1.UpdateOptions) (runtime.Object, error) {
	_, obj, err := g.UpdateItem(ctx, ns, name, subresource,
		func(current runtime.Object, _ *storage.Item) (runtime.Object, error) {
			return change(current)
		}, opts)
	return obj, err
}

// update is one call of UpdateItem: what its attempts share and leave behind.
type update struct {
	*Generic
	ns, name, subresource string
	strategy              *resources.Strategy
	change                Change
	opts                  *metav1.UpdateOptions
	dryRun                bool
	noted                 bool // change keeps managedFields

	obj    runtime.Object
	item   *storage.Item // what a dry run, or an update that lets the object go, would have stored
	remove int64         // the revision of the object that this update lets go
	done   func(committed bool)
}

// Ends of an attempt that are not failures.
var (
	errDryRun = errors.New("dry run")
	errRemove = errors.New("the last finalizer is gone")
)

// UpdateItem runs change and stores the result, as Store.Update says. The item is the object as it is now; if the
// update took the last finalizer of a deleted object, as it would have become, at the revision that it had, as
// Kubernetes answers.
func (g *Generic) UpdateItem(ctx context.Context, ns, name, subresource string, change Change,
	opts *metav1.UpdateOptions) (*storage.Item, runtime.Object, error) {
	return g.update(ctx, &update{Generic: g, ns: ns, name: name, subresource: subresource,
		strategy: strategyOf(g.Row, subresource), change: change, opts: opts, dryRun: isDryRun(opts.DryRun)})
}

// update runs attempts until one is stored, or ends in another way. An attempt that takes the last finalizer stores
// nothing: the key is removed, if it still has the revision that the attempt saw. If it was written in between, the
// update begins again with the newer object.
func (g *Generic) update(ctx context.Context, u *update) (*storage.Item, runtime.Object, error) {
	key, name := g.key(u.ns, u.name), u.name
	for {
		item, err := g.Storage.Update(ctx, key, func(current *storage.Item) (storage.Draft, error) {
			return u.attempt(ctx, current)
		})
		switch {
		case errors.Is(err, errDryRun):
			item, err = u.item, nil
		case errors.Is(err, errRemove):
			var removed *storage.Item
			removed, err = removeAt(ctx, g.Storage, key, u.remove)
			if errors.Is(err, errStale) {
				u.settle(false)
				continue
			}
			if err == nil {
				g.wrote(removed)
				item = u.item
			}
			if err == nil && g.Hook != nil {
				g.Hook.AfterDelete(ctx, u.obj)
			}
		}
		u.settle(err == nil && !u.dryRun)
		if err != nil {
			return nil, nil, g.apiError(name, err)
		}
		if !u.dryRun {
			g.wrote(item)
		}
		if err := setVersion(u.obj, item); err != nil {
			return nil, nil, err
		}
		return item, u.obj, nil
	}
}

// removeAt removes the key if it still has the given revision; errStale otherwise.
func removeAt(ctx context.Context, from storage.Interface, key string, revision int64) (*storage.Item, error) {
	return from.Delete(ctx, key, func(current *storage.Item) error {
		if current.Revision != revision {
			return errStale
		}
		return nil
	})
}

// settle reports to the hook how the last attempt ended. Each done of a hook is called once, before the next attempt
// calls BeforeUpdate: a hook holds what it allocated for one attempt only.
func (u *update) settle(committed bool) {
	if u.done != nil {
		u.done(committed)
		u.done = nil
	}
}

// attempt makes the draft of the new object from the current item. The storage calls it again if another write came
// first, so it leaves nothing of an earlier attempt in place: it settles that one's hook and decodes the item again.
// change gets a copy, as strategies, admission and validation compare its result with old.
func (u *update) attempt(ctx context.Context, current *storage.Item) (storage.Draft, error) {
	u.settle(false)
	old, err := Object(u.codec, current)
	if err != nil {
		return storage.Draft{}, err
	}
	obj, err := u.change(old.DeepCopyObject(), current)
	if other := (*OtherUID)(nil); errors.As(err, &other) {
		err = u.Conflict(u.ns, u.name, other)
	}
	if err != nil {
		return storage.Draft{}, err
	}
	obj, access, err := u.prepare(ctx, obj, old)
	if err != nil {
		return storage.Draft{}, err
	}
	u.obj = obj
	draft, err := u.codec.Draft(obj)
	if err != nil {
		return storage.Draft{}, err
	}
	if !u.dryRun && goes(u.Row, obj, access) {
		u.item, u.remove = draftItem(current, draft), current.Revision
		return storage.Draft{}, errRemove
	}
	if draft, err = u.settled(draft, current, obj, old); err != nil {
		return storage.Draft{}, err
	}
	draft.TTL = u.Row.TTL
	if u.dryRun {
		u.item = draftItem(current, draft)
		return storage.Draft{}, errDryRun
	}
	return draft, nil
}

// draftItem is what current would be with a draft that is not stored.
func draftItem(current *storage.Item, draft storage.Draft) *storage.Item {
	return storage.NewItem(current.Key, draft.Value, current.Revision, *draft.Facts)
}

// prepare takes obj through metadata rules, admission, strategy and validation, and returns what came of it. It checks
// the identity twice, before and after admission: a webhook may answer with another object, which must not be stored
// under this key either.
func (u *update) prepare(ctx context.Context, obj, old runtime.Object) (runtime.Object, metav1.Object, error) {
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, fmt.Errorf("update %s: %w", u.gr, err)
	}
	was, err := meta.Accessor(old)
	if err != nil {
		return nil, nil, fmt.Errorf("update %s: %w", u.gr, err)
	}
	if err := fitNamespace(u.Row, access, u.ns); err != nil {
		return nil, nil, err
	}
	if name := access.GetName(); name != u.name {
		return nil, nil, otherName(name, u.name)
	}
	if err := u.checkIdentity(access, was); err != nil {
		return nil, nil, err
	}
	def := u.defaults(ctx, u.strategy)
	if def != nil {
		def(obj)
	}
	OwnersOnce(access, ownersChanged, callerFrom(ctx).Warn)
	if !u.noted && !u.admitted {
		if err := u.note(ctx, u.writer(ctx, u.opts.FieldManager, u.subresource), old, obj); err != nil {
			return nil, nil, err
		}
	}
	a := u.attributes(ctx, admission.Update, u.ns, u.name, u.subresource)
	a.Object, a.OldObject, a.Options, a.DryRun = obj, old, u.opts, u.dryRun
	if access, err = u.admit(ctx, a, def); err != nil {
		return nil, nil, err
	}
	OwnersOnce(access, ownersChanged, a.Warn)
	if err := u.checkIdentity(access, was); err != nil {
		return nil, nil, err
	}
	return a.Object, access, u.settleOn(ctx, a, access, was)
}

// settleOn takes what admission left through strategy and validation. The order matters: the strategy puts back what
// the request may not change before the generation counts changes, the hook allocates before the validation sees the
// object, and validating admission comes last and sees what will be stored.
func (u *update) settleOn(ctx context.Context, a *admission.Attributes, access, was metav1.Object) (err error) {
	obj, old := a.Object, a.OldObject
	keepSystemMetadata(access, was)
	if s := u.strategy; s != nil && s.PrepareUpdate != nil {
		s.PrepareUpdate(obj, old)
	}
	changed := u.Row.Strategy.SpecChanged
	if u.strategy != nil {
		changed = u.strategy.SpecChanged
	}
	seen, err := u.asVersion(ctx, obj, old)
	if err != nil {
		return err
	}
	now, before := obj, old
	if seen != nil { // where what only the stored kind has is no change
		now, before = seen.obj, seen.old
	}
	if changed != nil && changed(now, before) {
		access.SetGeneration(was.GetGeneration() + 1)
	}
	if u.Hook != nil && u.subresource == "" {
		if u.done, err = u.Hook.BeforeUpdate(ctx, obj, old, u.dryRun); err != nil {
			return err
		}
	}
	if err := u.validate(ctx, a, seen, access, was); err != nil {
		return err
	}
	if u.strategy != nil && u.strategy.Warnings != nil {
		for _, w := range u.strategy.Warnings(obj, old) {
			a.Warn(w)
		}
	}
	if u.Admission != nil {
		if err := u.Admission.Validate(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// otherName is the 400 for an object that is not called as the URL says.
func otherName(name, url string) error {
	if name == "" {
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", url))
	}
	return apierrors.NewBadRequest(
		fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, url))
}

// checkIdentity refuses a write that was meant for another namespace or another version of the object. Another name or
// uid is an invalid change of the object.
func (u *update) checkIdentity(access, was metav1.Object) error {
	if err := fitNamespace(u.Row, access, u.ns); err != nil {
		return err
	}
	v, err := version(access)
	switch {
	case err != nil:
		return Plain(err)
	case v == 0:
		if u.Row.Strategy.NeedsVersion {
			return apierrors.NewInvalid(schema.GroupKind{Group: u.gr.Group, Kind: u.gr.Resource}, u.name,
				field.ErrorList{
					field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
		}
	case access.GetResourceVersion() != was.GetResourceVersion():
		return apierrors.NewConflict(u.gr, u.name, errModified)
	}
	return nil
}

// version is the resourceVersion that a client gives an object; 0: none. The number serves to refuse what is no
// version, and as the revision of a dry run's item. Whether it is the current one is a comparison of texts.
func version(access metav1.Object) (uint64, error) {
	v := access.GetResourceVersion()
	if v == "" {
		return 0, nil
	}
	return strconv.ParseUint(v, 10, 64)
}

// keepSystemMetadata carries over what a client cannot change. A UID or a deletion time that the client sends stays:
// the validation refuses it if it differs.
func keepSystemMetadata(access, was metav1.Object) {
	access.SetResourceVersion(was.GetResourceVersion())
	if access.GetUID() == "" {
		access.SetUID(was.GetUID())
	}
	access.SetGeneration(was.GetGeneration())
	access.SetSelfLink("")
	access.SetCreationTimestamp(was.GetCreationTimestamp())
	if access.GetDeletionTimestamp() == nil {
		access.SetDeletionTimestamp(was.GetDeletionTimestamp())
	}
	if access.GetDeletionGracePeriodSeconds() == nil {
		access.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	}
}

// validate checks what admission left, also as seen by the version that was asked for, if that has rules of its own.
func (u *update) validate(ctx context.Context, a *admission.Attributes, seen *versioned, access,
	was metav1.Object) error {
	obj, old := a.Object, a.OldObject
	path := field.NewPath("metadata")
	errs := u.validateMetadata(access, was, path)
	if u.Checker != nil {
		errs = append(errs, u.Checker.CheckUpdate(ctx, u.subresource, obj, old)...)
	}
	var faults field.ErrorList
	var kept []string
	if seen != nil {
		faults, kept = seen.Validate(u.subresource, seen.obj, seen.old)
	} else if u.strategy != nil && u.strategy.ValidateUpdate != nil {
		faults, kept = u.strategy.ValidateUpdate(obj, old)
	}
	errs = append(errs, faults...)
	for _, w := range kept { // also if the update is refused
		a.Warn(w)
	}
	if len(errs) > 0 {
		return invalid(u.codec.GVK().GroupKind(), access.GetName(), errs)
	}
	return nil
}

// validateMetadata checks metadata as that of a new object, and its changes.
func (u *update) validateMetadata(access, was metav1.Object, path *field.Path) field.ErrorList {
	return slices.Concat(
		validation.ValidateObjectMetaAccessor(access, u.Row.Namespaced, pathsegment.ValidatePathSegmentName, path),
		validation.ValidateObjectMetaAccessorUpdate(access, was, path),
		validateFinalizers(u.Row, access, path))
}

// goes reports whether a deleted object has nothing left to wait for. Updates ask it as well as deletions: the write
// that takes the last finalizer, or the last of a namespace's own, removes the object instead of storing it.
func goes(row *resources.Row, obj runtime.Object, access metav1.Object) bool {
	if access.GetDeletionTimestamp() == nil || len(access.GetFinalizers()) > 0 {
		return false
	}
	if grace := access.GetDeletionGracePeriodSeconds(); grace != nil && *grace > 0 {
		return false
	}
	return row.Strategy.Held == nil || !row.Strategy.Held(obj)
}
