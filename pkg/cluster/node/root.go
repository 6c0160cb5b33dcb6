package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// A node's root directory is its own, kept in the data directory. It shows three parts of the host: the directories of
// programs and what these need of /etc, both read-only, and the devices. Everything else there is the node's. So a pod
// with a hostPath volume sees the node, and no file of the host's users.

// systemDirs are where the host has programs and libraries: directories, or links into /usr.
var systemDirs = [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// hostConfig is the part of the host's /etc that programs need and that is no secret of the host's users. Directories
// are shown, files are copied.
var hostConfig = [...]string{"alternatives", "ssl", "ca-certificates", "pki", "modprobe.d", "apparmor", "apparmor.d",
	"iproute2", "containerd/certs.d",
	"ld.so.cache", "ld.so.conf", "nsswitch.conf", "protocols", "services", "rpc", "netconfig", "localtime",
	"mke2fs.conf", "os-release"}

// nodePrograms are the programs of others that a node starts, bundled or the host's. They may be outside of systemDirs,
// as below /opt.
var nodePrograms = [...]string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "crun", "nft", "iptables", "ip",
	"mount", "umount", "apparmor_parser"}

// enterRoot makes the node's root and moves into it. The caller holds what it still needs of the host. A node in a
// container has the container's root.
//
// It repeats itself at each start of the node: the directories and files persist in the data directory, and the mounts
// are new, since each start has a mount namespace of its own. MNT_DETACH takes the old root away with all mounts below
// it. A plain unmount fails while there are any.
func (n *Config) enterRoot() error {
	if n.Containerized {
		return nil
	}
	root := plan.Layout(n.DataDir).Node(n.Name, "root")
	for _, dir := range []string{"proc", "sys", "dev", "run", "etc", "home", "media", "mnt", "opt", "srv", "var/lib",
		"var/log", "var/cache"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	for dir, mode := range map[string]os.FileMode{"root": 0o700, "tmp": 0o777 | os.ModeSticky,
		"var/tmp": 0o777 | os.ModeSticky} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, dir), 0o755),
			os.Chmod(filepath.Join(root, dir), mode)); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"var/run": "/run", "var/lock": "/run/lock"} {
		if err := host.MakeLink(target, filepath.Join(root, link)); err != nil {
			return err
		}
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil { // pivot_root(2) wants a mount
		return fmt.Errorf("bind the node's root: %w", err)
	}
	if err := n.showSystem(root); err != nil {
		return err
	}
	if err := n.fillEtc(filepath.Join(root, "etc")); err != nil {
		return fmt.Errorf("make the node's /etc: %w", err)
	}
	if err := showDevices(filepath.Join(root, "dev")); err != nil {
		return err
	}
	// In a user namespace the kernel mounts these only while others of their kind are visible.
	if err := mountKernel(root); err != nil {
		return err
	}
	const old = "/.host"
	if err := os.MkdirAll(root+old, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, root+old); err != nil {
		return fmt.Errorf("enter the node's root: %w", err)
	}
	if err := errors.Join(os.Chdir("/"), unix.Unmount(old, unix.MNT_DETACH)); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	return os.Remove(old)
}

// showSystem shows the directories of the host's programs at their places below root. A missing program is no error
// here: the component that needs it reports it.
func (n *Config) showSystem(root string) error {
	// The array is full, so append copies it and never writes into it.
	shown := systemDirs[:]
	for _, program := range nodePrograms {
		found, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		if found, err = filepath.EvalSymlinks(found); err != nil {
			return err
		}
		if dir := filepath.Dir(found); !host.IsBelow(dir, shown) {
			shown = append(shown, dir)
		}
	}
	for _, dir := range shown {
		if err := showReadOnly(dir, root+dir); err != nil {
			return err
		}
	}
	return nil
}

// showReadOnly gives to the same as the host has at from: a link with the same target, a directory that is read-only,
// or nothing.
func showReadOnly(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return host.MakeLink(target, to)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show %s: %w", from, err)
	}
	return makeReadOnly(to)
}

// makeReadOnly changes a mount to a read-only one: a bind mount ignores MS_RDONLY when it is made (mount(2)). It keeps
// the mount's other flags, which nobody in a user namespace may take away.
func makeReadOnly(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY)
	for is, flag := range map[int64]uintptr{unix.ST_NOSUID: unix.MS_NOSUID, unix.ST_NODEV: unix.MS_NODEV,
		unix.ST_NOEXEC: unix.MS_NOEXEC} {
		if int64(fs.Flags)&is != 0 {
			flags |= flag
		}
	}
	if err := unix.Mount("", path, "", flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	return nil
}

// fillEtc writes the node's /etc: what it has of the host's, and its own files. Other files there stay. The machine ID
// follows from the cluster and the node's name, so that it differs between nodes and stays the same for each.
//
// It copies files at each start, so that a node follows changes of the host's files only when it starts again.
// Directories are bind mounts, and show changes at once.
func (n *Config) fillEtc(etc string) error {
	for _, name := range hostConfig {
		from, to := filepath.Join("/etc", name), filepath.Join(etc, name)
		info, err := os.Stat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := showReadOnly(from, to); err != nil {
				return err
			}
			continue
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := host.WritePublic(to, data); err != nil {
			return err
		}
	}
	id := sha256.Sum256([]byte(n.Mark + "/" + n.Name))
	for name, text := range map[string]string{
		"hostname": n.Name + "\n",
		"hosts": fmt.Sprintf("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n%s\t%s\n",
			n.Addresses[0].Addr(), n.Name),
		"machine-id":  hex.EncodeToString(id[:16]) + "\n",
		"passwd":      "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"group":       "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n",
		"resolv.conf": "", // mountRun shows another one here
	} {
		if err := host.WritePublic(filepath.Join(etc, name), []byte(text)); err != nil {
			return err
		}
	}
	return host.MakeLink("/proc/self/mounts", filepath.Join(etc, "mtab"))
}

// showDevices shows the host's devices at dev, with the node's own shared memory.
func showDevices(dev string) error {
	if err := unix.Mount("/dev", dev, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show the devices: %w", err)
	}
	// A machine without /dev/shm has none for its nodes either.
	if err := unix.Mount("tmpfs", filepath.Join(dev, "shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
		"mode=1777"); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("mount /dev/shm: %w", err)
	}
	return nil
}
