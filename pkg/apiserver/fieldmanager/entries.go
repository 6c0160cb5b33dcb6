package fieldmanager

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

// fieldsV1 is the only format of field sets.
const fieldsV1 = "FieldsV1"

// writeTarget identifies what a write goes to: a kind in one version, through one subresource ("" for the resource). It
// is the unit of compilation: the version decides the schema, and the subresource decides which fields nobody owns.
type writeTarget struct {
	row                  *resources.Row
	version, subresource string
}

// targetKey is a writeTarget as the key of a cache. The weak pointer lets go of rows that are no longer served, such as
// those of deleted CustomResourceDefinitions.
type targetKey struct {
	row                  weak.Pointer[resources.Row]
	version, subresource string
}

func (w writeTarget) key() targetKey { return targetKey{weak.Make(w.row), w.version, w.subresource} }

func (w writeTarget) gvk() schema.GroupVersionKind {
	return w.row.GVK.GroupKind().WithVersion(w.version)
}

// apiVersion is the version as entries spell it.
func (w writeTarget) apiVersion() string { return w.gvk().GroupVersion().String() }

// newEntry returns the entry of a writer, without fields.
func (w writeTarget) newEntry(
	by registry.Writer, operation metav1.ManagedFieldsOperationType,
) metav1.ManagedFieldsEntry {
	// JSON keeps whole seconds in UTC, so nothing finer may decide the order of entries (compareEntries).
	at := metav1.NewTime(by.At.UTC())
	return metav1.ManagedFieldsEntry{
		Manager: cmp.Or(by.Name, "unknown"), Operation: operation, APIVersion: w.apiVersion(),
		Subresource: by.Subresource, FieldsType: fieldsV1, Time: &at,
	}
}

// uniform reports whether the fast path can read entries as they are: all in the version of w, in a known format, and
// none twice. Two entries of one manager exist if they were written in two versions, or if a client sent them. The
// library then keeps the last.
func (w writeTarget) uniform(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		e := &entries[i]
		known := e.Operation == metav1.ManagedFieldsOperationUpdate || e.Operation == metav1.ManagedFieldsOperationApply
		if !known || e.APIVersion != w.apiVersion() || e.FieldsType != fieldsV1 {
			return false
		}
		if slices.ContainsFunc(entries[:i], func(o metav1.ManagedFieldsEntry) bool { return sameWriter(&o, e) }) {
			return false
		}
	}
	return true
}

// sameWriter reports whether two entries, both in the same version, belong to the same writer.
//
// The three together identify an entry, as the API documents for managedFields: a manager that both applies and updates
// has two entries, and one that writes the status has another.
func sameWriter(a, b *metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource
}

// sameEntry reports whether a client sent an entry back unchanged. Clients that read, change and write an object send
// the entries back as they were. Anything else is an attempt to reset or edit them.
func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	return sameWriter(&a, &b) && a.APIVersion == b.APIVersion && a.FieldsType == b.FieldsType &&
		a.Time.Equal(b.Time) && bytes.Equal(raw(a.FieldsV1), raw(b.FieldsV1))
}

// raw returns the bytes of a field set, nil if there is none.
func raw(f *metav1.FieldsV1) []byte {
	if f == nil {
		return nil
	}
	return f.GetRawBytes()
}

// compareEntries is the library's order of entries: appliers first, then by time.
//
// Times are compared by the second, which is what JSON keeps. The other fields only make the order total, so that equal
// inputs give equal bytes.
func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	seconds := func(t *metav1.Time) int64 {
		if t == nil {
			return 0
		}
		return t.Unix()
	}
	return cmp.Or(
		strings.Compare(string(a.Operation), string(b.Operation)),
		cmp.Compare(seconds(a.Time), seconds(b.Time)),
		strings.Compare(a.Manager, b.Manager),
		strings.Compare(a.APIVersion, b.APIVersion),
		strings.Compare(a.Subresource, b.Subresource),
	)
}
