package rest

import (
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

// table shows items as `kubectl get` prints them. It decodes each item, makes its row and drops it.
func (x *exchange) table(a accepted, items []*storage.Item, list metav1.ListMeta) (*metav1.Table, error) {
	return x.tableOf(a, len(items), func(i int) (runtime.Object, error) { return registry.Object(x.res.Store.Codec(), items[i]) }, list)
}

// tableOf makes a table of n stored objects, which it asks for one after the other.
func (x *exchange) tableOf(a accepted, n int, object func(i int) (runtime.Object, error), list metav1.ListMeta) (*metav1.Table, error) {
	opts, err := fromQuery(x.query, metav1.Convert_url_Values_To_v1_TableOptions)
	if err != nil {
		return nil, err
	}
	v := &x.res.Version
	t := &metav1.Table{ListMeta: list, ColumnDefinitions: v.Columns, Rows: make([]metav1.TableRow, 0, n)}
	t.SetGroupVersionKind(tableKind(a.version))
	cells := v.Cells
	if cells == nil {
		t.ColumnDefinitions, cells = x.res.Row.Columns, x.res.Row.Cells
	}
	if cells == nil {
		t.ColumnDefinitions, cells = plainColumns(), plainCells
	}
	now := x.Now()
	for i := range n {
		obj, err := object(i)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if v.Cells != nil {
			if obj, err = x.fromHub(obj); err != nil {
				return nil, apierrors.NewInternalError(err)
			}
		}
		row := metav1.TableRow{Cells: cells(obj, now)}
		if v.Cells == nil && opts.IncludeObject == metav1.IncludeObject {
			if obj, err = x.fromHub(obj); err != nil {
				return nil, apierrors.NewInternalError(err)
			}
		}
		if row.Object.Object, err = x.rowObject(opts.IncludeObject, a.version, obj); err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// rowObject is what goes along with a row of obj, which is of the client's version: metadata, the whole object or nothing.
func (x *exchange) rowObject(include metav1.IncludeObjectPolicy, version string, obj runtime.Object) (runtime.Object, error) {
	switch include {
	case metav1.IncludeNone:
		return nil, nil
	case metav1.IncludeObject:
		return obj, nil
	case "", metav1.IncludeMetadata:
		access, err := meta.Accessor(obj)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		m := meta.AsPartialObjectMetadata(access)
		m.SetGroupVersionKind(schema.GroupVersionKind{Group: metav1.GroupName, Version: version, Kind: "PartialObjectMetadata"})
		return m, nil
	}
	return nil, apierrors.NewBadRequest("Unable to convert to Table as requested: " +
		field.Invalid(field.NewPath("includeObject"), include, "must be 'Metadata', 'Object', 'None', or empty").Error())
}

// plainColumns and plainCells are for kinds that have no table of their own.
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
