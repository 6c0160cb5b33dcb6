package events

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/printers"
	"bonsai/pkg/kubectl/resource"
)

// event is an event as read and as sent.
type event struct {
	corev1.Event
	object *unstructured.Unstructured
}

func read(u *unstructured.Unstructured) (event, error) {
	e := event{object: u}
	if err := resource.FromUnstructured(u, &e.Event); err != nil {
		return event{}, fmt.Errorf("decode event %s: %w", u.GetName(), err)
	}
	return e, nil
}

// last is when it happened the last time.
func (e event) last() time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// table shows one event a line.
type table struct {
	out                *printers.Aligner
	namespaces, header bool
}

func newTable(w io.Writer, namespaces, header bool) *table {
	return &table{out: printers.NewAligner(w), namespaces: namespaces, header: header}
}

// row adds e, after the header if it is the first.
func (t *table) row(e event, now time.Time) {
	if t.header {
		t.add("NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
		t.header = false
	}
	of := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
	t.add(e.Namespace, printers.EventAge(&e.Event, now), e.Type, e.Reason, of, strings.TrimSpace(e.Message))
}

func (t *table) add(cells ...string) {
	if !t.namespaces {
		cells = cells[1:]
	}
	t.out.Row(cells...)
}
