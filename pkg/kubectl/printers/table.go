package printers

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// TableOptions say which columns a table shows.
type TableOptions struct {
	NoHeaders, Wide, ShowLabels bool
	// LabelColumns are label keys with a column each.
	LabelColumns []string
	// WithNamespace puts the namespace first; Kind ("deployment.apps"), if not empty, is put before the names.
	WithNamespace bool
	Kind          string
	// Event, if not empty, is shown in a first column EVENT.
	Event string
}

// Table adds t's rows to a, after the header if header is set.
func Table(a *Aligner, t *metav1.Table, o TableOptions, header bool) {
	var shown []int
	for i, c := range t.ColumnDefinitions {
		if c.Priority == 0 || o.Wide {
			shown = append(shown, i)
		}
	}
	if header && !o.NoHeaders {
		a.Row(headers(t, o, shown)...)
	}
	for _, r := range t.Rows {
		a.Row(cells(t, r, o, shown)...)
	}
}

func headers(t *metav1.Table, o TableOptions, shown []int) []string {
	var h []string
	if o.Event != "" {
		h = append(h, "EVENT   ") // as wide as MODIFIED
	}
	if o.WithNamespace {
		h = append(h, "NAMESPACE")
	}
	for _, i := range shown {
		h = append(h, strings.ToUpper(t.ColumnDefinitions[i].Name))
	}
	for _, l := range o.LabelColumns {
		h = append(h, strings.ToUpper(l[strings.LastIndexByte(l, '/')+1:]))
	}
	if o.ShowLabels {
		h = append(h, "LABELS")
	}
	return h
}

func cells(t *metav1.Table, r metav1.TableRow, o TableOptions, shown []int) []string {
	object := RowMeta(r)
	var out []string
	if o.Event != "" {
		out = append(out, o.Event)
	}
	if o.WithNamespace {
		out = append(out, object.Namespace)
	}
	for _, i := range shown {
		if i >= len(r.Cells) {
			out = append(out, "")
			continue
		}
		text := cell(r.Cells[i])
		if o.Kind != "" && t.ColumnDefinitions[i].Format == "name" {
			text = o.Kind + "/" + text
		}
		out = append(out, text)
	}
	for _, l := range o.LabelColumns {
		out = append(out, object.Labels[l])
	}
	if o.ShowLabels {
		out = append(out, FormatLabels(object.Labels))
	}
	return out
}

// cell is a value as text of one line.
func cell(v any) string {
	if v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		if f, isFloat := v.(float64); isFloat && f == float64(int64(f)) {
			s = fmt.Sprint(int64(f))
		} else {
			s = fmt.Sprint(v)
		}
	}
	if i := strings.IndexAny(s, "\f\n\r"); i >= 0 {
		s = s[:i] + "..."
	}
	return s
}

// RowMeta is the metadata of a row's object; zero if the row has none.
func RowMeta(r metav1.TableRow) metav1.ObjectMeta {
	if len(r.Object.Raw) == 0 {
		if a, err := meta.Accessor(r.Object.Object); err == nil && r.Object.Object != nil {
			return metav1.ObjectMeta{Name: a.GetName(), Namespace: a.GetNamespace(), Labels: a.GetLabels(),
				ResourceVersion: a.GetResourceVersion()}
		}
		return metav1.ObjectMeta{}
	}
	var p metav1.PartialObjectMetadata
	if err := json.Unmarshal(r.Object.Raw, &p); err != nil {
		return metav1.ObjectMeta{}
	}
	return p.ObjectMeta
}

// FormatLabels is "a=b,c=d" in the order of keys, "<none>" without labels.
func FormatLabels(l map[string]string) string {
	if len(l) == 0 {
		return "<none>"
	}
	pairs := make([]string, 0, len(l))
	for k, v := range l {
		pairs = append(pairs, k+"="+v)
	}
	sort.Strings(pairs)
	return strings.Join(pairs, ",")
}

// Basic makes a table of the items' names and ages, for kinds that the server makes no table for.
func Basic(items []unstructured.Unstructured, now time.Time) *metav1.Table {
	t := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name"},
		{Name: "Age", Type: "string"},
	}}
	for i := range items {
		row := metav1.TableRow{Cells: []any{items[i].GetName(), Age(items[i].GetCreationTimestamp(), now)}}
		row.Object.Object = &items[i]
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Age is the time since t as kubectl writes it: "5m", "<unknown>" without a time.
func Age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}
