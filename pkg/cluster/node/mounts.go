package node

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
)

// mount gives the node its own view of the file system: a root with the parts of the host that it needs (enterRoot),
// fresh /proc, /sys and cgroups of its namespaces, an empty /run, /var/lib and /var/log from its own part of the data
// directory, and the mounts that the user asked for.
//
// It first makes all mounts private, so that nothing it does reaches the host, and at the end shared within the node,
// so that later mounts propagate into containers that ask for that.
//
// Run calls it once, before it starts any process. A failure leaves mounts behind, which go with the mount namespace
// when this init ends.
func (n *Config) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Everything of the host is read or held before the node's root takes its place: afterwards no path leads to it.
	bin, err := hold(n.BinDir)
	if err != nil {
		return fmt.Errorf("hold the binaries: %w", err)
	}
	defer unix.Close(bin)
	data, err := n.holdData()
	if err != nil {
		return err
	}
	defer data.close()
	wished, err := n.holdMounts()
	if err != nil {
		return err
	}
	defer wished.close()
	resolv, err := n.ResolvConf()
	if err != nil {
		return err
	}
	roots, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	// Asked before the steps: afterwards /sys/fs/cgroup is no longer the host's.
	v2 := cgroup.IsUnified()
	// The order matters. mountRun shows the node's part of the data directory below /run, where mountVar takes its
	// sources from. mountVar may hide the binaries, as when they are below /var/lib, so showBinaries follows. The
	// user's mounts come last: they may be at places that any of the steps makes.
	for _, step := range []func() error{n.enterRoot, func() error {
		return n.mountCgroups(v2, roots)
	}, func() error { return n.mountRun(data, resolv) }, n.mountVar,
		func() error { return n.showBinaries(bin) }, wished.show} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("make mounts shared: %w", err)
	}
	return nil
}

// hold returns a copy of the mounts at path, which remains when something is mounted over it, or when the root changes.
// The caller closes it; closing it after it was mounted changes nothing.
func hold(path string) (fd int, err error) {
	return unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.OPEN_TREE_CLOEXEC)
}

// showBinaries mounts the held binaries at their place if something hides them.
func (n *Config) showBinaries(held int) error {
	if host.IsExecutable(filepath.Join(n.BinDir, "kubelet")) {
		return nil
	}
	if err := os.MkdirAll(n.BinDir, 0o755); err != nil {
		return err
	}
	if err := unix.MoveMount(held, "", unix.AT_FDCWD, n.BinDir, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("bind the binaries: %w", err)
	}
	return nil
}

// mountKernel mounts the file systems below root that show the node's own processes and network.
func mountKernel(root string) error {
	for dir, kind := range map[string]string{"proc": "proc", "sys": "sysfs"} {
		if err := unix.Mount(kind, filepath.Join(root, dir), kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
			""); err != nil {
			return fmt.Errorf("mount /%s: %w", dir, err)
		}
	}
	return nil
}

// mountCgroups mounts what shows the node's own cgroups: v2 alone, or the hierarchies that the host has. A node in a
// container has the container's root, and gets its /proc and /sys here, too.
func (n *Config) mountCgroups(v2 bool, roots []string) error {
	if n.Containerized {
		// Its /sys shows the same network, and two of the same are not mounted over each other.
		if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount /sys: %w", err)
		}
		if err := mountKernel("/"); err != nil {
			return err
		}
	}
	if err := mountSecurity(); err != nil {
		return err
	}
	if v2 {
		return mountUnified()
	}
	if err := unix.Mount("tmpfs", cgroup.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", cgroup.Root, err)
	}
	for _, root := range roots {
		if err := mountHierarchy(root); err != nil {
			return err
		}
	}
	return nil
}

// mountSecurity shows the kernel's security modules where container runtimes look for AppArmor. Without it containerd
// would conclude that the machine has none, and run containers unconfined. In a user namespace nobody may mount it, or
// load profiles: containers run without AppArmor, and the kubelet refuses pods that ask for a profile.
func mountSecurity() error {
	const dir = "/sys/kernel/security"
	err := unix.Mount("securityfs", dir, "securityfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	switch {
	case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV): // a kernel without security modules
		return nil
	case errors.Is(err, unix.EPERM) && host.InUserNamespace():
		return nil
	}
	return fmt.Errorf("mount %s: %w", dir, err)
}

// mountHierarchy mounts one v1 hierarchy (or the hybrid's v2 one) where the host has it.
func mountHierarchy(root string) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	kind, options := "cgroup", filepath.Base(root)
	switch options {
	case "unified":
		kind, options = "cgroup2", ""
	case "systemd":
		options = "none,name=systemd"
	}
	if err := unix.Mount("cgroup", root, kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("mount %s: %w", root, err)
	}
	return nil
}

// mountUnified mounts the v2 tree and moves the node's own processes into a leaf, so that the root can hand controllers
// down to the pods' groups: a group that does so may have no processes. That is the no-internal-process rule of the
// kernel's document on cgroup v2. This init is still alone in the group: node.Run has started nothing yet, and its
// children begin in the leaf.
func mountUnified() error {
	if err := unix.Mount("cgroup2", cgroup.Root, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		""); err != nil {
		return fmt.Errorf("mount %s: %w", cgroup.Root, err)
	}
	leaf := filepath.Join(cgroup.Root, "node")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("move the node's processes into a leaf cgroup: %w", err)
	}
	return cgroup.Delegate(cgroup.Root)
}

// mountRun mounts an empty /run that shows what is held of the data directory, and writes the node's /etc/resolv.conf.
// It follows enterRoot, which has made the /etc/resolv.conf that the file is bound over.
func (n *Config) mountRun(data heldData, resolv []byte) error {
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	for _, dir := range []string{"/run/lock", "/run/netns", "/run/containerd", cniConfDir, nodeData} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(nodeData, 0o700), data.show(nodeData)); err != nil {
		return err
	}
	own := plan.Layout(nodeData).Node(n.Name, "etc", "resolv.conf")
	if err := host.WriteFile(own, resolv); err != nil {
		return err
	}
	if err := os.Chmod(own, 0o644); err != nil {
		return err
	}
	if err := unix.Mount(own, "/etc/resolv.conf", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind /etc/resolv.conf: %w", err)
	}
	return nil
}

// nodeData is where a node sees its part of the data directory, besides the data directory's own path.
const nodeData = "/run/bonsai"

// mountVar binds the node's own /var/lib and /var/log, and its part of the data directory at the data directory's
// path.
func (n *Config) mountVar() error {
	for part, target := range map[string]string{"lib": "/var/lib", "log": "/var/log"} {
		source := plan.Layout(nodeData).Node(n.Name, part)
		if err := os.MkdirAll(source, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", target, err)
		}
	}
	if err := os.MkdirAll(n.DataDir, 0o700); err != nil {
		return err
	}
	if err := unix.Mount(nodeData, n.DataDir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", n.DataDir, err)
	}
	return nil
}

// ResolvConf returns the node's resolver configuration. It has the host's search list and options, and the host's
// relay as its server, or a server that leads nowhere if nothing may leave the machine. A container's server is on
// its loopback, where pods cannot reach it: they ask the node. A machine that has joined asks those of its own
// servers that pods can reach. Where it has only a stub on its loopback, systemd keeps the real ones beside it.
func (n *Config) ResolvConf() ([]byte, error) {
	switch {
	case !n.Egress:
		return []byte("nameserver 127.0.0.53\n"), nil
	case n.Containerized:
		return fmt.Appendf(nil, "nameserver %s\n", n.Addresses[0].Addr()), nil
	case n.Joined:
		return joinedResolvConf(n.Gateways, "/run/systemd/resolve/resolv.conf", host.HostResolvConf)
	}
	conf, err := host.ReadResolvConf(host.HostResolvConf)
	if err != nil {
		return nil, err
	}
	return conf.With(n.Gateways[:1]), nil
}

// joinedResolvConf returns the first of the files that names servers, without those on loopback. If none does, the
// server is the relay of the machine that has the control plane. A server on loopback is of no use to pods, whose
// loopback is their own.
func joinedResolvConf(relay []netip.Addr, paths ...string) ([]byte, error) {
	for _, path := range paths {
		conf, err := host.ReadResolvConf(path)
		if err != nil {
			return nil, err
		}
		conf.Servers = slices.DeleteFunc(conf.Servers, netip.Addr.IsLoopback)
		if len(conf.Servers) > 0 {
			return conf.With(conf.Servers), nil
		}
	}
	return host.ResolvConf{}.With(relay[:1]), nil
}
