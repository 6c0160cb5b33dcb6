package get

import (
	"encoding/json"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"bonsai/pkg/kubectl/printers"
)

// field finds the value of an object that --sort-by names.
type field struct {
	name  string
	path  *jsonpath.JSONPath
	found bool
}

func newField(spec string) (*field, error) {
	text, err := printers.RelaxedPath(spec)
	if err != nil {
		return nil, err
	}
	j := jsonpath.New("sorting").AllowMissingKeys(true)
	if err := j.Parse(text); err != nil {
		return nil, fmt.Errorf("sorting error: %w", err)
	}
	return &field{name: text, path: j}, nil
}

// of returns the value in object, nil if it has none, and remembers in found that some object has one.
func (f *field) of(object any) (any, error) {
	found, err := f.path.FindResults(object)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || len(found[0]) == 0 {
		return nil, nil
	}
	f.found = true
	return found[0][0].Interface(), nil
}

// sortTable sorts the rows by the field of their objects; rows without it come first. An order that is equal stays.
func sortTable(t *metav1.Table, by string) error {
	f, err := newField(by)
	if err != nil {
		return err
	}
	values := make([]any, len(t.Rows))
	for i, r := range t.Rows {
		var object any
		if u, ok := r.Object.Object.(*unstructured.Unstructured); ok {
			object = u.Object
		} else if err := json.Unmarshal(r.Object.Raw, &object); err != nil {
			return err
		}
		if values[i], err = f.of(object); err != nil {
			return err
		}
	}
	sort.Stable(&byValue{values, func(i, j int) { t.Rows[i], t.Rows[j] = t.Rows[j], t.Rows[i] }})
	return nil
}

// sortItems sorts the objects as sortTable does. It is an error if none of them has the field, or if a value is a map
// or a list.
func sortItems(items []unstructured.Unstructured, by string) error {
	f, err := newField(by)
	if err != nil {
		return err
	}
	values := make([]any, len(items))
	for i := range items {
		if values[i], err = f.of(items[i].Object); err != nil {
			return err
		}
		switch values[i].(type) {
		case map[string]any, []any:
			if len(items) > 1 {
				return fmt.Errorf("the field %s cannot be sorted by: it is no single value", f.name)
			}
		}
	}
	if len(items) > 0 && !f.found {
		return unsortable(by)
	}
	sort.Stable(&byValue{values, func(i, j int) { items[i], items[j] = items[j], items[i] }})
	return nil
}

// unsortable returns the error for objects that cannot be sorted: none has the field, or they are tables of several
// kinds.
func unsortable(by string) error {
	f, err := newField(by)
	if err != nil {
		return err
	}
	return fmt.Errorf("couldn't find any field with path %q in the list of objects", f.name)
}

// byValue sorts values, and swaps with each the row or object that it belongs to.
type byValue struct {
	values []any
	swap   func(i, j int)
}

func (b *byValue) Len() int { return len(b.values) }

func (b *byValue) Swap(i, j int) {
	b.values[i], b.values[j] = b.values[j], b.values[i]
	b.swap(i, j)
}

// Less puts missing values first, numbers and quantities by size, other text letter by letter (a10 before a2).
func (b *byValue) Less(i, j int) bool {
	x, y := b.values[i], b.values[j]
	if x == nil || y == nil {
		return x == nil && y != nil
	}
	nx, okx := number(x)
	ny, oky := number(y)
	if okx && oky {
		return nx < ny
	}
	sx, sy := fmt.Sprint(x), fmt.Sprint(y)
	if qx, err := resource.ParseQuantity(sx); err == nil {
		if qy, err := resource.ParseQuantity(sy); err == nil {
			return qx.Cmp(qy) < 0
		}
	}
	return sx < sy
}

// number returns v as a number, with the types that JSON decodes to; false for other types.
func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
