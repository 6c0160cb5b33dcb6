package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// claim is something that this cluster needs and somebody else has.
type claim struct {
	what string // "the address 10.77.0.1/24", …
	by   string // "the cluster in /var/lib/bonsai", "process 12 (etcd)", …
}

// checkFree looks whether the ports and addresses that the cluster needs are free. It touches nothing. What this cluster's own
// earlier life held must be gone already (endEarlierLife).
func (c Config) checkFree() error {
	addresses, err := c.takenAddresses()
	if err != nil {
		return err
	}
	return describeClaims(append(addresses, c.takenPorts()...))
}

// describeClaims makes one error per owner that names all it has.
func describeClaims(claims []claim) error {
	var owners []string
	things := map[string][]string{}
	for _, t := range claims {
		if things[t.by] == nil {
			owners = append(owners, t.by)
		}
		if !slices.Contains(things[t.by], t.what) {
			things[t.by] = append(things[t.by], t.what)
		}
	}
	var errs []error
	for _, by := range owners {
		errs = append(errs, fmt.Errorf("taken by %s: %s", by, strings.Join(things[by], ", ")))
	}
	return errors.Join(errs...)
}

// takenAddresses finds addresses of the host inside the cluster's networks, and routes that would lead packets for them
// elsewhere. A wider route, such as a VPN's 10.0.0.0/8, is no hindrance: the cluster's own are more specific.
func (c Config) takenAddresses() ([]claim, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the links: %w", err)
	}
	byIndex := map[int]netlink.Link{}
	for _, l := range links {
		byIndex[l.Attrs().Index] = l
	}
	var found []claim
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && c.within(netip.PrefixFrom(ip, 32)) {
			found = append(found, claim{"the address " + a.IPNet.String(), linkOwner(links, byIndex[a.LinkIndex])})
		}
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list the routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		dst, err := netip.ParsePrefix(r.Dst.String())
		if err != nil || !c.within(dst) {
			continue
		}
		by := "a route of this machine"
		if l := byIndex[r.LinkIndex]; l != nil {
			by = linkOwner(links, l)
		} else if l := linkNamed(links, markOf(uint32(r.Priority))); l != nil {
			by = linkOwner(links, l)
		}
		found = append(found, claim{"the route to " + dst.String(), by})
	}
	return found, nil
}

// within tells whether p is a part of one of the cluster's networks.
func (c Config) within(p netip.Prefix) bool {
	for _, subnet := range []netip.Prefix{c.NodeSubnet, c.PodSubnet, c.ServiceSubnet} {
		if subnet.Contains(p.Addr()) && p.Bits() >= subnet.Bits() {
			return true
		}
	}
	return false
}

func linkNamed(links []netlink.Link, name string) netlink.Link {
	for _, l := range links {
		if l.Attrs().Name == name {
			return l
		}
	}
	return nil
}

// linkOwner names the cluster that a link belongs to, or else the link.
func linkOwner(links []netlink.Link, l netlink.Link) string {
	if l == nil {
		return "this machine"
	}
	if mark := markIn(l.Attrs().Name); mark != "" {
		return clusterMarked(links, mark)
	}
	return "the link " + l.Attrs().Name
}

// clusterMarked names the cluster with a mark by its data directory, which its link tells.
func clusterMarked(links []netlink.Link, mark string) string {
	if l := linkNamed(links, mark); l != nil && l.Attrs().Alias != "" {
		return fmt.Sprintf("the cluster in %[1]s (bonsai --data-dir %[1]s down ends it)", l.Attrs().Alias)
	}
	return "the cluster marked " + mark
}

// ownerAlias is the data directory, cut to what the kernel takes as a link's alias.
func ownerAlias(dataDir string) string {
	const most = 255 // IFALIASZ with its end
	return dataDir[:min(len(dataDir), most)]
}

// takenPorts finds ports of the control plane on which somebody else listens.
func (c Config) takenPorts() []claim {
	var found []claim
	for _, port := range c.hostPorts() {
		address := net.JoinHostPort(loopback, strconv.Itoa(port))
		l, err := net.Listen("tcp4", address)
		if err == nil {
			l.Close()
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			found = append(found, claim{"the port " + address, portOwner(port)})
		}
	}
	return found
}

// portOwner names who listens on a TCP port: a cluster by its mark in the process's cgroup, or else the process.
func portOwner(port int) string {
	inodes := listeners(port)
	sockets, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return "another process"
	}
	for _, fd := range sockets {
		if target, err := os.Readlink(fd); err != nil || !inodes[target] {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err != nil {
			continue
		}
		cgroups, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup") // without it, it is no cluster's
		if mark := markIn(strings.ReplaceAll(string(cgroups), "\n", "/")); mark != "" {
			if links, err := netlink.LinkList(); err == nil {
				return clusterMarked(links, mark)
			}
		}
		return fmt.Sprintf("process %d (%s)", pid, processName(pid))
	}
	return "another process"
}

// listeners returns the sockets, as links in /proc/*/fd name them, that listen on a port: the inodes in proc_net(5)'s tables of the network namespace that this thread is in.
func listeners(port int) map[string]bool {
	const listening = "0A"
	found := map[string]bool{}
	for _, table := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) > 9 && fields[3] == listening && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				found["socket:["+fields[9]+"]"] = true
			}
		}
		f.Close()
	}
	return found
}
