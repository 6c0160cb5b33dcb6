package get

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// printTables prints the answers as tables, one for each run of answers of one kind, and returns the number of rows. An
// empty line separates tables.
func (o *Options) printTables(infos []*resource.Info) (int, error) {
	showKind := o.showKind || severalKinds(infos)
	if o.sortBy != "" && severalKinds(infos) {
		return 0, unsortable(o.sortBy)
	}
	out := printers.NewAligner(o.Out)
	rows := 0
	var last *resource.Info
	namespaced := false // once there is a column of namespaces, the tables below have it too
	for _, info := range o.merged(infos) {
		namespaced = namespaced || info.info.Namespaced()
		t, err := o.toTable(info.info, info.pages)
		if err != nil {
			return rows, err
		}
		if len(t.Rows) == 0 {
			continue
		}
		header := last == nil || last.Mapping.Resource != info.info.Mapping.Resource
		if header && last != nil {
			if err := out.Flush(); err != nil {
				return rows, err
			}
			out.Reset()
			if !o.table.NoHeaders {
				fmt.Fprintln(o.Out)
			}
		}
		printers.Table(out, t, o.tableOptions(info.info, showKind, namespaced), header)
		rows += len(t.Rows)
		last = info.info
	}
	return rows, out.Flush()
}

// answer is one collection (its pages) or one object.
type answer struct {
	info  *resource.Info
	pages [][]byte
}

// merged joins neighbouring answers of one kind, such as the pages of a list, so that they are sorted as one.
func (o *Options) merged(infos []*resource.Info) []answer {
	var out []answer
	for _, i := range infos {
		if n := len(out); n > 0 && out[n-1].info.Mapping.Resource == i.Mapping.Resource {
			out[n-1].pages = append(out[n-1].pages, i.Raw)
			continue
		}
		out = append(out, answer{i, [][]byte{i.Raw}})
	}
	return out
}

// tableOptions returns the options of a table of info's kind. A namespace is shown only with --all-namespaces, since
// all objects otherwise have the same.
func (o *Options) tableOptions(info *resource.Info, showKind, namespaced bool) printers.TableOptions {
	t := o.table
	t.WithNamespace = o.request.AllNamespaces && namespaced
	if showKind {
		t.Kind = resource.KindName(info.Mapping.GroupVersionKind.Kind, info.Mapping.GroupVersionKind.Group)
	}
	return t
}

// toTable decodes the pages as one sorted table. An answer that is not a table, such as that of an aggregated server
// without them, becomes one of names and ages.
func (o *Options) toTable(info *resource.Info, pages [][]byte) (*metav1.Table, error) {
	var all *metav1.Table
	for _, data := range pages {
		t, err := o.page(data)
		if err != nil {
			return nil, fmt.Errorf("decode the table of %s: %w", info.Mapping.Resource.Resource, err)
		}
		if all == nil {
			all = t
			continue
		}
		all.Rows = append(all.Rows, t.Rows...)
	}
	if o.sortBy != "" {
		_ = sortTable(all, o.sortBy) // a field that no object has leaves the order as it is
	}
	return all, nil
}

// page decodes one answer as a table.
func (o *Options) page(data []byte) (*metav1.Table, error) {
	t := &metav1.Table{}
	if err := json.Unmarshal(data, t); err != nil {
		return nil, err
	}
	if t.Kind == "Table" {
		return t, nil
	}
	items, err := itemsOf(data)
	return printers.Basic(items, o.now()), err
}

// itemsOf decodes a list's items, or the one object.
func itemsOf(data []byte) ([]unstructured.Unstructured, error) {
	obj, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	switch o := obj.(type) {
	case *unstructured.UnstructuredList:
		return o.Items, nil
	case *unstructured.Unstructured:
		return []unstructured.Unstructured{*o}, nil
	}
	return nil, fmt.Errorf("unexpected %T", obj)
}

// severalKinds reports whether the answers are of more than one kind: then rows show their kind.
func severalKinds(infos []*resource.Info) bool {
	for _, i := range infos {
		if i.Mapping.GroupVersionKind != infos[0].Mapping.GroupVersionKind {
			return true
		}
	}
	return false
}
