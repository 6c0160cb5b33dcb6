package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/supervise"
)

// member is one control plane: etcd, API server, controller manager and scheduler. The only one is in the host's namespaces. Of several,
// each has a host's name and a network namespace of its own on the node network, and the host has a balancer before their API servers.
type member struct {
	number int // 1 to maxControlPlanes; 0 is the only one
	mark   string
	// addresses are its host's on the node networks. Its API server listens at the first, everything else of it at local.
	addresses []netip.Addr
	local     string
}

func (m member) address() netip.Addr { return m.addresses[0] }

// maxControlPlanes is how many control planes a highly available cluster has: etcd serves on while one of three is missing.
const maxControlPlanes = 3

// highlyAvailable tells whether there are several control planes.
func (c Config) highlyAvailable() bool { return c.ControlPlanes > 1 }

// members are the cluster's control planes.
func (c Config) members() []member {
	if c.Joined != nil {
		return nil // they are on another machine
	}
	if !c.highlyAvailable() {
		return []member{{mark: c.mark(), addresses: c.HostIPs(), local: loopback}}
	}
	var all []member
	for i := 1; i <= c.ControlPlanes; i++ {
		all = append(all, member{number: i, mark: c.mark(), addresses: addresses(c.NodeSubnets(), 1+i), local: loopback})
	}
	return all
}

// name is the host's name of one of several, and ends the names of what belongs to it; "" for the only one.
func (m member) name() string {
	if m.number == 0 {
		return ""
	}
	return "cp" + strconv.Itoa(m.number)
}

// of is the name of the member's own thing: "etcd", or of one of several "etcd-cp1".
func (m member) of(thing string) string {
	if m.number == 0 {
		return thing
	}
	return thing + "-" + m.name()
}

// namespace is the name of the network namespace of one of several.
func (m member) namespace() string { return m.mark + "-" + m.name() }

// networksDir has a mount for each network namespace that has a name (ip-netns(8)).
const networksDir = "/run/netns/"

// hostNamespace is the name that the host's network namespace gets where there are several control planes.
func (c Config) hostNamespace() string { return c.mark() + "-host" }

// localNetworks are the network namespaces of this machine's control plane, by their files: the host's and those of several members. Their API
// servers connect to no address in them on behalf of pods, Services and APIServices; each would see those of its own alone.
func (c Config) localNetworks() []string {
	if !c.highlyAvailable() {
		return nil
	}
	files := []string{networksDir + c.hostNamespace()}
	for _, m := range c.members() {
		files = append(files, networksDir+m.namespace())
	}
	return files
}

// inside returns p as it runs in the member's namespaces.
func (m member) inside(self string, p supervise.Process) supervise.Process {
	if m.number == 0 {
		return p
	}
	p.Argv = append([]string{self, "member-enter", m.namespace(), m.name(), "--"}, p.Argv...)
	p.Attr.Cloneflags |= syscall.CLONE_NEWUTS
	p.Started = func(int) error { return nil } // gives it a line to the supervisor
	return p
}

// EnterMember moves this process into the network namespace of a control plane, gives the host a name, and becomes the program argv. Its
// UTS namespace must be its own. Standard input is the line to the supervisor, as that of EnterNode. It returns only with an error.
func EnterMember(namespace, hostname string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("no program is given")
	}
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the supervisor: %w", err)
	}
	runtime.LockOSThread() // until exec makes this thread the process
	ns, err := os.Open(networksDir + namespace)
	if err != nil {
		return fmt.Errorf("enter the network of %s: %w", hostname, err)
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network of %s: %w", hostname, err)
	}
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("name the host %s: %w", hostname, err)
	}
	if err := host.DieWithParent(os.Stdin); err != nil {
		return err
	}
	return unix.Exec(argv[0], argv, os.Environ())
}
