package events

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// sink takes events.
type sink chan *corev1.Event

func (s sink) Create(e *corev1.Event) (*corev1.Event, error)          { s <- e; return e, nil }
func (s sink) Update(e *corev1.Event) (*corev1.Event, error)          { s <- e; return e, nil }
func (s sink) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { s <- e; return e, nil }

// An event says of which container it speaks, as kubectl describe and clients with a field selector expect it.
func TestEventsNameTheirSubject(t *testing.T) {
	t.Parallel()
	r, got := New(runtime.NewScheme(), "n1"), make(sink)
	defer r.Close()
	defer r.Start(got)()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", ResourceVersion: "7"},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "init"}},
			Containers:     []corev1.Container{{Name: "c"}},
			EphemeralContainers: []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}}}
	for container, path := range map[string]string{"": "", "init": "spec.initContainers{init}",
		"c": "spec.containers{c}", "debug": "spec.ephemeralContainers{debug}"} {
		if container == "" {
			r.Pod(pod, corev1.EventTypeWarning, "Failed", "why")
		} else {
			r.Container(pod, container, corev1.EventTypeWarning, "Failed", "why")
		}
		e := <-got
		if o := e.InvolvedObject; o.FieldPath != path || o.Kind != "Pod" || o.Namespace != "ns" || o.Name != "p" ||
			o.UID != "u" || o.ResourceVersion != "7" {
			t.Errorf("container %q: about %+v", container, o)
		}
		if e.Type != "Warning" || e.Reason != "Failed" || e.Message != "why" || e.Source.Component != "kubelet" ||
			e.Source.Host != "n1" {
			t.Errorf("container %q: %+v", container, e)
		}
	}
	r.Claim(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "u"}},
		corev1.EventTypeNormal, "Done", "what")
	if e := <-got; e.InvolvedObject !=
		(corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "ns", Name: "c",
			UID: "u"}) || e.Message != "what" {
		t.Errorf("of a claim: %+v", e)
	}
	about := corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: "n1"}
	for _, registered := range []bool{false, true} {
		if registered {
			about.UID = "u"
			r.FindNode(func() types.UID { return "u" })
		}
		r.Node(corev1.EventTypeNormal, "Done", "what")
		if e := <-got; e.InvolvedObject != about {
			t.Errorf("of a node that is registered (%t): %+v", registered, e)
		}
	}
}
