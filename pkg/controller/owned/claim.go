package owned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
)

// Claim is one owner's view of the children it may hold.
type Claim[T apiclient.Object] struct {
	Owner    metav1.Object
	Kind     schema.GroupVersionKind
	Selector labels.Selector
	// Fresh reads the owner past the cache, to be sure before the first adoption that it is still the same object and
	// not being deleted.
	Fresh func(ctx context.Context) (metav1.Object, error)
	// Children writes to the children.
	Children *apiclient.Resource[T]
	// Finalizer, if not empty, is what children have while they are the owner's: adopted ones get it, released ones
	// lose it.
	Finalizer string
	// Adoptable narrows which orphans may be adopted; nil is all.
	Adoptable func(T) bool
}

// Settle returns the children of the owner after settling the borders: an owned child that the selector no longer
// selects is released, a selected orphan is adopted. candidates are the owned ones and the orphans of the namespace.
func (c Claim[T]) Settle(ctx context.Context, candidates []T) ([]T, error) {
	var mine []T
	var errs []error
	mayAdopt := onceError(func() error { return c.mayAdopt(ctx) })
	for _, o := range candidates {
		ref := metav1.GetControllerOfNoCopy(o)
		selected := c.Selector.Matches(labels.Set(o.GetLabels()))
		switch {
		case ref != nil && ref.UID != c.Owner.GetUID():
		case ref != nil && selected:
			mine = append(mine, o)
		case ref != nil:
			if c.Owner.GetDeletionTimestamp() == nil {
				errs = append(errs, c.release(ctx, o))
			}
		case selected && c.Owner.GetDeletionTimestamp() == nil && o.GetDeletionTimestamp() == nil &&
			(c.Adoptable == nil || c.Adoptable(o)):
			if err := mayAdopt(); err != nil {
				errs = append(errs, err)
				continue
			}
			if adopted, err := c.adopt(ctx, o); err == nil {
				mine = append(mine, adopted)
			} else if !apierrors.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
	}
	return mine, errors.Join(errs...)
}

func (c Claim[T]) mayAdopt(ctx context.Context) error {
	fresh, err := c.Fresh(ctx)
	if err != nil {
		return fmt.Errorf("reading %s %s before adopting: %w", c.Kind.Kind, c.Owner.GetName(), err)
	}
	if fresh.GetUID() != c.Owner.GetUID() {
		return fmt.Errorf("%s %s/%s is gone: got uid %s, wanted %s", c.Kind.Kind, c.Owner.GetNamespace(),
			c.Owner.GetName(), fresh.GetUID(), c.Owner.GetUID())
	}
	if t := fresh.GetDeletionTimestamp(); t != nil {
		return fmt.Errorf("%s %s/%s is being deleted since %s", c.Kind.Kind, c.Owner.GetNamespace(), c.Owner.GetName(),
			t)
	}
	return nil
}

func (c Claim[T]) adopt(ctx context.Context, o T) (T, error) {
	metadata := map[string]any{
		"uid":             o.GetUID(),
		"ownerReferences": []metav1.OwnerReference{*metav1.NewControllerRef(c.Owner, c.Kind)},
	}
	if c.Finalizer != "" {
		metadata["finalizers"] = []string{c.Finalizer}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return o, fmt.Errorf("encoding the owner reference: %w", err)
	}
	adopted, err := c.Children.Patch(ctx, o.GetNamespace(), o.GetName(), types.StrategicMergePatchType, patch)
	if err != nil {
		return o, fmt.Errorf("adopting %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	return adopted, nil
}

// release removes the owner's reference and the finalizer. Gone or exchanged children need no release.
func (c Claim[T]) release(ctx context.Context, o T) error {
	finalizer := ""
	if c.Finalizer != "" {
		finalizer = fmt.Sprintf(`,"$deleteFromPrimitiveList/finalizers":[%q]`, c.Finalizer)
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"$patch":"delete","uid":%q}]%s}}`, o.GetUID(),
		c.Owner.GetUID(), finalizer)
	_, err := c.Children.Patch(ctx, o.GetNamespace(), o.GetName(), types.StrategicMergePatchType, []byte(patch))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return fmt.Errorf("releasing %s/%s: %w", o.GetNamespace(), o.GetName(), err)
}

// onceError calls f at most once and repeats its answer.
func onceError(f func() error) func() error {
	var done bool
	var err error
	return func() error {
		if !done {
			done, err = true, f()
		}
		return err
	}
}
