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
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/netdump"
)

// machine looks for everything that the cluster could collide with. It touches nothing.
func survey(c plan.Config, home Home) (plan.Machine, error) {
	m := plan.Machine{Contexts: map[string]string{}, PortOwner: func(at netip.AddrPort) string {
		return portOwner(at, c.Mark())
	}, UDPTaken: udpTaken}
	all, err := home.Clusters()
	if err != nil {
		return m, err
	}
	for _, other := range all {
		if other.DataDir != c.DataDir {
			m.Clusters = append(m.Clusters, other)
		}
	}
	k, err := kubeconfig.User()
	if err != nil {
		return m, err
	}
	for name, context := range k.Contexts {
		m.Contexts[name] = kubeconfig.OwnerOf(context)
	}
	m.Networks, err = hostNetworks(c)
	return m, err
}

// hostAddresses lists the addresses of this machine.
func hostAddresses() (all []netip.Addr, err error) {
	has, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	for _, a := range has {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				all = append(all, ip.Unmap())
			}
		}
	}
	return all, nil
}

// foreignAddresses says which of the addresses that the cluster is to listen at are not this machine's.
func foreignAddresses(c plan.Config) []error {
	has, err := hostAddresses()
	if err != nil {
		return []error{err}
	}
	wanted := map[string]netip.Addr{"--advertise-address": c.AdvertiseAddress}
	for _, m := range c.PortMappings {
		wanted["the port mapping of "+m.Listens().String()] = m.Address
	}
	var foreign []error
	for by, ip := range wanted {
		// which it makes itself
		if ip.IsValid() && !ip.IsUnspecified() && !ip.IsLoopback() && !c.NodeSubnet.Contains(ip) &&
			!slices.Contains(has, ip.Unmap()) {
			foreign = append(foreign, fmt.Errorf("%s: %s is no address of this machine", by, ip))
		}
	}
	return foreign
}

// hostNetworks lists the addresses of the host and the routes of its main table, except what carries the cluster's own
// mark.
func hostNetworks(c plan.Config) ([]plan.HostNetwork, error) {
	links, err := netdump.Links()
	if err != nil {
		return nil, fmt.Errorf("list the links: %w", err)
	}
	byIndex := map[int]netlink.Link{}
	for _, l := range links {
		byIndex[l.Attrs().Index] = l
	}
	own := linkNamed(links, c.Mark())
	var found []plan.HostNetwork
	addresses, err := netdump.Addresses(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	for _, a := range addresses {
		link := byIndex[a.LinkIndex]
		if ip, ok := netip.AddrFromSlice(a.IP); ok && (link == nil || link != own) {
			ip = ip.Unmap()
			found = append(found, plan.HostNetwork{
				Prefix: netip.PrefixFrom(ip, ip.BitLen()),
				Claim:  plan.Claim{What: "the address " + a.IPNet.String(), By: linkOwner(links, link)},
			})
		}
	}
	routes, err := netdump.Routes(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN},
		netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list the routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		dst, err := netip.ParsePrefix(r.Dst.String())
		if err != nil {
			continue
		}
		by, link := "a route of this machine", byIndex[r.LinkIndex]
		if link == nil && len(r.MultiPath) > 0 { // the balancers' has a next hop per node, all over one link
			link = byIndex[r.MultiPath[0].LinkIndex]
		}
		if link == nil {
			link = linkNamed(links, plan.MarkOf(uint32(r.Priority)))
		}
		if link != nil {
			by = linkOwner(links, link)
		}
		if uint32(r.Priority) != c.ID() && (link == nil || link != own) {
			found = append(found, plan.HostNetwork{Prefix: dst,
				Claim: plan.Claim{What: "the route to " + dst.String(), By: by}})
		}
	}
	return found, nil
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
	if mark := plan.MarkIn(l.Attrs().Name); mark != "" {
		return clusterMarked(links, mark)
	}
	return "the link " + l.Attrs().Name
}

// clusterMarked names the cluster with a mark by its data directory, which its link tells.
func clusterMarked(links []netlink.Link, mark string) string {
	if l := linkNamed(links, mark); l != nil && l.Attrs().Alias != "" {
		return plan.DescribeCluster(l.Attrs().Alias)
	}
	return "the cluster marked " + mark
}

// portOwner names who listens at an address and TCP port: a cluster by its mark in the process's cgroup, or else the
// process. It is "" if that is free or held by what carries the mark own.
func portOwner(at netip.AddrPort, own string) string {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(dyingTime); ; <-again.C {
		l, err := net.Listen("tcp", at.String())
		if err == nil {
			l.Close()
			return ""
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return ""
		}
		if by, found := listenerOf(at, own); found {
			return by
		}
		if time.Now().After(end) {
			return "another process"
		}
	}
}

// dyingTime is how long a port may have no process that is seen to hold it: one that was killed a moment ago shows its
// sockets no more, and has them still.
const dyingTime = 2 * time.Second

// listenerOf is portOwner of a port that somebody has; found is false if no process shows that it does.
func listenerOf(at netip.AddrPort, own string) (by string, found bool) {
	inodes := listeners(int(at.Port()))
	sockets, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return "", false
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
		if mark := plan.MarkIn(strings.ReplaceAll(string(cgroups), "\n", "/")); mark == own {
			return "", true
		} else if mark != "" {
			if links, err := netdump.Links(); err == nil {
				return clusterMarked(links, mark), true
			}
		}
		return fmt.Sprintf("process %d (%s)", pid, host.ProcessName(pid)), true
	}
	return "", false
}

// udpTaken reports whether somebody has a port of UDP. The cluster itself has none when this is asked.
func udpTaken(at netip.AddrPort) bool {
	socket, err := net.ListenPacket("udp", at.String())
	if err == nil {
		socket.Close()
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

// listeners returns the sockets, as links in /proc/*/fd name them, that listen on a port: the inodes in proc_net(5)'s
// tables of the network namespace that this thread is in.
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
