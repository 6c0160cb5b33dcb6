package rootless

import (
	"errors"
	"net/netip"
	"os/exec"
	"strconv"
)

// link is the link by which the namespaces reach the machine's network.
const link = "tap0"

// Networks are the programs that can forward the packets of the namespaces, the better one first.
func Networks() []string { return []string{"pasta", "slirp4netns"} }

// networkProgram returns the one that is there.
func networkProgram() (string, error) {
	for _, name := range Networks() {
		if _, err := exec.LookPath(name); err == nil {
			return name, nil
		}
	}
	return "", errors.New("neither pasta nor slirp4netns is there")
}

// networkArguments returns how to start a program for the network namespace of a process, and the address at which it
// answers DNS for the machine's own servers.
//
// Neither lets the namespaces reach the machine's loopback, where services of the user and of others may listen that
// trust it: pasta would map the gateway's address to it, and forward ports of the namespaces' loopback.
func networkArguments(name string, pid int) (argv []string, dns netip.Addr) {
	if name == "slirp4netns" {
		return []string{name, "--configure", "--mtu=65520", "--disable-host-loopback", "--enable-sandbox",
			"--enable-seccomp", strconv.Itoa(pid), link}, netip.MustParseAddr("10.0.2.3")
	}
	const relay = "169.254.1.1"
	return []string{name, "--foreground", "--config-net", "--ipv4-only", "--ns-ifname", link, "--no-map-gw",
		"--dns-forward", relay, "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none",
		strconv.Itoa(pid)}, netip.MustParseAddr(relay)
}
