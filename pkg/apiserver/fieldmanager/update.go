package fieldmanager

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
)

// maxUpdaters is how many entries with the operation Update an object has before the library merges the oldest. The
// number is upstream's. It bounds the entries of objects that many short-lived clients write, each under a name of its
// own. Entries of appliers are never merged.
const maxUpdaters = 10

// updateFast is the fast path of Update. doc.go lists the writes that it serves; it returns errNeedsLibrary for others.
//
// It changes nothing but managedFields of obj, and that last, when nothing can fail any more.
func (m *Manager) updateFast(
	ctx context.Context, w writeTarget, by registry.Writer, live, obj runtime.Object,
) error {
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
	sent := now.GetManagedFields()
	// Through a subresource, the library ignores the entries that a client sends.
	if sent != nil && by.Subresource == "" && !slices.EqualFunc(sent, entries, sameEntry) {
		return errNeedsLibrary // the client resets the entries, or they are invalid
	}
	// Upstream decides the same: without entries the earlier owners are unknown, and giving all fields to this writer
	// would be wrong.
	if live != nil && len(entries) == 0 {
		// The object predates field management, or a client reset its entries. The next apply brings them back.
		now.SetManagedFields(nil)
		return nil
	}
	if !w.uniform(entries) {
		return errNeedsLibrary
	}
	p, err := m.pairOf(ctx, w, live, obj)
	if err != nil {
		return err
	}
	if live == nil {
		return m.create(w, by, now, p)
	}
	diff, err := p.typ.compare(p.was, p.now)
	if err != nil {
		return err
	}
	out, err := m.assign(w.newEntry(by, metav1.ManagedFieldsOperationUpdate), entries, diff)
	if err != nil {
		return err
	}
	now.SetManagedFields(out)
	return nil
}

// create gives all fields of a new object to its writer. There are no entries to change, so the encoder writes the JSON
// of the only set directly (encode.go).
func (m *Manager) create(w writeTarget, by registry.Writer, obj metav1.Object, p pair) error {
	e := m.encoders.Get().(*encoder)
	defer m.encoders.Put(e)
	fields, err := e.encode(p.typ, p.was, p.now)
	if err != nil {
		return err
	}
	obj.SetManagedFields(nil)
	if fields != nil {
		self := w.newEntry(by, metav1.ManagedFieldsOperationUpdate)
		self.FieldsV1 = fields
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{self})
	}
	return nil
}

// typeOf returns the compiled type of w, or errNeedsLibrary if its schema has none.
//
// Types are cached by row, version and subresource. Compiling happens on the goroutine of the first writer; others of
// the same kind wait for it.
func (m *Manager) typeOf(w writeTarget) (*typeNode, error) {
	t, err := m.types.get(w.key(), func() (*typeNode, error) { return m.compileType(w) })
	if err == nil && t == nil {
		err = errNeedsLibrary
	}
	return t, err
}

// pair is an object before and after a write, as structs or maps of one compiled type.
type pair struct {
	typ      *typeNode
	was, now reflect.Value
}

// pairOf returns the pair of a write, in the version of w. The objects are of the stored kind and are converted if that
// is another version. If live is nil, was is the empty object, to which nobody's fields are new.
func (m *Manager) pairOf(ctx context.Context, w writeTarget, live, obj runtime.Object) (p pair, err error) {
	if p.typ, err = m.typeOf(w); err != nil {
		return p, err
	}
	if live, obj, err = w.convert(ctx, live, obj); err != nil {
		return p, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		p.now = reflect.ValueOf(u.Object)
		// With metadata in the empty object, metadata itself is not new: nobody owns it. The Go types reach the same by
		// their zero value, where metadata is a struct that JSON does not omit.
		p.was = reflect.ValueOf(map[string]any{"metadata": map[string]any{}})
		if live, ok := live.(*unstructured.Unstructured); ok {
			p.was = reflect.ValueOf(live.Object)
		}
		return p, nil
	}
	pointer := reflect.ValueOf(obj)
	if pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		return p, errNeedsLibrary
	}
	p.was, p.now = p.typ.zero, pointer.Elem()
	if live != nil {
		p.was = reflect.ValueOf(live).Elem()
	}
	return p, nil
}

// convert returns both objects in the version of w. live may be nil.
//
// Fields are compared in the version that the client wrote, because entries name that version. Conversions may call a
// webhook, so ctx ends them.
func (w writeTarget) convert(
	ctx context.Context, live, obj runtime.Object,
) (liveInVersion, objInVersion runtime.Object, err error) {
	stored, to := w.row.StoredGVK(), w.gvk().GroupVersion()
	if stored.GroupVersion() == to {
		return live, obj, nil
	}
	conv := converter{ctx, w.row}
	obj.GetObjectKind().SetGroupVersionKind(stored)
	if obj, err = conv.ConvertToVersion(obj, to); err != nil || live == nil {
		return nil, obj, err
	}
	live.GetObjectKind().SetGroupVersionKind(stored)
	live, err = conv.ConvertToVersion(live, to)
	return live, obj, err
}

// assign takes what changed from all managers and gives it to self, the entry of the writer. Entries that do not change
// keep their bytes. Entries that lose all their fields are dropped.
//
// Three things happen to each entry of another writer: it loses what self changed, since a value has the owner who set
// it last; it loses what no longer exists; and if nothing is left it goes. Sharing an unchanged value is possible only
// by apply, so updates never add co-owners. The entry of self keeps what it had and gains what changed. An update that
// changes nothing changes no entry, not even its time: otherwise every idle reconcile would be a write.
func (m *Manager) assign(
	self metav1.ManagedFieldsEntry, entries []metav1.ManagedFieldsEntry, diff difference,
) ([]metav1.ManagedFieldsEntry, error) {
	if diff.changed.Empty() && diff.removed.Empty() {
		return slices.Clone(entries), nil
	}
	out := make([]metav1.ManagedFieldsEntry, 0, len(entries)+1)
	own := diff.changed
	for i := range entries {
		e := entries[i]
		has, err := m.sets.of(&e)
		if err != nil {
			return nil, err
		}
		// If nothing is new, and things are only gone, self is treated like the others: its time does not move.
		if sameWriter(&e, &self) && !diff.changed.Empty() {
			self.FieldsV1 = e.FieldsV1
			if !diff.changed.Difference(has).Empty() || !diff.removed.Intersection(has).Empty() {
				own, self.FieldsV1 = has.Difference(diff.removed).Union(diff.changed), nil
			}
			continue
		}
		left := has.Difference(diff.changed).Difference(diff.removed)
		if left.Empty() {
			continue
		}
		if !left.Equals(has) {
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
	// The work above is lost then. That happens only when a new manager comes beyond the bound.
	if countUpdaters(out) > maxUpdaters {
		return nil, errNeedsLibrary
	}
	slices.SortFunc(out, compareEntries)
	return out, nil
}

func countUpdaters(entries []metav1.ManagedFieldsEntry) int {
	n := 0
	for i := range entries {
		if entries[i].Operation == metav1.ManagedFieldsOperationUpdate {
			n++
		}
	}
	return n
}
