package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type step func(*Attributes) error

func (s step) Admit(_ context.Context, a *Attributes) error    { return s(a) }
func (s step) Validate(_ context.Context, a *Attributes) error { return s(a) }

func TestChain(t *testing.T) {
	t.Parallel()
	var ran []string
	note := func(name string, err error) step {
		return func(*Attributes) error { ran = append(ran, name); return err }
	}
	a := &Attributes{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Name: "web"}
	no := Forbid(a, "because of %d", 1)
	c := NewChain(Plugin{Name: "A", Mutator: note("a", nil)},
		Plugin{Name: "B", Mutator: note("b", no), Validator: note("vb", errors.New("broken"))},
		Plugin{Name: "C", Mutator: note("c", nil)})
	if err := c.Admit(t.Context(), a); !apierrors.IsForbidden(err) ||
		err.Error() != `pods "web" is forbidden: because of 1` {
		t.Errorf("got %v", err)
	}
	if err := c.Validate(t.Context(), a); err == nil || err.Error() != "admission plug-in B: broken" {
		t.Errorf("got %v", err)
	}
	if want := []string{"a", "b", "vb"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}
