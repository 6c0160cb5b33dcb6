package serve

import (
	"mime"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	api "bonsai/api/traces"
)

// form is how a client wants its answer.
type form struct {
	table bool
	// include is which object a row of a table has: None, Metadata or Object.
	include metav1.IncludeObjectPolicy
}

// accepted reads which form a client takes: the first of its list that there is.
func accepted(r *http.Request) (form, bool) {
	include := metav1.IncludeObjectPolicy(r.URL.Query().Get("includeObject"))
	accept := r.Header.Get("Accept")
	if accept == "" {
		return form{}, true
	}
	for clause := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(clause)
		if err != nil || media != "application/json" && media != "*/*" && media != "application/*" {
			continue
		}
		switch {
		case parameters["as"] == "":
			return form{}, true
		case parameters["as"] == "Table" && parameters["g"] == metav1.GroupName && parameters["v"] == "v1":
			return form{table: true, include: include}, true
		}
	}
	return form{}, false
}

// columns are those of "kubectl get traces".
func columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "The UID of the object."},
		{Name: "Kind", Type: "string", Description: "The kind of the object."},
		{Name: "Object", Type: "string", Description: "The resource and the name of the object."},
		{Name: "Spans", Type: "integer", Description: "How many spans are kept."},
		{Name: "Duration", Type: "string", Description: "The time from the start of the first span to the end of the last."},
		{Name: "Age", Type: "string", Description: "The time since the start of the first span."},
	}
}

// table is a list as a table.
func (h *Handler) table(list []api.Trace, meta metav1.ListMeta, as form) *metav1.Table {
	t := &metav1.Table{TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}, ListMeta: meta,
		ColumnDefinitions: columns(), Rows: []metav1.TableRow{}}
	for i := range list {
		trace := &list[i]
		start := trace.CreationTimestamp.Time
		object := trace.Object.Name
		if trace.Object.Resource != "" {
			object = trace.Object.Resource + "/" + object
		}
		row := metav1.TableRow{Cells: []any{trace.Name, trace.Object.Kind, object, trace.SpanCount,
			short(trace.LastSeen.Sub(start)), duration.HumanDuration(h.now().Sub(start))}}
		switch as.include {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			resource := api.Resource
			if trace.Namespace == "" {
				resource = api.ClusterResource
			}
			trace.TypeMeta = typeMeta(resource, "")
			row.Object.Object = &traceObject{trace}
		default:
			row.Object.Object = &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
				ObjectMeta: trace.ObjectMeta}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// short is a duration for people: three digits are enough to compare, and days are Kubernetes' way.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// traceObject is a trace in a row, which asks for a runtime.Object. Nobody copies it.
type traceObject struct{ *api.Trace }

// DeepCopyObject implements runtime.Object.
func (t *traceObject) DeepCopyObject() runtime.Object { return &traceObject{t.Trace} }
