package registry

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// twoStates is a Getter that answers Get and GetCached differently; nil is not found.
type twoStates struct {
	newest, cached runtime.Object
	asked          int // for the newest state
}

func (s *twoStates) Get(context.Context, string, string) (runtime.Object, error) {
	s.asked++
	return orNotFound(s.newest)
}

func (s *twoStates) GetCached(context.Context, string, string) (runtime.Object, error) {
	return orNotFound(s.cached)
}

func orNotFound(obj runtime.Object) (runtime.Object, error) {
	if obj == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), "p")
	}
	return obj, nil
}

// TestFind: the newest state is asked for only if what is at hand has no such object.
func TestFind(t *testing.T) {
	t.Parallel()
	old, now := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "old"}}, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "now"}}
	for name, c := range map[string]struct {
		states twoStates
		want   string
		asked  int
	}{
		"at hand":   {twoStates{newest: now, cached: old}, "old", 0},
		"just made": {twoStates{newest: now}, "now", 1},
	} {
		p, err := Find[*corev1.Pod](t.Context(), &c.states, "ns", "p")
		if err != nil || p.Spec.NodeName != c.want || c.states.asked != c.asked {
			t.Errorf("%s: got %v, %v; asked %d times", name, p, err, c.states.asked)
		}
	}
	if p, err := Find[*corev1.Pod](t.Context(), &twoStates{}, "ns", "p"); p != nil || !apierrors.IsNotFound(err) {
		t.Errorf("none: got %v, %v", p, err)
	}
	if _, err := Find[*corev1.Node](t.Context(), &twoStates{cached: old}, "ns", "p"); err == nil ||
		!strings.Contains(err.Error(), "*v1.Node") {
		t.Errorf("another type: got %v", err)
	}
}
