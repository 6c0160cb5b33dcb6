package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/storage"
)

// deleteWorkers is how many objects of a collection are deleted at a time.
const deleteWorkers = 8

// Delete implements Store. It reads the object, whatever opts say: only DeleteItem removes unread objects.
func (g *Generic) Delete(ctx context.Context, ns, name string, opts *metav1.DeleteOptions) (runtime.Object, bool,
	error) {
	d := deletion{Generic: g, ns: ns, name: name, opts: opts}
	_, obj, gone, err := d.run(ctx)
	return obj, gone, err
}

// DeleteItem is Delete that returns the object's bytes as well. If ignoreStoreReadErrorWithClusterBreakingPotential is
// set, it removes an object that cannot be read and returns none. The caller must have checked the permission for that.
func (g *Generic) DeleteItem(ctx context.Context, ns, name string, opts *metav1.DeleteOptions) (*storage.Item,
	runtime.Object, bool, error) {
	if ignore := opts.IgnoreStoreReadErrorWithClusterBreakingPotential; ignore != nil && *ignore {
		return nil, nil, true, discard(ctx, g, ns, name, opts)
	}
	d := deletion{Generic: g, ns: ns, name: name, opts: opts}
	return d.run(ctx)
}

// deletion is one call of DeleteItem. It reports the object as it is afterwards, and whether it is gone.
type deletion struct {
	*Generic
	ns, name     string
	ofCollection bool // the request is for a collection
	opts         *metav1.DeleteOptions
}

// run tries until no other writer changes the object between the decision and the write. The number of tries has no
// bound of its own: each lost one means that another write succeeded. ctx ends them. Admission runs in each try, on the
// object as it then is, so a webhook may see one deletion several times.
func (d *deletion) run(ctx context.Context) (*storage.Item, runtime.Object, bool, error) {
	for {
		item, obj, gone, err := d.try(ctx)
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return nil, nil, false, d.apiError(d.name, err)
		}
		return item, obj, gone, nil
	}
}

// try decides on the object as it is now, and carries it out. It returns errStale if the object changed meanwhile.
//
// A deletion is one write or two. Kinds without grace periods are removed at once, if nothing holds the object. Others
// get their mark first (storeMarked), and only go if no time is left. If the second write fails, the mark stays: the
// object is being deleted, and the client can repeat the request.
func (d *deletion) try(ctx context.Context) (*storage.Item, runtime.Object, bool, error) {
	key := d.key(d.ns, d.name)
	item, err := d.Storage.Get(ctx, key, 0)
	if err != nil {
		return nil, nil, false, err
	}
	obj, err := Object(d.codec, item)
	if err != nil {
		return nil, nil, false, err
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, false, fmt.Errorf("delete %s: %w", d.gr, err)
	}
	if err := d.checkPreconditions(access.GetUID(), access.GetResourceVersion()); err != nil {
		return nil, nil, false, err
	}
	if d.Admission != nil {
		a := d.attributes(ctx, admission.Delete, d.ns, d.name, "")
		a.Collection = d.ofCollection
		// A copy: markDeleted changes obj below, and a plug-in must not see that, or change what is stored.
		a.OldObject, a.Options, a.DryRun = obj.DeepCopyObject(), d.opts, isDryRun(d.opts.DryRun)
		if err := d.Admission.Admit(ctx, a); err != nil {
			return nil, nil, false, err
		}
		if err := d.Admission.Validate(ctx, a); err != nil {
			return nil, nil, false, err
		}
	}
	if w := d.Row.Strategy.OrphanWarning; w != "" && d.orphansUnasked(access.GetFinalizers()) {
		callerFrom(ctx).Warn(w)
	}
	changed := d.markDeleted(obj, access)
	gone := goes(d.Row, obj, access)
	if gone && d.Row.Strategy.Graceful == nil { // the answer and hooks get it as it was
		if obj, err = Object(d.codec, item); err != nil {
			return nil, nil, false, err
		}
		return d.remove(ctx, item, obj)
	}
	if changed {
		if item, err = d.storeMarked(ctx, item, obj); err != nil {
			return nil, nil, false, err
		}
	}
	if !gone {
		return item, obj, false, nil
	}
	return d.removeMarked(ctx, item, obj, changed)
}

// checkPreconditions compares what the client asked the object to be with what it is. It runs before admission, so that
// no webhook hears of a deletion that means another object. The write checks the revision again (errStale).
func (d *deletion) checkPreconditions(uid types.UID, version string) error {
	want, name := d.opts.Preconditions, d.name
	if want == nil {
		return nil
	}
	kind := schema.GroupResource{Group: d.Row.GVK.Group, Resource: d.Row.GVK.Kind}
	if d.Row.Strategy.Held != nil { // upstream deletes these in a way of their own
		switch {
		case want.UID != nil && *want.UID != uid:
			//nolint:staticcheck // Kubernetes' words
			return apierrors.NewConflict(d.gr, name,
				fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *want.UID, uid))
		case want.ResourceVersion != nil && *want.ResourceVersion != version:
			//nolint:staticcheck // as above
			return apierrors.NewConflict(d.gr, name,
				fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *want.ResourceVersion, version))
		}
		return nil
	}
	if want.UID != nil && *want.UID != uid {
		return apierrors.NewConflict(kind, name,
			fmt.Errorf("the UID in the precondition (%v) does not match the UID in record (%v). The object might have been deleted and then recreated", *want.UID, uid))
	}
	if want.ResourceVersion != nil && *want.ResourceVersion != version {
		return apierrors.NewConflict(kind, name,
			fmt.Errorf("the ResourceVersion in the precondition (%v) does not match the ResourceVersion in record (%v). The object might have been modified", *want.ResourceVersion, version))
	}
	return nil
}

// removeMarked removes an object of a kind with grace periods that has none left. The mark is a write of its own
// (written), so that watchers see deletionTimestamp before the object is gone, as they do when there is time left.
// Whatever happens to the object between the two does not fail the deletion: somebody else may finish it, or hold the
// object with a finalizer.
func (d *deletion) removeMarked(ctx context.Context, item *storage.Item, obj runtime.Object,
	written bool) (*storage.Item, runtime.Object, bool, error) {
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, false, fmt.Errorf("delete %s: %w", d.gr, err)
	}
	uid := access.GetUID()
	for {
		last, removed, gone, err := d.remove(ctx, item, obj)
		if !written || err == nil {
			return last, removed, gone, err
		}
		if !errors.Is(err, errStale) && !errors.Is(err, storage.ErrNotFound) {
			return nil, nil, false, err
		}
		newest, err := d.Storage.Get(ctx, item.Key, 0)
		if errors.Is(err, storage.ErrNotFound) {
			return item, obj, true, nil
		}
		if err != nil {
			return nil, nil, false, err
		}
		current, err := Object(d.codec, newest)
		if err != nil {
			return nil, nil, false, err
		}
		if access, err = meta.Accessor(current); err != nil {
			return nil, nil, false, fmt.Errorf("delete %s: %w", d.gr, err)
		}
		if access.GetUID() != uid { // another object of this name
			return item, obj, true, nil
		}
		item, obj = newest, current
		if !goes(d.Row, obj, access) {
			return item, obj, false, nil
		}
	}
}

// remove removes the key if it still has the item's revision, else errStale. The hook frees what the object held only
// afterwards: before, another object could get the same address while this one is still there. A dry run ends before
// the write.
func (d *deletion) remove(ctx context.Context, item *storage.Item, obj runtime.Object) (*storage.Item,
	runtime.Object, bool, error) {
	if isDryRun(d.opts.DryRun) {
		return item, obj, true, nil
	}
	last, err := removeAt(ctx, d.Storage, item.Key, item.Revision)
	if err != nil {
		return nil, nil, false, err
	}
	d.wrote(last)
	if d.Hook != nil {
		d.Hook.AfterDelete(ctx, obj)
	}
	return last, obj, true, setVersion(obj, last)
}

// storeMarked writes the object with its marks if it still has the item's revision, else errStale. The decision was
// made on that revision, so storage.Update must not apply it to a newer one. A dry run returns the item that would be
// stored.
func (d *deletion) storeMarked(ctx context.Context, item *storage.Item, obj runtime.Object) (*storage.Item,
	error) {
	draft, err := d.codec.Draft(obj)
	if err != nil {
		return nil, err
	}
	draft.TTL = d.Row.TTL
	if isDryRun(d.opts.DryRun) {
		return storage.NewItem(item.Key, draft.Value, item.Revision, *draft.Facts), nil
	}
	marked, err := d.Storage.Update(ctx, item.Key, func(current *storage.Item) (storage.Draft, error) {
		if current.Revision != item.Revision {
			return storage.Draft{}, errStale
		}
		return draft, nil
	})
	if err != nil {
		return nil, err
	}
	d.wrote(marked)
	return marked, setVersion(obj, marked)
}

// markDeleted gives obj the marks of the deletion: finalizers of its propagation policy, deletionTimestamp and
// grace period. A deletion under way is only ever shortened. It reports whether anything changed.
//
// As the API defines it, deletionTimestamp is when the grace period ends, not when the request came. It is cut to
// seconds, as it is stored: the answer must equal what a later read returns.
func (d *deletion) markDeleted(obj runtime.Object, access metav1.Object) bool {
	changed := d.setPropagation(access)
	var grace int64
	if d.Row.Strategy.Graceful != nil {
		if want := d.Row.Strategy.Graceful(obj, d.opts); want != nil {
			grace = max(*want, 0)
		}
	}
	if at := access.GetDeletionTimestamp(); at != nil {
		left := access.GetDeletionGracePeriodSeconds()
		if left == nil || *left <= grace {
			return changed
		}
		sooner := metav1.NewTime(at.Add(time.Duration(grace-*left) * time.Second))
		access.SetDeletionTimestamp(&sooner)
		access.SetDeletionGracePeriodSeconds(&grace)
		return true
	}
	at := metav1.NewTime(d.Now().Add(time.Duration(grace) * time.Second)).Rfc3339Copy()
	access.SetDeletionTimestamp(&at)
	// what is held (a namespace, a definition) has no grace period, and is not a new generation
	if d.Row.Strategy.Held == nil {
		access.SetDeletionGracePeriodSeconds(&grace)
		if access.GetGeneration() > 0 {
			access.SetGeneration(access.GetGeneration() + 1)
		}
	}
	if d.Row.Strategy.PrepareDelete != nil {
		d.Row.Strategy.PrepareDelete(obj)
	}
	return true
}

// orphansUnasked reports whether the deletion of an object with these finalizers orphans dependents because
// nobody has said what is to become of them.
func (d *deletion) orphansUnasked(finalizers []string) bool {
	//nolint:staticcheck // deprecated, but part of the API
	said := d.opts.PropagationPolicy != nil || d.opts.OrphanDependents != nil ||
		slices.Contains(finalizers, metav1.FinalizerOrphanDependents) ||
		slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
	return d.Row.Strategy.DefaultOrphan && !d.NoGarbageCollector && !said
}

// setPropagation sets the finalizers that make the garbage collector orphan dependents or delete them first. It reports
// whether they changed. The policy replaces the finalizer that an earlier deletion set. Without a policy that finalizer
// stays. The comparison ignores the order, so that repeated deletions write nothing.
func (d *deletion) setPropagation(access metav1.Object) bool {
	if d.NoGarbageCollector || d.Row.Strategy.NoPropagation && access.GetDeletionTimestamp() == nil {
		return false
	}
	was := access.GetFinalizers()
	orphan, foreground := slices.Contains(was, metav1.FinalizerOrphanDependents),
		slices.Contains(was, metav1.FinalizerDeleteDependents)
	switch {
	case d.opts.PropagationPolicy != nil:
		orphan = *d.opts.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *d.opts.PropagationPolicy == metav1.DeletePropagationForeground
	case d.opts.OrphanDependents != nil: //nolint:staticcheck // deprecated, but part of the API
		orphan, foreground = *d.opts.OrphanDependents, false
	default:
		orphan = orphan || d.orphansUnasked(was)
	}
	now := slices.DeleteFunc(slices.Clone(was), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if orphan {
		now = append(now, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		now = append(now, metav1.FinalizerDeleteDependents)
	}
	sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
	if slices.Equal(sorted(was), sorted(now)) {
		return false
	}
	access.SetFinalizers(now)
	return true
}

// DeleteItems deletes what list options select and returns it as it was found. Objects that vanish meanwhile are
// skipped.
//
// It holds all items of the page at once, but decodes only those of deleteWorkers deletions at a time. The first error
// cancels the context of the others. What has been deleted by then stays deleted: a collection is no transaction, in
// Kubernetes either.
func (g *Generic) DeleteItems(ctx context.Context, ns string, opts *metav1.DeleteOptions,
	list storage.ListOptions) (*storage.List, error) {
	found, err := g.ListItems(ctx, ns, list)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deleteWorkers)
	// The workers warn through one answer, whose headers are not safe for several goroutines.
	ctx = warnOneByOne(ctx)
	for _, item := range found.Items {
		group.Go(func() error {
			m, err := g.codec.Metadata(item)
			if err != nil {
				return err
			}
			d := deletion{Generic: g, ns: m.Namespace, name: m.Name, ofCollection: true, opts: opts.DeepCopy()}
			_, _, _, err = d.run(ctx)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return found, group.Wait()
}
