package model

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// TestLabelIndexLosesNoMatch runs random selectors against random labels: every selector that matches is a candidate,
// once.
func TestLabelIndexLosesNoMatch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	part := func() string {
		return one("a=", "a=1", "b=1", "b=2", "a in (1,2)", "b in (1,3)", "a", "c", "!a", "!c", "a!=1", "b notin (1,2)",
			"c=3")
	}
	x, known := LabelIndex[int]{}, map[int]labels.Selector{}
	candidates := 0
	for i := range 1000 {
		if i%3 == 2 {
			gone := r.IntN(i)
			if sel, ok := known[gone]; ok {
				x.Remove(sel, gone)
				delete(known, gone)
			}
			continue
		}
		text := part()
		for r.IntN(2) == 0 {
			text += "," + part()
		}
		sel, err := labels.Parse(one(text, text, text, ""))
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(20) == 0 {
			sel = labels.Nothing()
		}
		x.Add(sel, i)
		known[i] = sel
		set := labels.Set{}
		for _, key := range []string{"a", "b", "c"} {
			if r.IntN(3) > 0 {
				set[key] = one("", "1", "2", "3")
			}
		}
		got := map[int]int{}
		x.Candidates(set, func(v int) { got[v]++ })
		candidates += len(got)
		for v, sel := range known {
			if sel.Matches(set) && got[v] != 1 {
				t.Fatalf("selector %q matches %v and is offered %d times", sel, set, got[v])
			}
		}
		for v, n := range got {
			if known[v] == nil || n != 1 {
				t.Fatalf("%d, which is gone: %v, is offered %d times", v, known[v] == nil, n)
			}
		}
	}
	if candidates == 0 {
		t.Error("nothing was offered")
	}
}
