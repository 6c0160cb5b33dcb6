package fieldmanager

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

// Apply implements registry.FieldManager.
//
// Both engines may change live and the configuration, so callers pass objects of their own. A conflict is a Status
// error with code 409 and the reason Conflict, whose causes name the managers and fields.
func (m *Manager) Apply(
	ctx context.Context, row *resources.Row, by registry.Writer, live runtime.Object,
	config *unstructured.Unstructured, force bool,
) (runtime.Object, error) {
	w := writeTarget{row, by.Version, by.Subresource}
	out, err := m.applyFast(w, by, live, config)
	if errors.Is(err, errNeedsLibrary) {
		return m.applyByLibrary(ctx, w, by, live, config, force)
	}
	return out, err
}

// applyByLibrary lets the library apply.
func (m *Manager) applyByLibrary(
	ctx context.Context, w writeTarget, by registry.Writer, live runtime.Object,
	config *unstructured.Unstructured, force bool,
) (runtime.Object, error) {
	live = orEmpty(live, w.row)
	l, err := m.library(ctx, w, live)
	if err != nil {
		return nil, err
	}
	return l.Apply(live, config, by.Name, force)
}

// applyFast is the fast path of Apply. doc.go lists the applies that it serves; it returns errNeedsLibrary for others,
// and for every apply with an error in it. It changes live only after nothing more can fail.
//
// The checks come in the order of their cost: those on the request, those on the live object's entries, then the plan,
// then the entries again with the plan's result.
func (m *Manager) applyFast(
	w writeTarget, by registry.Writer, live runtime.Object, config *unstructured.Unstructured,
) (runtime.Object, error) {
	if w.gvk() != w.row.StoredGVK() || w.gvk() != config.GroupVersionKind() {
		return nil, errNeedsLibrary
	}
	// The edits of a plan need settable Go values. Decoded JSON in maps has none.
	if dynamic(w.row) || tracksLastApplied(by, config) {
		return nil, errNeedsLibrary
	}
	t, err := m.typeOf(w)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return m.applyNew(w, by, t, config)
	}
	live.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
	access, err := meta.Accessor(live)
	if err != nil {
		return nil, err
	}
	entries := access.GetManagedFields()
	if len(entries) == 0 || !w.uniform(entries) || tracksLastApplied(by, access) {
		return nil, errNeedsLibrary
	}
	plan, err := t.planApply(config.Object, reflect.ValueOf(live).Elem())
	if err != nil {
		return nil, err
	}
	entries, err = m.applyEntries(w.newEntry(by, metav1.ManagedFieldsOperationApply), entries, plan)
	if err != nil {
		return nil, err
	}
	for _, edit := range plan.edits {
		edit()
	}
	access.SetManagedFields(entries)
	// Only a change can make a default necessary; the stored object already has them.
	if len(plan.touched) > 0 {
		converter{row: w.row}.Default(live)
	}
	return live, nil
}

// applyNew makes a new object of a configuration. The configuration is the whole object, so one decoding makes it. The
// walk is still needed for the field set, and for everything in it that the library would refuse.
func (m *Manager) applyNew(
	w writeTarget, by registry.Writer, t *typeNode, config *unstructured.Unstructured,
) (runtime.Object, error) {
	plan, err := t.planApply(config.Object, reflect.Value{})
	if err != nil {
		return nil, err
	}
	obj := w.row.New()
	if err := decodeInto(reflect.ValueOf(obj), config.Object); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
	if reflect.DeepEqual(obj, orEmpty(nil, w.row)) {
		return nil, errNeedsLibrary // the configuration has no effect: the library returns no object
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if !plan.empty() {
		self := w.newEntry(by, metav1.ManagedFieldsOperationApply)
		self.FieldsV1 = plan.fields()
		access.SetManagedFields([]metav1.ManagedFieldsEntry{self})
	}
	converter{row: w.row}.Default(obj)
	return obj, nil
}

// tracksLastApplied reports whether the library has to keep the annotation of kubectl's client-side apply up to date.
//
// kubectl sends this manager's name for server-side apply. The library then rewrites the annotation from the
// configuration, so that a user can go back to client-side apply without surprises.
func tracksLastApplied(by registry.Writer, obj metav1.Object) bool {
	return by.Name == "kubectl" && obj.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != ""
}

// applyEntries returns the entries of an object after self, the entry of the applier, applies a plan. It returns
// errNeedsLibrary if the plan changes what others own, or does not have all that self applied before.
func (m *Manager) applyEntries(
	self metav1.ManagedFieldsEntry, entries []metav1.ManagedFieldsEntry, plan *applyPlan,
) ([]metav1.ManagedFieldsEntry, error) {
	// The position of self in entries.
	at := -1
	for i := range entries {
		if sameWriter(&entries[i], &self) {
			at = i
			continue
		}
		if err := m.checkConflict(&entries[i], plan.touched); err != nil {
			return nil, err
		}
	}
	if len(plan.touched) == 0 {
		self.Time = nil // the time of the last change stays
	}
	out := slices.Clone(entries)
	switch {
	case at >= 0:
		var err error
		if out[at], err = m.reapply(self, &entries[at], plan); err != nil {
			return nil, err
		}
	case plan.empty():
		return out, nil
	default:
		self.FieldsV1 = plan.fields()
		out = append(out, self)
	}
	slices.SortFunc(out, compareEntries)
	return out, nil
}

// checkConflict returns errNeedsLibrary if another manager's entry has a path that changes: that is a conflict, or what
// force takes away.
//
// If the value of another manager's field stays the same, the field gets a second owner, which is no conflict. Only
// touched paths matter for that reason.
func (m *Manager) checkConflict(e *metav1.ManagedFieldsEntry, touched []fieldpath.Path) error {
	if len(touched) == 0 {
		return nil
	}
	has, err := m.sets.of(e)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(touched, func(path fieldpath.Path) bool { return hasAny(has, path) }) {
		return errNeedsLibrary
	}
	return nil
}

// reapply returns self with the fields of a plan. before is what the manager applied last.
//
// Equal bytes are the common case: a controller that applies the same configuration again. It needs no set.
func (m *Manager) reapply(
	self metav1.ManagedFieldsEntry, before *metav1.ManagedFieldsEntry, plan *applyPlan,
) (metav1.ManagedFieldsEntry, error) {
	self.FieldsV1 = before.FieldsV1
	if self.Time == nil {
		self.Time = before.Time
	}
	if bytes.Equal(raw(before.FieldsV1), plan.out) {
		return self, nil
	}
	f := &metav1.FieldsV1{}
	f.SetRawBytes(plan.out) // copies
	self.FieldsV1 = f
	was, err := m.sets.of(before)
	if err != nil {
		return self, err
	}
	is, err := m.sets.of(&self)
	if err != nil {
		return self, err
	}
	// This is the only place that can detect a removal. The plan has changed nothing yet, so the library can start
	// over.
	if !was.Difference(is).Empty() {
		return self, errNeedsLibrary // fields that are no longer applied may have to be removed
	}
	return self, nil
}

// hasAny reports whether a set has a path or anything below it. An owner of spec.template.labels conflicts with a
// change of spec.template as a whole, so a path also counts by what is below it.
func hasAny(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) {
		return true
	}
	for _, element := range path {
		if set = set.WithPrefix(element); set.Empty() {
			return false
		}
	}
	return true
}
