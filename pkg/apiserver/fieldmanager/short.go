package fieldmanager

import (
	"bytes"
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

// fieldsV1 is the one format of field sets.
const fieldsV1 = "FieldsV1"

// maxUpdaters is how many entries with the operation Update an object has before the library joins the oldest of them.
const maxUpdaters = 10

// short keeps the managed fields of an update that the Go values tell all about: all entries are of its version, and the
// client sent managedFields as they are, or none. errUnusual is for all others.
func (m *Manager) short(ctx context.Context, w writes, by registry.Writer, live, obj runtime.Object) error {
	now, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	var entries []metav1.ManagedFieldsEntry
	if live != nil {
		was, err := meta.Accessor(live)
		if err != nil {
			return err
		}
		entries = was.GetManagedFields()
	}
	if sent := now.GetManagedFields(); sent != nil && by.Subresource == "" && !slices.EqualFunc(sent, entries, sameEntry) {
		return errUnusual // what clients send may reset the entries, or be wrong
	}
	if live != nil && len(entries) == 0 {
		now.SetManagedFields(nil) // it was made before, or its entries were reset: they come back with the first apply
		return nil
	}
	if !w.usual(entries) {
		return errUnusual
	}
	c, a, b, err := m.versioned(ctx, w, live, obj)
	if err != nil {
		return err
	}
	if live == nil {
		return m.create(w, by, c, now, a, b)
	}
	diff, err := c.compare(a, b)
	if err != nil {
		return err
	}
	out, err := m.assign(w, by, entries, diff)
	if err != nil {
		return err
	}
	now.SetManagedFields(out)
	return nil
}

// create gives all fields of a new object to its writer.
func (m *Manager) create(w writes, by registry.Writer, c *comparer, obj metav1.Object, was, now reflect.Value) error {
	f := m.fresh.Get().(*fresh)
	defer m.fresh.Put(f)
	set, err := f.set(c, was, now)
	if err != nil {
		return err
	}
	obj.SetManagedFields(nil)
	if set != nil {
		self := w.entry(by, metav1.ManagedFieldsOperationUpdate)
		self.FieldsV1 = set
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{self})
	}
	return nil
}

// usual tells whether entries are all of the version of w, and of known forms, and no two of the same manager: they were of two versions
// once, or a client sent them so, and the library takes the last.
func (w writes) usual(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		e := &entries[i]
		if slices.ContainsFunc(entries[:i], func(o metav1.ManagedFieldsEntry) bool {
			return o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == e.Subresource
		}) {
			return false
		}
		if e.APIVersion != w.apiVersion() || e.FieldsType != fieldsV1 || e.Operation != metav1.ManagedFieldsOperationUpdate && e.Operation != metav1.ManagedFieldsOperationApply {
			return false
		}
	}
	return true
}

// entry is that of by, without fields.
func (w writes) entry(by registry.Writer, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(by.At.UTC())
	return metav1.ManagedFieldsEntry{Manager: cmp.Or(by.Name, "unknown"), Operation: operation, APIVersion: w.apiVersion(),
		Subresource: by.Subresource, FieldsType: fieldsV1, Time: &at}
}

// apiVersion is the version as entries have it.
func (w writes) apiVersion() string {
	return w.row.GVK.GroupKind().WithVersion(w.version).GroupVersion().String()
}

// sameEntry tells whether a client sent an entry back as it was.
func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource &&
		a.FieldsType == b.FieldsType && a.Time.Equal(b.Time) && bytes.Equal(raw(a.FieldsV1), raw(b.FieldsV1))
}

func raw(f *metav1.FieldsV1) []byte {
	if f == nil {
		return nil
	}
	return f.GetRawBytes()
}

// comparer returns that of w. errUnusual: there is none.
func (m *Manager) comparer(w writes) (*comparer, error) {
	c, err := m.comparers.get(weakWrites{weak.Make(w.row), w.version, w.subresource}, func() (*comparer, error) { return m.newComparer(w) })
	if err == nil && c == nil {
		err = errUnusual
	}
	return c, err
}

// versioned returns the comparer of w, and the structs or maps that it compares: the objects, which are of the stored kind, in the version
// of w. was is the zero value if there is no live object.
func (m *Manager) versioned(ctx context.Context, w writes, live, obj runtime.Object) (c *comparer, was, now reflect.Value, err error) {
	if c, err = m.comparer(w); err != nil {
		return nil, was, now, err
	}
	conv := converter{ctx, w.row}
	to := w.row.GVK.GroupKind().WithVersion(w.version).GroupVersion()
	if w.row.StoredGVK().GroupVersion() != to {
		obj.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
		if obj, err = conv.ConvertToVersion(obj, to); err != nil {
			return nil, was, now, err
		}
		if live != nil {
			live.GetObjectKind().SetGroupVersionKind(w.row.StoredGVK())
			if live, err = conv.ConvertToVersion(live, to); err != nil {
				return nil, was, now, err
			}
		}
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		now, was = reflect.ValueOf(u.Object), reflect.ValueOf(map[string]any{"metadata": map[string]any{}}) // as nobody owns metadata itself
		if live, ok := live.(*unstructured.Unstructured); ok {
			was = reflect.ValueOf(live.Object)
		}
		return c, was, now, nil
	}
	now = reflect.ValueOf(obj)
	if now.Kind() != reflect.Pointer || now.Elem().Kind() != reflect.Struct {
		return nil, was, now, errUnusual
	}
	was = c.zero
	if live != nil {
		was = reflect.ValueOf(live).Elem()
	}
	return c, was, now.Elem(), nil
}

// assign takes what changed from all managers and gives it to the one that wrote. What did not change keeps its bytes.
func (m *Manager) assign(w writes, by registry.Writer, entries []metav1.ManagedFieldsEntry, diff difference) ([]metav1.ManagedFieldsEntry, error) {
	if diff.changed.Empty() && diff.removed.Empty() {
		return slices.Clone(entries), nil
	}
	self := w.entry(by, metav1.ManagedFieldsOperationUpdate)
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries)+1)
	own := diff.changed
	for i := range entries {
		e := entries[i]
		has, err := m.sets.of(&e)
		if err != nil {
			return nil, err
		}
		if e.Manager == self.Manager && e.Operation == self.Operation && e.Subresource == self.Subresource && !diff.changed.Empty() {
			self.FieldsV1 = e.FieldsV1
			if !diff.changed.Difference(has).Empty() || !diff.removed.Intersection(has).Empty() {
				own, self.FieldsV1 = has.Difference(diff.removed).Union(diff.changed), nil
			}
			continue
		}
		if left := has.Difference(diff.changed).Difference(diff.removed); left.Empty() {
			continue
		} else if !left.Equals(has) {
			if e.FieldsV1, err = m.sets.encode(left); err != nil {
				return nil, err
			}
		}
		out = append(out, e)
	}
	if !diff.changed.Empty() {
		if self.FieldsV1 == nil {
			var err error
			if self.FieldsV1, err = m.sets.encode(own); err != nil {
				return nil, err
			}
		}
		out = append(out, self)
	}
	updaters := 0
	for i := range out {
		if out[i].Operation == metav1.ManagedFieldsOperationUpdate {
			updaters++
		}
	}
	if updaters > maxUpdaters {
		return nil, errUnusual
	}
	slices.SortFunc(out, compareEntries)
	return out, nil
}

// compareEntries is the order of entries: appliers first, older ones first.
func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	seconds := func(t *metav1.Time) int64 {
		if t == nil {
			return 0
		}
		return t.Unix()
	}
	return cmp.Or(strings.Compare(string(a.Operation), string(b.Operation)), cmp.Compare(seconds(a.Time), seconds(b.Time)),
		strings.Compare(a.Manager, b.Manager), strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Subresource, b.Subresource))
}
