package fairshare

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTake: each step is SOURCE for one who asks, -SOURCE for the oldest of that source that leaves, or a duration that
// passes. Of it come those who got no place, and those who lost theirs, by their source and their turn.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, steps, refused, lost string }{
		{"room for all", "a b c d", "", ""},
		{"a source has a part", "a a a a", "a4", ""},
		{"who leaves makes room in its part", "a a a -a a", "", ""},
		{"a source with fewer gets the oldest of the one with the most", "a a a b b c", "", "a1"},
		{"and never one more than fair", "a a a b b c c b", "c7 b8", "a1"},
		{"of equals none loses at first", "a b c d e f", "f6", ""},
		{"of equals the oldest loses when it is old", "a 4s b c d e 6s f g", "g7", "a1"},
		{"the young stay", "1s a a a b b 500ms c 500ms c", "c6", "a1"},
		{"who has lost its place leaves nothing", "a a a b b c -a -a d", "", "a1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				young := time.Duration(0)
				if strings.HasPrefix(c.steps, "1s ") {
					young = time.Second
				}
				p := New[string](Config{Most: 5, Part: 3, Young: young, Old: 10 * time.Second})
				var refused, lost []string
				leaves := map[string][]func(){}
				turn := 0
				for step := range strings.FieldsSeq(c.steps) {
					if pause, err := time.ParseDuration(step); err == nil {
						time.Sleep(pause)
						continue
					}
					if source, ok := strings.CutPrefix(step, "-"); ok {
						leaves[source][0]()
						leaves[source] = leaves[source][1:]
						continue
					}
					turn++
					name := step + string(rune('0'+turn))
					leave, ok := p.Take(step, func() { lost = append(lost, name) })
					if !ok {
						refused = append(refused, name)
						continue
					}
					leaves[step] = append(leaves[step], leave)
				}
				if got := strings.Join(refused, " "); got != c.refused {
					t.Errorf("no place for %q, not %q", got, c.refused)
				}
				if got := strings.Join(lost, " "); got != c.lost {
					t.Errorf("%q lost theirs, not %q", got, c.lost)
				}
				for _, of := range leaves {
					for _, leave := range of {
						leave()
					}
				}
				if p.taken != 0 || len(p.by) != 0 {
					t.Errorf("left over: %d, %v", p.taken, p.by)
				}
			})
		})
	}
}

// TestManySources: whatever comes at once, there are never more places than there may be, and in the end none is taken.
func TestManySources(t *testing.T) {
	t.Parallel()
	p := New[int](Config{Most: 8, Part: 3})
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			leave, ok := p.Take(i%16, func() {})
			if !ok {
				return
			}
			p.mu.Lock()
			if p.taken > 8 || len(p.by[i%16]) > 3 {
				t.Errorf("%d places, %d of one source", p.taken, len(p.by[i%16]))
			}
			p.mu.Unlock()
			leave()
		})
	}
	all.Wait()
	if p.taken != 0 || len(p.by) != 0 {
		t.Errorf("left over: %d, %v", p.taken, p.by)
	}
}
