package preemption

import (
	"context"
	"errors"
	"slices"
	"testing"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// spares is an extender that chooses among nodes and victims.
type spares struct {
	framework.Extender // the rest is not called
	choose             func(map[string]framework.Victims) (map[string]framework.Victims, error)
	ignorable          bool
}

func (spares) Concerns(*model.PodInfo) bool { return true }
func (spares) Preempts() bool               { return true }
func (s spares) Ignorable() bool            { return s.ignorable }
func (s spares) SparePods(_ context.Context, _ *model.PodInfo,
	v map[string]framework.Victims) (map[string]framework.Victims, error) {
	return s.choose(v)
}

// TestExtendersSpareVictims: they may take candidates away, and victims; what they leave is compared as without them.
func TestExtendersSpareVictims(t *testing.T) {
	t.Parallel()
	type victims = map[string]framework.Victims
	low, mid := pod("low", 1, "1", 0), pod("mid", 5, "1", 0)
	broken := func(victims) (victims, error) { return nil, errors.New("gone") }
	for _, c := range []struct {
		name      string
		extenders []framework.Extender
		node      string
		victims   int
		err       bool
	}{
		{"none", nil, "a", 1, false},
		{"takes a candidate away", []framework.Extender{spares{choose: func(v victims) (victims, error) {
			delete(v, "a")
			return v, nil
		}}}, "b", 1, false},
		{"sees no victims", []framework.Extender{spares{choose: func(v victims) (victims, error) {
			v["b"] = framework.Victims{}
			return v, nil
		}}}, "b", 0, false},
		{"gone", []framework.Extender{spares{choose: broken}}, "", 0, true},
		{"gone and ignorable", []framework.Extender{spares{choose: broken, ignorable: true}}, "a", 1, false},
		{"leaves none", []framework.Extender{spares{choose: func(victims) (victims, error) {
			return nil, nil
		}}}, "", 0, true},
	} {
		p, _ := plugin(t, c.extenders...)
		left, st := p.spare(t.Context(), pod("new", 9, "1", 0),
			[]*candidate{{node: "a", victims: list(low)}, {node: "b", victims: list(mid)}})
		if st.IsSuccess() == c.err {
			t.Errorf("%s: %+v", c.name, st)
		}
		if c.err {
			continue
		}
		if best := pick(left); best.node != c.node || len(best.victims) != c.victims {
			t.Errorf("%s: %+v of %v", c.name, best, slices.Collect(func(yield func(string) bool) {
				for _, x := range left {
					yield(x.node)
				}
			}))
		}
	}
}
