package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"bonsai/pkg/controller"
)

// Reconcile looks at one object: is it gone, does it wait for its dependents, have its owners left it? Workers of the
// check loop call it, one at a time for each uid.
//
// The graph only names the suspect, and may be behind the server. Every branch that writes first reads the object, and
// compares its uid: another object of that name is not the suspect.
func (c *Controller) Reconcile(ctx context.Context, uid types.UID) (controller.Result, error) {
	n, ok := c.graph.get(uid)
	// An object in background deletion needs nothing more: its owners do not matter to it, and the server removes it
	// when its finalizers are off. One that orphans its dependents is the work of release.
	if !ok || n.gone || n.deleting && !n.foreground {
		return controller.Result{}, nil
	}
	live, err := c.read(ctx, n.identity)
	switch {
	case apierrors.IsNotFound(err) || err == nil && live.UID != uid:
		// For a real one the watch will say the same. A virtual one has no watch.
		if n.virtual {
			c.absent.add(n.identityOfRef())
			c.apply(c.graph.miss(uid))
		}
		return controller.Result{}, nil
	case err != nil:
		return controller.Result{}, err
	case n.virtual:
		// It exists; its own watch will make it real.
		return controller.Result{}, nil
	case n.foreground:
		return c.finishForeground(ctx, n, live)
	}
	return c.collect(ctx, n, live)
}

// identityOfRef is the key under which owners are remembered as absent.
//
// The resource is left out because lookUp builds its key from a reference, which names a kind only. The namespace of
// the key is the dependent's, even for a cluster-scoped owner: virtualOwner and lookUp agree on that.
func (n node) identityOfRef() identity {
	id := n.identity
	id.resource = schema.GroupVersionResource{}
	return id
}

// finishForeground lets an owner go once no dependent blocks it, and wakes the blocking dependents until then. It does
// not ask to come back while it is blocked: the graph wakes the owner when a dependent goes (remove) or stops blocking
// (relink).
//
// Only references with blockOwnerDeletion count, as the API documents. Dependents without it are deleted too, but the
// owner does not wait for them.
func (c *Controller) finishForeground(ctx context.Context, n node,
	live *metav1.PartialObjectMetadata) (controller.Result, error) {
	// A watch that has not delivered its first list may hide a blocking dependent. Without the finalizer the owner
	// would be gone before it, which is what foreground deletion excludes. A watch can delay this by patience at most.
	if !c.complete() {
		return controller.Result{Backoff: true}, nil
	}
	blocked := false
	for _, d := range c.graph.dependentsOf(n.uid) {
		if d.blocking {
			blocked = true
			// One in foreground deletion itself waits for its own dependents: a second look changes nothing.
			if !d.foreground {
				c.check.Add(d.uid)
			}
		}
	}
	if blocked {
		return controller.Result{}, nil
	}
	return controller.Result{}, c.dropFinalizer(ctx, n.identity, live, metav1.FinalizerDeleteDependents)
}

// collect deletes an object that no owner holds any more.
//
// It reads every owner that the object names now, not those of the graph: a controller may have adopted the object
// since. The deletion carries the resourceVersion that was judged, so an owner that is added in between makes it a
// conflict, and the loop judges again.
func (c *Controller) collect(ctx context.Context, n node, live *metav1.PartialObjectMetadata) (controller.Result,
	error) {
	if live.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	states := make(map[types.UID]ownerState, len(live.OwnerReferences))
	for _, ref := range live.OwnerReferences {
		s, err := c.lookUp(ctx, ref, n.identity)
		if err != nil {
			return controller.Result{}, err
		}
		states[ref.UID] = s
	}
	dependents := c.graph.dependentsOf(n.uid)
	v, drop := judge(live.OwnerReferences, states, dependents)
	switch v {
	case unlink:
		return controller.Result{}, c.setOwners(ctx, n.identity, live, without(live.OwnerReferences, drop))
	// Two writes: the references must stop blocking before the object waits for its own dependents, or the circle stays
	// closed. The first changes the resourceVersion, so the deletion is bound to the uid alone.
	case unblock:
		if err := c.setOwners(ctx, n.identity, live, unblocked(live.OwnerReferences)); err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, c.erase(ctx, n.identity, nil, metav1.DeletePropagationForeground)
	case erase:
		return controller.Result{},
			c.erase(ctx, n.identity, &live.ResourceVersion, policy(live.Finalizers, states, len(dependents)))
	}
	return controller.Result{}, nil
}

// lookUp finds out about one owner of child.
//
// The order of the cases matters. What a watch has shown needs no request, and is known even when the kind is no longer
// served. A reference that cannot mean anything, or a kind that nobody serves, never counts as absent: the collector
// deletes nothing because of a mistake in a reference or an API server that is down.
func (c *Controller) lookUp(ctx context.Context, ref metav1.OwnerReference, child identity) (ownerState, error) {
	id := identity{kind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), namespace: child.namespace,
		name: ref.Name, uid: ref.UID}
	if c.graph.sawEnd(ref, child.namespace) {
		return absent, nil
	}
	r, served := c.resourceOf(id.kind)
	switch {
	case served && r.Namespaced && child.namespace == "":
		// The reference cannot mean anything: keep the object and tell its author.
		c.warn(child, "ownerRef [%s/%s, namespace: , name: %s, uid: %s] does not exist in namespace %q", ref.APIVersion,
			ref.Kind, ref.Name, ref.UID, "")
		return solid, nil
	case c.absent.has(id):
		return absent, nil
	// An error, not an answer: the loop tries again with back-off, until discovery finds the kind or the reference
	// changes.
	case !served:
		return solid, fmt.Errorf("looking for owner %s %s of %s/%s: the server serves no such kind", id.kind, ref.Name,
			child.namespace, child.name)
	}
	owner, err := c.read(ctx, id)
	switch {
	case apierrors.IsNotFound(err) || err == nil && owner.UID != ref.UID:
		c.noteMisplaced(ref, child)
		c.absent.add(id)
		return absent, nil
	case err != nil:
		return solid, err
	// An owner in background or orphaning deletion is solid until it is gone: it does not wait for its dependents.
	case owner.DeletionTimestamp != nil && slices.Contains(owner.Finalizers, metav1.FinalizerDeleteDependents):
		return waiting, nil
	}
	return solid, nil
}

// noteMisplaced tells the author of a reference when its owner exists, but in another namespace.
func (c *Controller) noteMisplaced(ref metav1.OwnerReference, child identity) {
	if o, ok := c.graph.get(ref.UID); ok && !o.virtual && o.namespace != "" && o.namespace != child.namespace {
		c.warn(child, "ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			ref.APIVersion, ref.Kind, child.namespace, ref.Name, ref.UID, child.namespace)
	}
}

func (c *Controller) warn(child identity, format string, args ...any) {
	obj := &corev1.ObjectReference{APIVersion: child.kind.GroupVersion().String(), Kind: child.kind.Kind,
		Namespace: child.namespace, Name: child.name, UID: child.uid}
	c.Events.Eventf(obj, corev1.EventTypeWarning, "OwnerRefInvalidNamespace", format, args...)
}

// release carries out the deletion of an owner that leaves its dependents behind: each loses its reference, then the
// owner its finalizer.
//
// Workers of the orphan loop call it. The finalizer goes last: if it went first and the process ended, the remaining
// dependents would look like those of a deleted owner, and be collected. After a crash the first list shows the
// finalizer again and the work starts over; a dependent without the reference costs one read.
func (c *Controller) release(ctx context.Context, uid types.UID) (controller.Result, error) {
	n, ok := c.graph.get(uid)
	if !ok {
		return controller.Result{}, nil
	}
	// A dependent that no watch has reported yet would keep its reference and be collected later.
	if !c.complete() {
		return controller.Result{Backoff: true}, nil
	}
	for _, d := range c.graph.dependentsOf(uid) {
		if err := c.orphanOne(ctx, d.identity, uid); err != nil {
			return controller.Result{}, err
		}
	}
	live, err := c.read(ctx, n.identity)
	if apierrors.IsNotFound(err) || err == nil && live.UID != uid {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	return controller.Result{}, c.dropFinalizer(ctx, n.identity, live, metav1.FinalizerOrphanDependents)
}

// orphanOne removes the reference to the owner from one dependent. A dependent that is gone, or replaced by another
// object of its name, needs nothing.
func (c *Controller) orphanOne(ctx context.Context, id identity, owner types.UID) error {
	live, err := c.read(ctx, id)
	if apierrors.IsNotFound(err) || err == nil && live.UID != id.uid {
		return nil
	}
	if err != nil {
		return err
	}
	refs := without(live.OwnerReferences, []types.UID{owner})
	if len(refs) == len(live.OwnerReferences) {
		return nil
	}
	err = c.setOwners(ctx, id, live, refs)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// at returns the client for an object; the kind of one that is known from references only is looked up.
func (c *Controller) at(id identity) (metadata.ResourceInterface, error) {
	gvr, namespace := id.resource, id.namespace
	if gvr.Empty() {
		r, ok := c.resourceOf(id.kind)
		if !ok {
			return nil, fmt.Errorf("looking for %s %s/%s: the server serves no such kind", id.kind, id.namespace,
				id.name)
		}
		gvr = r.GroupVersionResource
		if !r.Namespaced {
			namespace = ""
		}
	}
	return c.metadata.Resource(gvr).Namespace(namespace), nil
}

func (c *Controller) read(ctx context.Context, id identity) (*metav1.PartialObjectMetadata, error) {
	at, err := c.at(id)
	if err != nil {
		return nil, err
	}
	return at.Get(ctx, id.name, metav1.GetOptions{})
}

// patch changes metadata of exactly the state that was read: another writer in between makes it a conflict.
//
// The resourceVersion matters because a merge patch replaces a whole list: owners or finalizers that somebody added
// since the read would be lost.
func (c *Controller) patch(ctx context.Context, id identity, live *metav1.PartialObjectMetadata,
	metadata map[string]any) error {
	metadata["resourceVersion"], metadata["uid"] = live.ResourceVersion, live.UID
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encoding a patch of %s/%s: %w", id.namespace, id.name, err)
	}
	at, err := c.at(id)
	if err != nil {
		return err
	}
	if _, err := at.Patch(ctx, id.name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patching %s %s/%s: %w", id.kind.Kind, id.namespace, id.name, err)
	}
	return nil
}

func (c *Controller) setOwners(ctx context.Context, id identity, live *metav1.PartialObjectMetadata,
	refs []metav1.OwnerReference) error {
	return c.patch(ctx, id, live, map[string]any{"ownerReferences": refs})
}

func (c *Controller) dropFinalizer(ctx context.Context, id identity, live *metav1.PartialObjectMetadata,
	name string) error {
	if !slices.Contains(live.Finalizers, name) {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(live.Finalizers), func(f string) bool { return f == name })
	err := c.patch(ctx, id, live, map[string]any{"finalizers": left})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// erase deletes the object if it is still the one that was judged.
//
// Gone already is success. A conflict is an error: the object changed after it was judged, and the loop looks again.
func (c *Controller) erase(ctx context.Context, id identity, version *string, p metav1.DeletionPropagation) error {
	at, err := c.at(id)
	if err != nil {
		return err
	}
	err = at.Delete(ctx, id.name, metav1.DeleteOptions{
		PropagationPolicy: &p, Preconditions: &metav1.Preconditions{UID: &id.uid, ResourceVersion: version},
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("deleting %s %s/%s: %w", id.kind.Kind, id.namespace, id.name, err)
}
