// Package routes keeps the routes to other nodes' pods in the kernel's main table. They have a protocol number of our
// own, so that other routes are not touched.
package routes

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/netdump"
	"bonsai/pkg/network"
)

// protocol marks our routes ("ip route show proto 98"); the number is unassigned in iproute2's rt_protos.
const protocol = 98

// Apply makes u's routes ours and removes the others of ours, in the kernel's main routing table. That is read each
// time, so that what others broke is repaired. Every route is tried; errors are reported together.
func Apply(u network.Update) error {
	have, err := list()
	if err != nil {
		return err
	}
	var errs []error
	for cidr, gw := range have {
		if _, wanted := u.Routes[cidr]; !wanted {
			if err := netlink.RouteDel(route(cidr, gw)); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("delete the route to %s: %w", cidr, err))
			}
		}
	}
	for _, cidr := range slices.SortedFunc(maps.Keys(u.Routes), netip.Prefix.Compare) {
		gw := u.Routes[cidr]
		if have[cidr] == gw {
			continue
		}
		if err := set(cidr, gw, have[cidr]); err != nil {
			errs = append(errs, fmt.Errorf("set the route to %s by %s: %w", cidr, gw, err))
		}
	}
	return errors.Join(errs...)
}

// set leads to cidr by the node gw or, where that is on no network of this one, by the way to it. last is what our
// route leads by now.
func set(cidr netip.Prefix, gw, last netip.Addr) error {
	err := netlink.RouteReplace(route(cidr, gw))
	if !errors.Is(err, unix.ENETUNREACH) {
		return err
	}
	ways, getErr := netlink.RouteGet(gw.AsSlice())
	if getErr != nil || len(ways) == 0 {
		return errors.Join(err, getErr)
	}
	hop, ok := netip.AddrFromSlice(ways[0].Gw)
	if hop = hop.Unmap(); !ok || hop == last {
		return nil
	}
	return netlink.RouteReplace(route(cidr, hop))
}

// Remove deletes all our routes.
func Remove() error { return Apply(network.Update{}) }

// list reads our routes.
func list() (map[netip.Prefix]netip.Addr, error) {
	found, err := netdump.Routes(netlink.FAMILY_ALL, &netlink.Route{Protocol: protocol, Table: unix.RT_TABLE_MAIN},
		netlink.RT_FILTER_PROTOCOL|netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	out := map[netip.Prefix]netip.Addr{}
	for _, r := range found {
		if r.Dst == nil {
			continue
		}
		ip, ok := netip.AddrFromSlice(r.Dst.IP)
		if !ok {
			continue
		}
		ones, _ := r.Dst.Mask.Size()
		gw, _ := netip.AddrFromSlice(r.Gw)
		out[netip.PrefixFrom(ip.Unmap(), ones)] = gw.Unmap()
	}
	return out, nil
}

func route(cidr netip.Prefix, gw netip.Addr) *netlink.Route {
	return &netlink.Route{
		Dst:      &net.IPNet{IP: cidr.Addr().AsSlice(), Mask: net.CIDRMask(cidr.Bits(), cidr.Addr().BitLen())},
		Gw:       gw.AsSlice(),
		Protocol: protocol,
		Table:    unix.RT_TABLE_MAIN,
	}
}
