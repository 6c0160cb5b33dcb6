package devices

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/kubelet/cm"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	free := map[string]cm.Nodes{"a0": cm.NodesOf(0), "b1": cm.NodesOf(1), "c": 0, "d1": cm.NodesOf(1),
		"e01": cm.NodesOf(0, 1)}
	for name, c := range map[string]struct {
		w       wanted
		prefers string
		want    string
	}{
		"by id":                           {wanted{count: 2, free: free}, "", "a0,b1"},
		"near":                            {wanted{count: 2, free: free, near: cm.NodesOf(1)}, "", "b1,d1"},
		"near, then where it matters not": {wanted{count: 4, free: free, near: cm.NodesOf(1)}, "", "b1,c,d1,e01"},
		"far at last":                     {wanted{count: 5, free: free, near: cm.NodesOf(1)}, "", "a0,b1,c,d1,e01"},
		"too many":                        {wanted{count: 6, free: free}, "", "none"},
		"preferred":                       {wanted{count: 2, free: free}, "d1,c", "c,d1"},
		"preferred, too few":              {wanted{count: 2, free: free}, "d1", "a0,d1"},
		"preferred, none of them":         {wanted{count: 2, free: free}, "x,y,z", "a0,b1"},
		"preferred, but not near":         {wanted{count: 1, free: free, near: cm.NodesOf(1)}, "a0,d1", "d1"},
		"again": {wanted{count: 2, free: free, again: map[string]bool{"z": true}}, "",
			"a0,z"},
		"again, more than wanted": {wanted{count: 1, free: free, again: map[string]bool{"y": true, "z": true}},
			"z", "z"},
	} {
		got, ok := choose(c.w, func(available, must []string, count int) []string {
			return strings.Split(c.prefers, ",")
		})
		if text := strings.Join(got, ","); text != c.want && (ok || c.want != "none") {
			t.Errorf("%s: %s, %v, want %s", name, text, ok, c.want)
		}
	}
}

// Whatever a plug-in says it prefers: as many as wanted, each once, and only such that can be had.
func TestChooseAnyAnswer(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		w := wanted{free: map[string]cm.Nodes{}, again: map[string]bool{}, near: cm.Nodes(r.IntN(4))}
		for id := range strings.SplitSeq("abcdefgh", "") {
			switch r.IntN(3) {
			case 0:
				w.free[id] = cm.Nodes(r.IntN(4))
			case 1:
				w.again[id] = true
			}
		}
		w.count = r.IntN(9)
		got, ok := choose(w, func(available, must []string, count int) (out []string) {
			for range r.IntN(12) {
				out = append(out, string(rune('a'+r.IntN(9))))
			}
			return out
		})
		if ok != (w.count <= len(w.free)+len(w.again)) {
			t.Fatalf("%+v: %v", w, ok)
		}
		if !ok {
			continue
		}
		once := slices.Compact(slices.Clone(got))
		if len(got) != w.count || len(once) != len(got) {
			t.Fatalf("%+v: %v", w, got)
		}
		again := slices.Collect(maps.Keys(w.again))
		for _, id := range got {
			if _, free := w.free[id]; !free && !w.again[id] {
				t.Fatalf("%+v: %v", w, got)
			}
			again = slices.DeleteFunc(again, func(a string) bool { return a == id })
		}
		if len(again) > 0 && len(got) > len(w.again) {
			t.Fatalf("%+v: %v leaves those of before", w, got)
		}
	}
}
