package containerized

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
)

// EnterNode is the first step of a node in a container. If the container sees its cgroups among the machine's, they
// become the roots of a new cgroup namespace, so that nodes beside each other may have groups of the same names. It
// returns only with an error.
func EnterNode(self, path string) error {
	runtime.LockOSThread() // until exec makes this thread the process
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make a cgroup namespace (is the container privileged?): %w", err)
	}
	return unix.Exec(self, []string{self, "node-init", path}, os.Environ())
}

// EnterRouted gives this container a route to the pods, which leads over all nodes: each forwards packets to the pods
// of the others. It then becomes the user of control planes, who may not change the route, and the program argv. It
// returns only with an error.
func EnterRouted(pods netip.Prefix, nodes []netip.Addr, argv []string) error {
	if len(argv) == 0 || len(nodes) == 0 {
		return errors.New("a program and a node are needed")
	}
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("find eth0: %w", err)
	}
	route := &netlink.Route{Dst: host.IPNet(pods)}
	for _, node := range nodes {
		route.MultiPath = append(route.MultiPath,
			&netlink.NexthopInfo{LinkIndex: link.Attrs().Index, Gw: node.AsSlice()})
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("add the route to the pods: %w", err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	// The groups come first: without the capabilities, which the change of the user takes away, they could not be
	// changed.
	for _, step := range []func() error{
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setgid(controlPlaneUser) },
		func() error { return syscall.Setuid(controlPlaneUser) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("become the user %d: %w", controlPlaneUser, err)
		}
	}
	return unix.Exec(path, argv, os.Environ())
}
