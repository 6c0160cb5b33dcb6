package netdump

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// TestLists asks the kernel itself.
func TestLists(t *testing.T) {
	t.Parallel()
	links, err := Links()
	if err != nil || len(links) == 0 {
		t.Fatalf("links: %v, %v", links, err)
	}
	for _, link := range []netlink.Link{nil, links[0]} {
		if _, err := Addresses(link, netlink.FAMILY_ALL); err != nil {
			t.Errorf("addresses of %v: %v", link, err)
		}
	}
	for _, filter := range []*netlink.Route{nil, {Table: unix.RT_TABLE_MAIN}} {
		if _, err := Routes(netlink.FAMILY_ALL, filter, 0); err != nil {
			t.Errorf("routes like %v: %v", filter, err)
		}
	}
}
