// Package netdump reads whole lists from the kernel. A list that changes while the kernel sends it comes with
// netlink.ErrDumpInterrupted, and some of it may be missing or there twice; on a machine on which pods come and go,
// that is often.
package netdump

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// tries bounds how often a list is asked for again. One takes some microseconds, so that two changes seldom meet two of
// them.
const tries = 100

// Whole returns what dump does, and calls it again as long as its list was interrupted.
func Whole[T any](dump func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		list, err := dump()
		if err == nil || try == tries || !errors.Is(err, netlink.ErrDumpInterrupted) {
			return list, err
		}
	}
}

// Links are all links.
func Links() ([]netlink.Link, error) { return Whole(netlink.LinkList) }

// Addresses are those of a link, or of all links (nil), of one family.
func Addresses(link netlink.Link, family int) ([]netlink.Addr, error) {
	return Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(link, family) })
}

// Routes are those of one family that are like filter in what mask says (netlink.RT_FILTER_TABLE, …); with nil, those
// of the main table.
func Routes(family int, filter *netlink.Route, mask uint64) ([]netlink.Route, error) {
	if filter == nil {
		filter = &netlink.Route{}
	}
	return Whole(func() ([]netlink.Route, error) { return netlink.RouteListFiltered(family, filter, mask) })
}
