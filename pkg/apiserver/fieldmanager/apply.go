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
func (m *Manager) Apply(ctx context.Context, row *resources.Row, by registry.Writer, live runtime.Object, config *unstructured.Unstructured, force bool) (runtime.Object, error) {
	w := writes{row, by.Version, by.Subresource}
	out, err := m.shortApply(w, by, live, config)
	if errors.Is(err, errUnusual) {
		return m.longApply(ctx, w, by, live, config, force)
	}
	return out, err
}

// longApply lets the library apply.
func (m *Manager) longApply(ctx context.Context, w writes, by registry.Writer, live runtime.Object, config *unstructured.Unstructured, force bool) (runtime.Object, error) {
	live = orEmpty(live, w.row)
	l, err := m.library(ctx, w, live)
	if err != nil {
		return nil, err
	}
	return l.Apply(live, config, by.Name, force)
}

// shortApply applies what makes a new object, or takes nothing from anybody: in the stored version, which all entries are of, with at
// least the fields that the manager applied before, and with others' only as they are. errUnusual is for all others, and for what is
// wrong with them; live is as it was then.
func (m *Manager) shortApply(w writes, by registry.Writer, live runtime.Object, config *unstructured.Unstructured) (runtime.Object, error) {
	if gvk := w.row.GVK.GroupKind().WithVersion(w.version); gvk != w.row.StoredGVK() || gvk != config.GroupVersionKind() {
		return nil, errUnusual
	}
	if dynamic(w.row) || clientSide(by, config) {
		return nil, errUnusual
	}
	c, err := m.comparer(w)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return m.applyNew(w, by, c, config)
	}
	live.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
	access, err := meta.Accessor(live)
	if err != nil {
		return nil, err
	}
	entries := access.GetManagedFields()
	if len(entries) == 0 || !w.usual(entries) || clientSide(by, access) {
		return nil, errUnusual
	}
	walked, err := c.configure(config.Object, reflect.ValueOf(live).Elem())
	if err != nil {
		return nil, err
	}
	entries, err = m.applied(w.entry(by, metav1.ManagedFieldsOperationApply), entries, walked)
	if err != nil {
		return nil, err
	}
	for _, edit := range walked.edits {
		edit()
	}
	access.SetManagedFields(entries)
	if len(walked.touched) > 0 {
		converter{row: w.row}.Default(live)
	}
	return live, nil
}

// applyNew makes a new object of a configuration.
func (m *Manager) applyNew(w writes, by registry.Writer, c *comparer, config *unstructured.Unstructured) (runtime.Object, error) {
	walked, err := c.configure(config.Object, reflect.Value{})
	if err != nil {
		return nil, err
	}
	obj := w.row.New()
	if err := into(reflect.ValueOf(obj), config.Object); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
	if reflect.DeepEqual(obj, orEmpty(nil, w.row)) {
		return nil, errUnusual // no change
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if len(walked.out) > len("{}") {
		self := w.entry(by, metav1.ManagedFieldsOperationApply)
		self.FieldsV1 = walked.fields()
		access.SetManagedFields([]metav1.ManagedFieldsEntry{self})
	}
	converter{row: w.row}.Default(obj)
	return obj, nil
}

// clientSide tells whether the library has to keep the annotation of kubectl's client-side apply up to date.
func clientSide(by registry.Writer, obj metav1.Object) bool {
	return by.Name == "kubectl" && obj.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != ""
}

// applied returns the entries of an object to which self has applied a configuration.
func (m *Manager) applied(self metav1.ManagedFieldsEntry, entries []metav1.ManagedFieldsEntry, walked *configuration) ([]metav1.ManagedFieldsEntry, error) {
	at, out := -1, slices.Clone(entries)
	for i := range entries {
		e := &entries[i]
		if e.Manager == self.Manager && e.Operation == self.Operation && e.Subresource == self.Subresource {
			at = i
			continue
		}
		if len(walked.touched) == 0 {
			continue
		}
		has, err := m.sets.of(e)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(walked.touched, func(path fieldpath.Path) bool { return hasAny(has, path) }) {
			return nil, errUnusual // a conflict, or what force takes away
		}
	}
	if len(walked.touched) == 0 {
		self.Time = nil // that of the last change
	}
	if at < 0 {
		if len(walked.out) == len("{}") {
			return out, nil
		}
		self.FieldsV1 = walked.fields()
		out = append(out, self)
	} else {
		self.FieldsV1 = entries[at].FieldsV1
		if self.Time == nil {
			self.Time = entries[at].Time
		}
		if !bytes.Equal(raw(self.FieldsV1), walked.out) {
			self.FieldsV1 = walked.fields()
			was, err := m.sets.of(&entries[at])
			if err != nil {
				return nil, err
			}
			is, err := m.sets.of(&self)
			if err != nil {
				return nil, err
			}
			if !was.Difference(is).Empty() {
				return nil, errUnusual // what is not applied any more may have to go
			}
		}
		out[at] = self
	}
	slices.SortFunc(out, compareEntries)
	return out, nil
}

// fields is the field set of the configuration.
func (w *configuration) fields() *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	f.SetRawBytes(bytes.Clone(w.out))
	return f
}
