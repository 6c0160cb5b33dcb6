package rootless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/door"
)

// Begin is the first step inside the namespaces. It waits for the byte on standard input that says that they have their
// IDs, and becomes `self rootless-init PLACE DNS`: a process without an ID has lost its capabilities when it began,
// and gets them by exec when its ID is 0. It returns only with an error.
func Begin(self string, in io.Reader, args []string) error {
	if _, err := io.ReadFull(in, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the IDs: %w", err)
	}
	return unix.Exec(self, append([]string{self, "rootless-init"}, args...), os.Environ())
}

// Init makes the mounts of the namespaces, waits for their network, says so by a byte on out, and holds the namespaces
// until in ends, with the keeper.
func Init(ctx context.Context, outside string, dns netip.Addr, in io.Reader, out io.Writer) error {
	if err := mountAll(place(outside), dns); err != nil {
		return err
	}
	if err := awaitNetwork(ctx); err != nil {
		return err
	}
	if _, err := out.Write([]byte{'\n'}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	return nil
}

// shownRun are the directories of /run that the namespaces show as the machine has them: the user's own, and where some
// distributions have disks and programs. All others are hidden: systemd is none of the cluster's there, and locks,
// network namespaces and sockets of root's programs are not the user's.
var shownRun = [...]string{"user", "media", "current-system"}

// mountAll gives the namespaces a /run, a /sys and a resolver of their own.
func mountAll(p place, dns netip.Addr) error {
	resolver, err := resolverFile("/etc/resolv.conf")
	if err != nil {
		return err
	}
	held := map[string]int{}
	for _, name := range shownRun {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/run/"+name,
			unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.OPEN_TREE_CLOEXEC)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("hold /run/%s: %w", name, err)
		}
		defer unix.Close(fd)
		held[name] = fd
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	for name, fd := range held {
		if err := os.Mkdir("/run/"+name, 0o755); err != nil {
			return err
		}
		if err := unix.MoveMount(fd, "", unix.AT_FDCWD, "/run/"+name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("show /run/%s: %w", name, err)
		}
	}
	if err := os.Symlink(string(p), door.Dir); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("sysfs", "/sys", "sysfs", flags, ""); err != nil {
		return fmt.Errorf("mount /sys: %w", err)
	}
	if err := unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", flags, ""); err != nil {
		return fmt.Errorf("mount /sys/fs/cgroup: %w", err)
	}
	return setResolver(resolver, dns)
}

// resolverFile returns the file that a link such as /etc/resolv.conf leads to, also if it does not exist.
func resolverFile(path string) (string, error) {
	for range 10 { // links that lead to links
		target, err := os.Readlink(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EINVAL) { // no link
			return path, nil
		}
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many links", path)
}

// setResolver has the namespaces ask dns, at the place that /etc/resolv.conf leads to. In the new /run that place is
// made; elsewhere it is hidden by a mount. It keeps the search list and options. A machine without the file has no DNS.
func setResolver(path string, dns netip.Addr) error {
	conf, err := host.ReadResolvConf(path)
	if err != nil {
		return err
	}
	text := conf.With([]netip.Addr{dns})
	if strings.HasPrefix(path, "/run/") && !host.IsBelow(path, []string{"/run/user"}) {
		return host.WritePublic(path, text)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	const own = "/run/bonsai-resolv.conf"
	if err := host.WritePublic(own, text); err != nil {
		return err
	}
	if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", path, err)
	}
	return nil
}

// awaitNetwork sets the loopback link up, and returns when another link has an address.
func awaitNetwork(ctx context.Context) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	err = host.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		tap, err := netlink.LinkByName(link)
		if err != nil {
			return false, nil
		}
		addresses, err := netlink.AddrList(tap, netlink.FAMILY_V4)
		return len(addresses) > 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for the network of the namespaces: %w", err)
	}
	return nil
}
