package rootless

import (
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
)

// link is the link by which the namespaces reach the machine's network.
const link = "tap0"

// Networks are the programs that can forward the packets of the namespaces, the better one first.
func Networks() []string { return []string{"pasta", "slirp4netns"} }

// networkPrograms returns those that are there.
func networkPrograms() []string {
	return slices.DeleteFunc(Networks(), func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
}

// networkDNS returns the address at which a program answers DNS, by asking the machine's own servers.
func networkDNS(name string) netip.Addr {
	if name == "slirp4netns" {
		return netip.MustParseAddr("10.0.2.3")
	}
	return netip.MustParseAddr("169.254.1.1")
}

// networkArguments returns how to start a program for the network namespace of a process.
//
// Neither lets the namespaces reach the machine's loopback, where services of the user and of others may listen that
// trust it: pasta would map the gateway's address to it, and forward ports of the namespaces' loopback.
func networkArguments(name string, pid int) []string {
	if name == "slirp4netns" {
		return []string{name, "--configure", "--mtu=65520", "--disable-host-loopback", "--enable-sandbox",
			"--enable-seccomp", strconv.Itoa(pid), link}
	}
	return []string{name, "--foreground", "--config-net", "--ipv4-only", "--ns-ifname", link, "--no-map-gw",
		"--dns-forward", networkDNS(name).String(), "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none",
		"--udp-ns", "none", strconv.Itoa(pid)}
}
