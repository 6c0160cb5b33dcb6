package netdump

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestWhole(t *testing.T) {
	t.Parallel()
	other := errors.New("no such device")
	for name, c := range map[string]struct {
		interrupted int
		then        error
		want        error
		calls       int
	}{
		"at once":              {0, nil, nil, 1},
		"interrupted":          {3, nil, nil, 4},
		"another error":        {0, other, other, 1},
		"another error later":  {2, other, other, 3},
		"interrupted for good": {tries + 1, nil, netlink.ErrDumpInterrupted, tries},
	} {
		calls := 0
		got, err := Whole(func() (int, error) {
			if calls++; calls <= c.interrupted {
				return -1, netlink.ErrDumpInterrupted
			}
			return calls, c.then
		})
		if !errors.Is(err, c.want) || calls != c.calls || err == nil && got != calls {
			t.Errorf("%s: %d, %v after %d calls", name, got, err, calls)
		}
	}
}
