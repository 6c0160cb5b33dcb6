package vm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// installed are the packages that a machine has beside the smallest Debian: a kernel, and what a cluster and its tests
// need, as a user would install it.
var installed = []string{"systemd-sysv", "udev", "dbus", "libpam-systemd", "kmod", "linux-image-amd64",
	"initramfs-tools", "containerd", "runc", "containernetworking-plugins", "nftables", "iptables", "conntrack",
	"iproute2", "procps", "openssh-server", "busybox-static", "apparmor", "ca-certificates", "mount", "util-linux",
	"socat", "dmsetup", "e2fsprogs", "passwd", "hostname", "mawk"}

// downloaded are packages that some tests install, or people who try something by hand. A machine reaches no mirror, so
// apt's cache in the image has them, with what they depend on.
var downloaded = []string{"firewalld", "ufw", "docker.io", "uidmap", "slirp4netns", "passt",
	"fuse-overlayfs", "crun"}

// diskSize is that of a machine's disk, in bytes. The file is sparse.
const diskSize = 16 << 30

// Image is a machine that was never started: its kernel and its disk, as files in Dir.
type Image struct{ Dir string }

func (i Image) kernel() string { return filepath.Join(i.Dir, "vmlinuz") }
func (i Image) initrd() string { return filepath.Join(i.Dir, "initrd.img") }
func (i Image) disk() string   { return filepath.Join(i.Dir, "disk.raw") }
func (i Image) key() string    { return filepath.Join(i.Dir, "key") } // the private key of root's ssh

// files are those of a machine that the packages do not have. eth0 is qemu's own network, where this machine is
// 10.0.2.2. eth1, on machines that have it, is a Network: the kernel's command line says which machine of it this is.
// The programs' disk is known by its label (see Programs).
var files = map[string]string{
	// debootstrap would copy this machine's. The kernel's command line says the name of each.
	"etc/hostname": "machine\n",
	"etc/hosts":    "127.0.0.1 localhost machine\n",
	"etc/fstab": "/dev/vda / ext4 defaults 0 1\n" +
		"LABEL=" + programsLabel + " " + programsMount + " ext4 ro,x-systemd.device-timeout=10min 0 0\n",
	"etc/systemd/network/eth0.network": "[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n",
	// A machine keeps its journal, as users' machines with rsyslog keep their logs.
	"var/log/journal/.keep": "",
}

// networkFile is that of eth1 on one machine of a Network.
func networkFile(number int) (name, text string) {
	return fmt.Sprintf("etc/systemd/network/eth1-%d.network", number),
		fmt.Sprintf("[Match]\nName=eth1\nKernelCommandLine=bonsai.machine=%d\n[Network]\nAddress=%s/24\n", number,
			Address(number))
}

// Build returns the image of a Debian release, which it makes unless an earlier call of the same recipe has. It is
// whole or not there. Those of other recipes are removed before: machines of theirs must not run.
func Build(ctx context.Context, dir, release string) (Image, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Image{}, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, release+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return Image{}, err
	}
	defer lock.Close() // and so unlocks
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return Image{}, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	i := Image{Dir: filepath.Join(dir, release+"-"+recipe())}
	if _, err := os.Stat(i.Dir); err == nil {
		return i, nil
	}
	others, err := filepath.Glob(filepath.Join(dir, release+"-*"))
	if err != nil {
		return i, err
	}
	for _, other := range others {
		if err := os.RemoveAll(other); err != nil {
			return i, err
		}
	}
	begun := i.Dir + ".new"
	if err := os.Mkdir(begun, 0o700); err != nil {
		return i, err
	}
	if err := (Image{Dir: begun}).build(ctx, release); err != nil {
		return i, fmt.Errorf("make an image of %s: %w", release, err)
	}
	return i, os.Rename(begun, i.Dir)
}

// recipe names what this file puts into an image beside Debian's own.
func recipe() string {
	i := Image{Dir: "/"}
	sum := sha256.Sum256(fmt.Append(nil, diskSize, allFiles(), i.steps("release", "mirror"))) // a map prints in order
	return hex.EncodeToString(sum[:4])
}

// allFiles are files and those of every machine's eth1.
func allFiles() map[string]string {
	all := maps.Clone(files)
	for number := range maxMachines {
		name, text := networkFile(number + 1)
		all[name] = text
	}
	return all
}

func (i Image) root() string { return filepath.Join(i.Dir, "root") }

// steps are the commands that make a release's root file system in the image's directory.
func (i Image) steps(release, mirror string) [][]string {
	root := i.root()
	return [][]string{
		{"debootstrap", "--variant=minbase", "--include=" + strings.Join(installed, ","), release, root, mirror},
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", i.key()},
		{"install", "-D", "-m", "600", i.key() + ".pub", filepath.Join(root, "root/.ssh/authorized_keys")},
		{"chroot", root, "systemctl", "enable", "systemd-networkd", "ssh"},
		// A cluster starts a containerd of its own, and a user may have none.
		{"chroot", root, "systemctl", "disable", "containerd"},
		append([]string{"chroot", root, "apt-get", "install", "-y", "--download-only", "--no-install-recommends"},
			downloaded...),
		{"mkdir", "-p", filepath.Join(root, programsMount)},
	}
}

func (i Image) build(ctx context.Context, release string) error {
	mirror, err := aptMirror(ctx)
	if err != nil {
		return err
	}
	for _, args := range i.steps(release, mirror) {
		if err := run(ctx, args...); err != nil {
			return err
		}
	}
	root := i.root()
	for name, text := range allFiles() {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for pattern, to := range map[string]string{"boot/vmlinuz-*": i.kernel(), "boot/initrd.img-*": i.initrd()} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("not one %s: %q", pattern, found)
		}
		if err := run(ctx, "cp", found[0], to); err != nil {
			return err
		}
	}
	return errors.Join(makeDisk(ctx, i.disk(), root, "root", diskSize), os.RemoveAll(root))
}

// makeDisk makes a disk with an ext4 file system that has a label and the files of a directory.
func makeDisk(ctx context.Context, disk, dir, label string, size int64) error {
	return errors.Join(
		run(ctx, "truncate", "-s", fmt.Sprint(size), disk),
		run(ctx, "mkfs.ext4", "-q", "-F", "-L", label, "-d", dir, disk))
}

// aptMirror returns where this machine's apt has Debian's packages from.
func aptMirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format",
		"$(ORIGIN) $(LABEL) $(REPO_URI)").Output()
	if err != nil {
		return "", fmt.Errorf("ask apt for its mirror: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if uri, found := strings.CutPrefix(strings.TrimSpace(line), "Debian Debian "); found {
			return uri, nil
		}
	}
	return "", errors.New("apt has no packages of Debian (apt-get update)")
}

func run(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
