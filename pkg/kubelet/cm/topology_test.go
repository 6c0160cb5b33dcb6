package cm

import (
	"testing"
)

// hints reads "01! 1 -": a set of nodes each, ! preferred, - any.
func hints(text ...string) (out []Hint) {
	for _, s := range text {
		var h Hint
		for _, c := range s {
			switch {
			case c == '!':
				h.Preferred = true
			case c >= '0' && c <= '9':
				h.Nodes |= NodesOf(int(c - '0'))
			}
		}
		out = append(out, h)
	}
	return out
}

func TestMerge(t *testing.T) {
	t.Parallel()
	two := NodesOf(0, 1)
	for name, c := range map[string]struct {
		lists                       [][]Hint
		want                        Nodes
		bestEffort, restricted, one bool
	}{
		"nothing is asked for":   {nil, 0, true, true, true},
		"one resource, one node": {[][]Hint{hints("0!", "1!", "01")}, NodesOf(0), true, true, true},
		"two that meet": {[][]Hint{hints("0!", "1!", "01"), hints("1!", "01")}, NodesOf(1), true,
			true, true},
		"one to which it does not matter": {[][]Hint{hints("1!"), hints("-!")}, NodesOf(1), true, true, true},
		"no node has both": {[][]Hint{hints("0!", "01"), hints("1!", "01")}, NodesOf(0), true, false,
			false},
		"none has enough":                 {[][]Hint{hints("01!")}, 0, true, true, false},
		"enough only where not preferred": {[][]Hint{hints("01")}, 0, true, false, false},
		"there is too little":             {[][]Hint{hints("0!"), {}}, NodesOf(0), true, false, false},
	} {
		for policy, ok := range map[string]bool{"best-effort": c.bestEffort, "restricted": c.restricted,
			"single-numa-node": c.one} {
			got, admitted := Topology{Policy: policy, Nodes: two}.Merge(c.lists)
			if admitted != ok || ok && got != c.want {
				t.Errorf("%s, %s: %b, %v", name, policy, got, admitted)
			}
		}
	}
	far := map[int]map[int]int{}
	for a := range 4 {
		far[a] = map[int]int{}
		for b := range 4 {
			far[a][b] = 30
			if a == b {
				far[a][b] = 10
			}
		}
	}
	far[1][3], far[3][1] = 20, 20
	four := Topology{Policy: "best-effort", Nodes: NodesOf(0, 1, 2, 3), Distances: far}
	pairs := [][]Hint{hints("01!", "13!", "23!")}
	if got, _ := four.Merge(pairs); got != NodesOf(0, 1) {
		t.Errorf("%b", got)
	}
	four.Closest = true
	if got, _ := four.Merge(pairs); got != NodesOf(1, 3) {
		t.Errorf("the closest of two: %b", got)
	}
}

func TestHintsFor(t *testing.T) {
	t.Parallel()
	per := map[int]int{0: 4, 1: 4}
	free := map[int]int{0: 1, 1: 3}
	sum := func(of map[int]int) func(Nodes) int {
		return func(n Nodes) (all int) {
			for _, id := range n.IDs() {
				all += of[id]
			}
			return all
		}
	}
	for request, want := range map[int][]Hint{1: hints("0!", "1!", "01"), 3: hints("1!", "01"), 4: hints("01"), 5: {}} {
		got := HintsFor(NodesOf(0, 1), request, sum(per), sum(free))
		if len(got) != len(want) {
			t.Errorf("%d: %v", request, got)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%d: %v, want %v", request, got, want)
			}
		}
	}
	if got := HintsFor(NodesOf(0, 1), 4, sum(per), sum(map[int]int{0: 2, 1: 2})); len(got) != 1 || got[0].Preferred {
		t.Errorf("two nodes for what one would have had room: %v", got)
	}
}
