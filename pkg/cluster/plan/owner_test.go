package plan

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestMark(t *testing.T) {
	t.Parallel()
	a, b := Default("/var/lib/a", ""), Default("/var/lib/b", "")
	if a.Mark() == b.Mark() || a.ID() == 0 {
		t.Errorf("%s and %s", a.Mark(), b.Mark())
	}
	if got := a.Mark(); len(got) > unix.IFNAMSIZ-1 || MarkIn("0::/"+got+"/n1/kubepods") != got ||
		MarkOf(a.ID()) != got {
		t.Errorf("%s", got)
	}
	if got := MarkIn("0::/user.slice/bonsai-x"); got != "" {
		t.Errorf("not a mark: %s", got)
	}
}
