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

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/storage"
)

// deleteWorkers is how many objects of a collection are deleted at a time.
const deleteWorkers = 8

// Delete implements Store.
func (g *Generic) Delete(ctx context.Context, ns, name string, opts *metav1.DeleteOptions) (runtime.Object, bool,
	error) {
	_, obj, gone, err := g.DeleteItem(ctx, ns, name, opts)
	return obj, gone, err
}

// DeleteItem is Delete that returns the object's bytes as well.
func (g *Generic) DeleteItem(ctx context.Context, ns, name string, opts *metav1.DeleteOptions) (*storage.Item,
	runtime.Object, bool, error) {
	return g.deleteOne(ctx, ns, name, false, opts)
}

// deleteOne is DeleteItem; ofCollection tells that the request is for a collection.
func (g *Generic) deleteOne(ctx context.Context, ns, name string, ofCollection bool,
	opts *metav1.DeleteOptions) (*storage.Item, runtime.Object, bool, error) {
	for {
		item, obj, gone, err := g.tryDelete(ctx, ns, name, ofCollection, opts)
		if errors.Is(err, errStale) {
			continue
		}
		if err != nil {
			return nil, nil, false, g.apiError(name, err)
		}
		return item, obj, gone, nil
	}
}

// tryDelete decides on the object as it is now and carries it out; errStale when it changed meanwhile.
func (g *Generic) tryDelete(ctx context.Context, ns, name string, ofCollection bool,
	opts *metav1.DeleteOptions) (*storage.Item, runtime.Object, bool, error) {
	key := g.key(ns, name)
	item, err := g.Storage.Get(ctx, key, 0)
	if err != nil {
		return nil, nil, false, err
	}
	obj, err := Object(g.codec, item)
	if err != nil {
		return nil, nil, false, err
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, false, fmt.Errorf("delete %s: %w", g.gr, err)
	}
	if err := g.checkPreconditions(name, opts.Preconditions, access.GetUID(), access.GetResourceVersion()); err != nil {
		return nil, nil, false, err
	}
	if g.Admission != nil {
		a := g.attributes(ctx, admission.Delete, ns, name, "")
		a.Collection = ofCollection
		a.OldObject, a.Options, a.DryRun = obj.DeepCopyObject(), opts, isDryRun(opts.DryRun)
		if err := g.Admission.Admit(ctx, a); err != nil {
			return nil, nil, false, err
		}
		if err := g.Admission.Validate(ctx, a); err != nil {
			return nil, nil, false, err
		}
	}
	if w := g.Row.Strategy.OrphanWarning; w != "" && g.orphansUnasked(access.GetFinalizers(), opts) {
		callerFrom(ctx).Warn(w)
	}
	changed := g.markDeleted(obj, access, opts)
	goes := g.goes(obj, access)
	if goes && g.Row.Strategy.Graceful == nil { // the answer and hooks get it as it was
		if obj, err = Object(g.codec, item); err != nil {
			return nil, nil, false, err
		}
		return g.remove(ctx, item, obj, opts)
	}
	if changed {
		if item, err = g.storeMarked(ctx, item, obj, opts); err != nil {
			return nil, nil, false, err
		}
	}
	if !goes {
		return item, obj, false, nil
	}
	return g.removeMarked(ctx, item, obj, changed, opts)
}

// removeMarked removes an object of a kind with grace periods that has none left. The mark is a write of its own
// (written), so that watchers see deletionTimestamp before the object is gone, as they do when there is time left.
// Whatever happens to the object between the two does not fail the deletion: somebody else may finish it, or hold the
// object with a finalizer.
func (g *Generic) removeMarked(ctx context.Context, item *storage.Item, obj runtime.Object, written bool,
	opts *metav1.DeleteOptions) (*storage.Item, runtime.Object, bool, error) {
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, false, fmt.Errorf("delete %s: %w", g.gr, err)
	}
	uid := access.GetUID()
	for {
		last, removed, gone, err := g.remove(ctx, item, obj, opts)
		if !written || err == nil {
			return last, removed, gone, err
		}
		if !errors.Is(err, errStale) && !errors.Is(err, storage.ErrNotFound) {
			return nil, nil, false, err
		}
		newest, err := g.Storage.Get(ctx, item.Key, 0)
		if errors.Is(err, storage.ErrNotFound) {
			return item, obj, true, nil
		}
		if err != nil {
			return nil, nil, false, err
		}
		current, err := Object(g.codec, newest)
		if err != nil {
			return nil, nil, false, err
		}
		if access, err = meta.Accessor(current); err != nil {
			return nil, nil, false, fmt.Errorf("delete %s: %w", g.gr, err)
		}
		if access.GetUID() != uid { // another object of this name
			return item, obj, true, nil
		}
		item, obj = newest, current
		if !g.goes(obj, access) {
			return item, obj, false, nil
		}
	}
}

func (g *Generic) remove(ctx context.Context, item *storage.Item, obj runtime.Object,
	opts *metav1.DeleteOptions) (*storage.Item, runtime.Object, bool, error) {
	if isDryRun(opts.DryRun) {
		return item, obj, true, nil
	}
	last, err := g.removeAt(ctx, item.Key, item.Revision)
	if err != nil {
		return nil, nil, false, err
	}
	g.wrote(last)
	if g.Hook != nil {
		g.Hook.AfterDelete(ctx, obj)
	}
	return last, obj, true, setVersion(obj, last)
}

func (g *Generic) storeMarked(ctx context.Context, item *storage.Item, obj runtime.Object,
	opts *metav1.DeleteOptions) (*storage.Item, error) {
	draft, err := g.codec.Draft(obj)
	if err != nil {
		return nil, err
	}
	draft.TTL = g.Row.TTL
	if isDryRun(opts.DryRun) {
		return storage.NewItem(item.Key, draft.Value, item.Revision, *draft.Facts), nil
	}
	marked, err := g.Storage.Update(ctx, item.Key, func(current *storage.Item) (storage.Draft, error) {
		if current.Revision != item.Revision {
			return storage.Draft{}, errStale
		}
		return draft, nil
	})
	if err != nil {
		return nil, err
	}
	g.wrote(marked)
	return marked, setVersion(obj, marked)
}

// markDeleted gives obj the marks of a deletion with opts: finalizers of its propagation policy, deletionTimestamp and
// grace period. A deletion under way is only ever shortened. It reports whether anything changed.
func (g *Generic) markDeleted(obj runtime.Object, access metav1.Object, opts *metav1.DeleteOptions) bool {
	changed := g.setPropagation(access, opts)
	var grace int64
	if g.Row.Strategy.Graceful != nil {
		if want := g.Row.Strategy.Graceful(obj, opts); want != nil {
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
	at := metav1.NewTime(g.Now().Add(time.Duration(grace) * time.Second)).Rfc3339Copy()
	access.SetDeletionTimestamp(&at)
	// what is held (a namespace, a definition) has no grace period, and is not a new generation
	if g.Row.Strategy.Held == nil {
		access.SetDeletionGracePeriodSeconds(&grace)
		if access.GetGeneration() > 0 {
			access.SetGeneration(access.GetGeneration() + 1)
		}
	}
	if g.Row.Strategy.PrepareDelete != nil {
		g.Row.Strategy.PrepareDelete(obj)
	}
	return true
}

// orphansUnasked reports whether a deletion with opts of an object with these finalizers orphans dependents because
// nobody has said what is to become of them.
func (g *Generic) orphansUnasked(finalizers []string, opts *metav1.DeleteOptions) bool {
	//nolint:staticcheck // deprecated, but part of the API
	said := opts.PropagationPolicy != nil || opts.OrphanDependents != nil ||
		slices.Contains(finalizers, metav1.FinalizerOrphanDependents) ||
		slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
	return g.Row.Strategy.DefaultOrphan && !g.NoGarbageCollector && !said
}

// setPropagation sets the finalizers that make the garbage collector orphan dependents or delete them first. It tells
// whether they changed.
func (g *Generic) setPropagation(access metav1.Object, opts *metav1.DeleteOptions) bool {
	if g.NoGarbageCollector || g.Row.Strategy.NoPropagation && access.GetDeletionTimestamp() == nil {
		return false
	}
	was := access.GetFinalizers()
	orphan, foreground := slices.Contains(was, metav1.FinalizerOrphanDependents),
		slices.Contains(was, metav1.FinalizerDeleteDependents)
	switch {
	case opts.PropagationPolicy != nil:
		orphan = *opts.PropagationPolicy == metav1.DeletePropagationOrphan
		foreground = *opts.PropagationPolicy == metav1.DeletePropagationForeground
	case opts.OrphanDependents != nil: //nolint:staticcheck // deprecated, but part of the API
		orphan, foreground = *opts.OrphanDependents, false
	default:
		orphan = orphan || g.orphansUnasked(was, opts)
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
func (g *Generic) DeleteItems(ctx context.Context, ns string, opts *metav1.DeleteOptions,
	list storage.ListOptions) (*storage.List, error) {
	found, err := g.ListItems(ctx, ns, list)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(deleteWorkers)
	ctx = warnOneByOne(ctx)
	for _, item := range found.Items {
		group.Go(func() error {
			m, err := g.codec.Metadata(item)
			if err != nil {
				return err
			}
			_, _, _, err = g.deleteOne(ctx, m.Namespace, m.Name, true, opts.DeepCopy())
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return found, group.Wait()
}
