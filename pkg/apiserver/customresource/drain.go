package customresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/apiextensions"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// Bounds of the deletion of a definition's objects: how many are read and deleted at a time, and how long it waits for
// one to go before it looks at all of them again.
const (
	drainPage    = 500
	drainWorkers = 8
	drainWait    = 5 * time.Second
)

// drain begins to delete the objects of a definition that is being deleted, and lets it go when they are gone.
func (c *Controller) drain(ctx context.Context, group *errgroup.Group, d *definition) {
	name := d.crd.Name
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drained[name] || !slices.Contains(d.crd.Finalizers, v1.CustomResourceCleanupFinalizer) {
		return
	}
	c.drained[name] = true
	store, err := c.storeOf(d)
	group.Go(func() error {
		err := err
		if err == nil {
			err = c.empty(ctx, d, store)
		}
		c.mu.Lock()
		delete(c.drained, name)
		c.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			c.Log.Warn("the objects of a definition cannot be deleted", "name", name, "err", err, "retry", retryAfter)
			c.again(name)
		}
		return nil
	})
}

// storeOf is where the objects of d are, also if it serves none of its versions any more; nil if there are none: it
// never had its names, or the server has a resource of its own by that name, whose objects are not the definition's.
func (c *Controller) storeOf(d *definition) (*registry.Generic, error) {
	if r := c.served[d.resource()]; r != nil {
		return r.entry.Store, nil
	}
	if !servable(d.crd) || c.Catalog.Snapshot().Resource(d.resource()) != nil {
		return nil, nil
	}
	conv, err := c.converter(d.crd)
	if err != nil {
		return nil, err
	}
	s := newServed(d, conv, func(*v1.CustomResourceDefinitionVersion) bool { return true })
	if s == nil {
		return nil, nil
	}
	e, err := c.Entry(s.row, nil)
	return e.Store, err
}

// empty deletes all objects of d in store, if there is one, and then lets it go.
func (c *Controller) empty(ctx context.Context, d *definition, store *registry.Generic) error {
	for store != nil {
		if err := c.report(ctx, d, "InstanceDeletionInProgress", "CustomResource deletion is in progress"); err != nil {
			return err
		}
		left, revision, err := deleteAll(ctx, store)
		if err != nil {
			return errors.Join(err, c.report(ctx, d, "InstanceDeletionFailed",
				fmt.Sprintf("could not delete all instances: %v", storage.Cause(err))))
		}
		if left == 0 {
			break
		}
		if err := oneLess(ctx, store, revision); err != nil {
			return err
		}
	}
	definitions, err := c.definitions()
	if err != nil {
		return err
	}
	// Written as a subresource that there is not: no rule about definitions is in the way of the end of one.
	_, err = definitions.Update(ctx, "", d.crd.Name, "finalize", func(obj runtime.Object) (runtime.Object, error) {
		crd, err := d.same(obj)
		if err != nil {
			return nil, err
		}
		crd.Finalizers = slices.DeleteFunc(crd.Finalizers, func(f string) bool {
			return f == v1.CustomResourceCleanupFinalizer
		})
		return crd, nil
	}, &metav1.UpdateOptions{})
	return over(err)
}

// same returns obj as the definition that d is, or errSettled if that has gone.
func (d *definition) same(obj runtime.Object) (*v1.CustomResourceDefinition, error) {
	crd, ok := obj.(*v1.CustomResourceDefinition)
	if !ok || crd.UID != d.crd.UID {
		return nil, errSettled
	}
	return crd, nil
}

// over drops what an error says of a definition that is gone already.
func over(err error) error {
	if errors.Is(err, errSettled) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// report writes how far the deletion is.
func (c *Controller) report(ctx context.Context, d *definition, reason, message string) error {
	store, err := c.definitions()
	if err != nil {
		return err
	}
	_, err = store.Update(ctx, "", d.crd.Name, "status", func(obj runtime.Object) (runtime.Object, error) {
		crd, err := d.same(obj)
		if err != nil {
			return nil, err
		}
		if was := apiextensions.Condition(crd, v1.Terminating); was != nil && was.Reason == reason &&
			was.Message == message {
			return nil, errSettled
		}
		progress(crd, reason, message, metav1.NewTime(c.Now()).Rfc3339Copy())
		return crd, nil
	}, &metav1.UpdateOptions{})
	return over(err)
}

// deleteAll deletes all objects of a store once, and tells how many there were and the revision they were read at.
func deleteAll(ctx context.Context, store *registry.Generic) (found int, revision int64, err error) {
	admitted := store.Admitted()
	opts := storage.ListOptions{Match: storage.Latest, Limit: drainPage}
	for {
		page, err := store.ListItems(ctx, "", opts)
		if err != nil {
			return found, revision, err
		}
		found += len(page.Items)
		if revision == 0 {
			revision = page.Revision
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(drainWorkers)
		for _, item := range page.Items {
			group.Go(func() error {
				m, err := store.Codec().Metadata(item)
				if err != nil || m.DeletionTimestamp != nil {
					return err
				}
				_, _, err = admitted.Delete(gctx, m.Namespace, m.Name, &metav1.DeleteOptions{})
				if apierrors.IsNotFound(err) {
					return nil
				}
				return err
			})
		}
		if err := group.Wait(); err != nil || page.Continue == "" {
			return found, revision, err
		}
		opts = storage.ListOptions{Limit: drainPage, Continue: page.Continue}
	}
}

// oneLess waits until an object has gone since a revision, or a while.
func oneLess(ctx context.Context, store *registry.Generic, since int64) error {
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	w, err := store.WatchItems(ctx, "", storage.WatchOptions{Revision: since})
	if err != nil {
		return notLate(ctx, err)
	}
	defer w.Stop()
	for {
		events, err := w.Next(ctx)
		if err != nil {
			return notLate(ctx, err)
		}
		for _, e := range events {
			if e.Type == storage.Deleted {
				return nil
			}
		}
	}
}

// notLate drops the error of a wait that is over, or that has lost its place.
func notLate(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, storage.ErrExpired) {
		return nil
	}
	return err
}
