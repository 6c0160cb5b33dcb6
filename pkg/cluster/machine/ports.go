package machine

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/door"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/netdump"
)

// portOwner names the owner of a TCP port that something listens at: a cluster, by its mark in the process's cgroup, or
// else the process. It returns "" if the port is free, or if its process carries the mark own.
func portOwner(at netip.AddrPort, own string) string {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(dyingTime); ; <-again.C {
		// Listening is the sure test: a dying process still has its sockets, and no longer shows them in /proc.
		l, err := net.Listen("tcp", at.String())
		if err == nil {
			l.Close()
			return outsideOwner(at)
		}
		if !errors.Is(err, syscall.EADDRINUSE) { // such as an address that the cluster itself will add
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

// outsideOwner says that something outside of a user's namespaces has a port. It returns "" where there is no outside.
func outsideOwner(at netip.AddrPort) string {
	network := "tcp4"
	if at.Addr().Is6() {
		network = "tcp6"
	}
	l, err := door.Listen(network, at.String())
	if err == nil {
		l.Close()
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return "another process of the machine"
	}
	return ""
}

// dyingTime is how long a port may be taken without a process that shows it: a process that was killed a moment ago no
// longer shows its sockets, and still has them.
const dyingTime = 2 * time.Second

// listenerOf is portOwner for a port that is taken. found is false if no process shows the socket. It reads the
// descriptors of all processes, which is slow; so it is asked only about a port that is taken.
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
		// a process that has ended belongs to no cluster
		cgroups, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
		// All processes of a cluster are in groups below one that is named after its mark. The lines of the file become
		// one path, in which MarkIn looks for it.
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

// udpTaken reports whether a UDP port is taken. The cluster itself has none before its start, when this is asked.
func udpTaken(at netip.AddrPort) bool {
	socket, err := door.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err == nil {
		socket.Close()
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

// listeners returns the sockets that listen on a port, in the form of the links in /proc/*/fd: from the inodes in
// proc_net(5)'s tables of the network namespace that this thread is in.
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
