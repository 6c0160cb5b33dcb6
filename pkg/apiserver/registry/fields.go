package registry

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/storage"
)

// FieldManager keeps metadata.managedFields: which manager has set which field of an object. Objects are of the row's
// stored kind and have been defaulted; live is nil where there is none yet.
type FieldManager interface {
	// Update notes in obj, which is to take the place of live, what of it is by's. It changes nothing else.
	Update(ctx context.Context, row *resources.Row, by Writer, live, obj runtime.Object) error
	// Apply returns what live becomes when by's fields are those of config, a partial object of the version by.Version.
	// Fields that by applied before and config leaves out go, unless others have them, too. A field that others have
	// with another value is a conflict: a Status error (409), or by's with force. It may change live, but where it
	// returns an error.
	Apply(ctx context.Context, row *resources.Row, by Writer, live runtime.Object, config *unstructured.Unstructured,
		force bool) (runtime.Object, error)
}

// Writer is in whose name, and how, an object is written.
type Writer struct {
	// Name is the manager's.
	Name string
	// Version is the version of the row in which the client sees the object; Subresource is "" for the object itself.
	Version, Subresource string
	At                   time.Time
}

// note has the field manager note a write. Without one, objects have no managedFields.
func (g *Generic) note(ctx context.Context, by Writer, live, obj runtime.Object) error {
	if g.Fields != nil {
		return g.Fields.Update(ctx, g.Row, by, live, obj)
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("write %s: %w", g.gr, err)
	}
	access.SetManagedFields(nil)
	return nil
}

// keepFields undoes what admission made of managedFields if that makes no sense, and warns of it.
func keepFields(access metav1.Object, before []metav1.ManagedFieldsEntry, warn func(string)) {
	after := access.GetManagedFields()
	if slices.EqualFunc(before, after, sameFields) {
		return
	}
	if err := managedfields.ValidateManagedFields(after); err != nil {
		access.SetManagedFields(before)
		warn(fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
	}
}

// sameFields reports whether two entries differ in nothing but their times.
func sameFields(a, b metav1.ManagedFieldsEntry) bool {
	if a.Manager != b.Manager || a.Operation != b.Operation || a.APIVersion != b.APIVersion ||
		a.Subresource != b.Subresource || a.FieldsType != b.FieldsType {
		return false
	}
	return a.FieldsV1 == b.FieldsV1 || a.FieldsV1 != nil && b.FieldsV1 != nil && a.FieldsV1.Equal(*b.FieldsV1)
}

// settled returns the draft of the current object in place of draft if obj is as old except for the times in
// managedFields: what a client wants changed may come to nothing, and then there is nothing to write.
func (g *Generic) settled(draft storage.Draft, current *storage.Item, obj, old runtime.Object) (storage.Draft, error) {
	if len(draft.Value) != current.Bytes().Len() || bytes.Equal(draft.Value, current.Value()) {
		return draft, nil
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return draft, err
	}
	was, err := meta.Accessor(old)
	if err != nil {
		return draft, err
	}
	fields := access.GetManagedFields()
	if !slices.EqualFunc(fields, was.GetManagedFields(), sameFields) {
		return draft, nil
	}
	access.SetManagedFields(was.GetManagedFields())
	again, err := g.codec.Draft(obj)
	if err != nil || bytes.Equal(again.Value, current.Value()) {
		return again, err
	}
	access.SetManagedFields(fields)
	return draft, nil
}
