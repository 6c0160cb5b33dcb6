package rest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

func tableKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: metav1.GroupName, Version: version, Kind: "Table"}
}

// tableRows is a way to show items as rows: how much of the object each row includes, and in which version of
// meta.k8s.io.
type tableRows struct {
	include metav1.IncludeObjectPolicy
	version string
}

// everyTableRows returns all six ways, each with the encodings that its watchers share. They are made with the
// resource, so that a watch only looks its own up.
func everyTableRows() map[tableRows]*shared {
	out := map[tableRows]*shared{}
	for _, version := range []string{"v1", "v1beta1"} {
		for _, include := range []metav1.IncludeObjectPolicy{metav1.IncludeNone, metav1.IncludeMetadata,
			metav1.IncludeObject} {
			out[tableRows{include, version}] = &shared{}
		}
	}
	return out
}

// table shows items to one client as `kubectl get` prints them. Its rows are JSON from the start: an object is decoded,
// becomes a row and is dropped, so a table of many objects never has them all decoded.
type table struct {
	*exchange
	tableRows
	rows    *shared
	columns []metav1.TableColumnDefinition
	cells   func(obj runtime.Object, now time.Time) []any
	// conditions returns the marks of an object's row; nil: rows have none.
	conditions func(obj runtime.Object) []metav1.TableRowCondition
	// inVersion tells that the cells are those of objects in the client's version, not of stored ones.
	inVersion bool
}

// newTable reads what kind of table the client wants.
func newTable(x *exchange, a accepted) (*table, error) {
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_TableOptions)
	if err != nil {
		return nil, err
	}
	t := &table{exchange: x, tableRows: tableRows{cmp.Or(opts.IncludeObject, metav1.IncludeMetadata), a.version}}
	if t.rows = x.res.tables[t.tableRows]; t.rows == nil {
		return nil, apierrors.NewBadRequest("Unable to convert to Table as requested: " +
			field.Invalid(field.NewPath("includeObject"), opts.IncludeObject,
				"must be 'Metadata', 'Object', 'None', or empty").Error())
	}
	// A version with cells of its own needs objects of that version. Otherwise the row's cells read the stored version,
	// and nothing is converted.
	t.columns, t.cells = x.res.Version.Columns, x.res.Version.Cells
	if t.inVersion = t.cells != nil; !t.inVersion {
		t.columns, t.cells, t.conditions = x.res.Row.Columns, x.res.Row.Cells, x.res.Row.Conditions
	}
	if t.cells == nil {
		t.columns, t.cells = plainColumns(), plainCells
	}
	return t, nil
}

// writeTable answers with a table of items. The table is made as a whole: its error must still be able to become an
// answer, and the client wants compact JSON, YAML or indented JSON of it. For lists, writeItems has taken memory for
// that (costOf). Several tells that the items are those of a list, even if it has one.
func writeTable(x *exchange, a accepted, code int, items []*storage.Item, several bool, list metav1.ListMeta) error {
	t, err := newTable(x, a)
	if err != nil {
		return err
	}
	if among := x.res.Row.CellsAmong; among != nil && several && !t.inVersion {
		all, err := t.objects(items)
		if err != nil {
			return internal(err)
		}
		t.cells = among(all)
	}
	b, err := t.begin(nil, list)
	if full := x.res.full; err == nil && t.inVersion && full.kept != nil {
		_, err = full.ofAll(x.r.Context(), items) // by one call of the webhook, not by one for each row
	}
	for i := 0; i < len(items) && err == nil; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		var row []byte
		if row, err = t.row(items[i]); err == nil {
			if i == 0 { // the others will be about as long
				b = slices.Grow(b, len(items)*(len(row)+len(row)/8)+len(tableEnd))
			}
			b = append(b, row...)
		}
	}
	if err != nil {
		return internal(err)
	}
	return x.writeJSON(a, code, append(b, tableEnd...))
}

// objects decodes items.
func (t *table) objects(items []*storage.Item) ([]runtime.Object, error) {
	out := make([]runtime.Object, len(items))
	for i, item := range items {
		var err error
		if out[i], err = registry.Object(t.codec(), item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tableEnd closes what begin has opened.
const tableEnd = "]}"

// begin appends a table up to its first row. It encodes an empty table and cuts its end off, so that the encoder
// decides on the form.
func (t *table) begin(b []byte, list metav1.ListMeta) ([]byte, error) {
	empty := &metav1.Table{ListMeta: list, ColumnDefinitions: t.columns, Rows: []metav1.TableRow{}}
	empty.SetGroupVersionKind(tableKind(t.version))
	whole, err := json.Marshal(empty)
	if err != nil {
		return b, fmt.Errorf("encode a table: %w", err)
	}
	head, ok := bytes.CutSuffix(whole, []byte(tableEnd))
	if !ok {
		return b, fmt.Errorf("encode a table: %q does not end with its rows", whole)
	}
	return append(b, head...), nil
}

// row is the row of a stored item.
func (t *table) row(item *storage.Item) ([]byte, error) {
	codec := t.codec()
	if t.inVersion {
		var err error
		if item, err = t.res.full.of(t.r.Context(), item); err != nil {
			return nil, err
		}
	}
	obj, err := registry.Object(codec, item)
	if err != nil {
		return nil, err
	}
	return t.rowOf(obj)
}

// codec returns the codec of the objects that rows show.
func (t *table) codec() registry.Codec {
	if t.inVersion {
		return t.res.full.codec
	}
	return t.res.codec
}

// sharedFor is how long other watchers may use a row: the ages in it have a resolution of one second.
const sharedFor = time.Second

// eventRow returns the row of an event's item. Watchers share the row with the time when it was made, in eight bytes
// behind it. A row that is too old is made again for this watcher alone.
func (t *table) eventRow(e *storage.Event) ([]byte, error) {
	now := t.Now()
	b, err := t.rows.of(e, func(item *storage.Item) ([]byte, error) {
		row, err := t.row(item)
		return binary.BigEndian.AppendUint64(row, uint64(now.UnixNano())), err
	})
	if err != nil {
		return nil, err
	}
	end := len(b) - 8
	if made := time.Unix(0, int64(binary.BigEndian.Uint64(b[end:]))); now.Sub(made).Abs() >= sharedFor {
		return t.row(e.Item)
	}
	return b[:end], nil
}

// rowOf returns the row of an object of the table's codec. The ages in it are those of now, by the server's clock.
func (t *table) rowOf(obj runtime.Object) ([]byte, error) {
	row := metav1.TableRow{Cells: t.cells(obj, t.Now())}
	if t.conditions != nil {
		row.Conditions = t.conditions(obj)
	}
	// Only whole objects are shown in the client's version; metadata is the same in all.
	if t.include == metav1.IncludeObject && !t.inVersion {
		var err error
		if obj, err = t.fromHub(obj); err != nil {
			return nil, err
		}
	}
	return t.encode(row, obj)
}

// encode completes a row with as much of the object as the client asked for, and encodes it.
func (t *table) encode(row metav1.TableRow, obj runtime.Object) ([]byte, error) {
	switch t.include {
	case metav1.IncludeObject:
		row.Object.Object = obj
	case metav1.IncludeMetadata:
		access, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		row.Object.Object = metadataOnly(access, t.version)
	}
	b, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encode a table's row: %w", err)
	}
	return b, nil
}

// metadataOnly is an object's metadata as an object of a version of meta.k8s.io.
func metadataOnly(obj metav1.Object, version string) *metav1.PartialObjectMetadata {
	m := meta.AsPartialObjectMetadata(obj)
	m.SetGroupVersionKind(schema.GroupVersionKind{Group: metav1.GroupName, Version: version,
		Kind: "PartialObjectMetadata"})
	return m
}

// plainColumns and plainCells are for kinds without a table of their own, as upstream's default.
func plainColumns() []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		{Name: "Created At", Type: "date", Description: docs["creationTimestamp"]},
	}
}

func plainCells(obj runtime.Object, _ time.Time) []any {
	access, err := meta.Accessor(obj)
	if err != nil {
		return []any{"", ""}
	}
	return []any{access.GetName(), access.GetCreationTimestamp().UTC().Format(time.RFC3339)}
}
