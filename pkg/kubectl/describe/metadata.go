package describe

import (
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// typed returns a function that decodes the object to f's type and calls f.
func typed[T any, P interface {
	*T
	runtime.Object
}](f func(*describer, P) error) func(*describer, *unstructured.Unstructured) error {
	return func(d *describer, u *unstructured.Unstructured) error {
		var object P = new(T)
		if err := resource.FromUnstructured(u, object); err != nil {
			return err
		}
		return f(d, object)
	}
}

// lastApplied is kubectl apply's own annotation. It is left out, because it repeats the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// The zone is the local one of the user.
func when(t metav1.Time) string { return t.Time.Format(time.RFC1123Z) }

// labels writes a map as one pair a line.
func (w *writer) labels(level int, title string, m map[string]string) {
	w.line(level, "%s:\t", title)
	if len(m) == 0 {
		w.line(0, "<none>\n")
		return
	}
	// The order of a Go map is random, and two runs must print the same.
	for i, k := range keys(m) {
		if i > 0 {
			w.line(0, "\t")
		}
		w.line(0, "%s=%s\n", k, m[k])
	}
}

// annotations writes each annotation. A value that has several lines, or does not fit with its key into 140 bytes, goes
// below its key, and its lines are cut.
func (w *writer) annotations(level int, m map[string]string) {
	const most = 140
	w.line(level, "Annotations:\t")
	n := 0
	for _, k := range keys(m) {
		if k == lastApplied {
			continue
		}
		if n++; n > 1 {
			w.line(0, "\t")
		}
		value := strings.TrimSuffix(m[k], "\n")
		if len(value)+len(k)+2 <= most && !strings.Contains(value, "\n") {
			w.line(0, "%s: %s\n", k, value)
			continue
		}
		w.line(0, "%s:\n", k)
		for _, l := range strings.Split(value, "\n") {
			// Annotations may have 256 KiB together; a description shows their beginning.
			if len(l) > most-2 {
				l = l[:most-2] + "..."
			}
			w.line(0, "\t  %s\n", l)
		}
	}
	if n == 0 {
		w.line(0, "<none>\n")
	}
}

// writeHead writes name, namespace, labels and annotations.
func writeHead(w *writer, o metav1.Object, namespaced bool) {
	w.line(0, "Name:\t%s\n", o.GetName())
	if namespaced {
		w.line(0, "Namespace:\t%s\n", o.GetNamespace())
	}
	w.labels(0, "Labels", o.GetLabels())
	w.annotations(0, o.GetAnnotations())
}

func keys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// writeEventTable writes the events of this very object: the UID leaves out those of an earlier one with its name.
func writeEventTable(d *describer) error {
	m, err := d.client.Mapping("events")
	if err != nil {
		return err
	}
	u := d.info.Object
	set := fields.Set{"involvedObject.name": u.GetName(), "involvedObject.kind": u.GetKind(),
		"involvedObject.uid": string(u.GetUID())}
	namespace := u.GetNamespace()
	if namespace != "" {
		set["involvedObject.namespace"] = namespace
	}
	if u.GetKind() == "Node" {
		delete(set, "involvedObject.uid") // kubelets name their node where the UID should be
	}
	list, err := d.client.List(d.ctx, m, namespace,
		metav1.ListOptions{FieldSelector: set.AsSelector().String(), Limit: d.chunk})
	if err != nil || len(list.Items) == 0 { // who may read an object may not read its events
		d.line(0, "Events:\t<none>\n")
		return nil
	}
	all := make([]corev1.Event, len(list.Items))
	for i := range list.Items {
		if err := resource.FromUnstructured(&list.Items[i], &all[i]); err != nil {
			return err
		}
	}
	writeEvents(d, all)
	return nil
}

// writeEvents writes events, the oldest first. The columns are upstream's; tools and people search them.
func writeEvents(d *describer, all []corev1.Event) {
	sort.SliceStable(all, func(i, j int) bool { return all[i].LastTimestamp.Before(&all[j].LastTimestamp) })
	d.line(0, "Events:\n  Type\tReason\tAge\tFrom\tMessage\n")
	d.line(1, "----\t------\t----\t----\t-------\n")
	for i := range all {
		e := &all[i]
		from := e.Source.Component
		if from == "" {
			from = e.ReportingController
		}
		message := strings.TrimSpace(e.Message)
		if part := e.InvolvedObject.FieldPath; part != "" {
			message = part + ": " + message
		}
		d.line(1, "%v\t%v\t%s\t%v\t%v\n", e.Type, e.Reason, printers.EventAge(e, d.now), from, message)
	}
}
