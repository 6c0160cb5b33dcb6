package deployment

import (
	"testing"

	"bonsai/pkg/controller"
)

// TestWritten: a Deployment waits until the cache has its last write, whichever came first, and no other waits for it.
func TestWritten(t *testing.T) {
	t.Parallel()
	w := written{versions: map[controller.Key]string{}}
	web, other := controller.Key{Namespace: "ns", Name: "web"}, controller.Key{Namespace: "ns", Name: "other"}
	w.remember(web, "12")
	w.remember(web, "10")
	for _, c := range []struct {
		key  controller.Key
		seen string
		want bool
	}{{web, "9", false}, {web, "11", false}, {other, "9", true}, {web, "12", true}, {web, "9", true}} {
		if got := w.caughtUp(c.key, c.seen); got != c.want {
			t.Errorf("%s, seen up to %s: %v", c.key, c.seen, got)
		}
	}
	w.remember(web, "20")
	w.forget(web)
	if !w.caughtUp(web, "15") || len(w.versions) > 0 {
		t.Errorf("what is gone is remembered: %v", w.versions)
	}
}
