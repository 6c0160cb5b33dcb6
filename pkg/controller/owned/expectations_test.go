package owned

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestExpectations(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	seen := ""
	e := NewExpectations(func() time.Time { return now }, func() string { return seen })
	k := types.UID("rs")
	if !e.Satisfied(k) {
		t.Error("an unknown owner waits for nothing")
	}
	e.Expect(k, 2)
	e.Created(k, 1)
	if e.Satisfied(k) {
		t.Error("satisfied with one of two creations seen")
	}
	e.Created(k, 1)
	if !e.Satisfied(k) {
		t.Error("not satisfied with both seen")
	}
	e.Expect(k, 0, "a", "b")
	e.Deleted(k, "a")
	e.Deleted(k, "a")
	if e.Satisfied(k) {
		t.Error("seeing one deletion twice must not count for two")
	}
	e.Deleted(k, types.UID("b"))
	if !e.Satisfied(k) {
		t.Error("not satisfied with both deletions seen")
	}
	e.Expect(k, 1)
	now = now.Add(expectationsTTL + time.Second)
	if !e.Satisfied(k) {
		t.Error("a lost event must not block the owner for ever")
	}
	e.Made(k, "12")
	e.Made(k, "9")
	for version, want := range map[string]bool{"": true, "11": false, "12": true, "20": true} {
		if seen = version; e.Satisfied(k) != want {
			t.Errorf("satisfied by a cache at %q: %t, although a child was made at 12", version, !want)
		}
	}
	if e.Created(k, 1); len(e.all) != 0 {
		t.Errorf("still remembered: %v", e.all)
	}
	e.Made(k, "30") // its event came before the answer
	if seen = "21"; !e.Satisfied(k) {
		t.Error("waits for what was seen")
	}
}
