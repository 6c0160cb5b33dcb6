package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// packages are what a machine has beside the smallest Debian: a kernel, and what a cluster and its tests need, as a
// user would install it.
var packages = []string{"systemd-sysv", "udev", "dbus", "kmod", "linux-image-amd64", "initramfs-tools", "containerd",
	"runc", "containernetworking-plugins",
	"nftables", "iptables", "conntrack", "iproute2", "procps", "openssh-server", "busybox-static", "apparmor",
	"ca-certificates", "mount", "util-linux"}

// diskSize is that of a machine's disk, in bytes. The file is sparse.
const diskSize = 8 << 30

// Image is a machine that was never started: its kernel and its disk, as files in Dir.
type Image struct{ Dir string }

func (i Image) kernel() string  { return filepath.Join(i.Dir, "vmlinuz") }
func (i Image) initrd() string  { return filepath.Join(i.Dir, "initrd.img") }
func (i Image) disk() string    { return filepath.Join(i.Dir, "disk.raw") }
func (i Image) key() string     { return filepath.Join(i.Dir, "key") }
func (i Image) release() string { return filepath.Join(i.Dir, "release") } // the unpacked packages

// files are those of a machine that the packages do not have. The network is qemu's, where this machine is 10.0.2.2.
var files = map[string]string{
	"etc/hostname":                    "machine\n",
	"etc/hosts":                       "127.0.0.1 localhost machine\n",
	"etc/fstab":                       "/dev/vda / ext4 defaults 0 1\n",
	"etc/systemd/network/eth.network": "[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\n",
}

// Build makes the image of a Debian release with the programs in bin and the unit, which the machine has where
// install.sh puts them. What an earlier call has made of the release is used again; programs are copied each time.
func Build(ctx context.Context, dir, release, bin, unit string) (Image, error) {
	i := Image{Dir: filepath.Join(dir, release)}
	if err := os.MkdirAll(i.Dir, 0o700); err != nil {
		return i, err
	}
	if err := i.unpack(ctx, release); err != nil {
		return i, fmt.Errorf("unpack %s: %w", release, err)
	}
	const programs, command = "usr/local/lib/bonsai", "usr/local/bin"
	root := i.release()
	for _, args := range [][]string{
		{"rm", "-rf", filepath.Join(root, programs)},
		{"mkdir", "-p", filepath.Join(root, programs), filepath.Join(root, command),
			filepath.Join(root, "etc/systemd/system")},
		{"cp", "-a", bin + "/.", filepath.Join(root, programs)},
		{"ln", "-sfn", "/" + programs + "/bonsai", filepath.Join(root, command, "bonsai")},
		{"ln", "-sfn", "/" + programs + "/kubectl", filepath.Join(root, command, "kubectl")},
		{"cp", unit, filepath.Join(root, "etc/systemd/system")},
		{"rm", "-f", i.disk()},
		{"truncate", "-s", fmt.Sprint(diskSize), i.disk()},
		{"mkfs.ext4", "-q", "-F", "-d", root, i.disk()},
	} {
		if err := run(ctx, args...); err != nil {
			return i, err
		}
	}
	return i, nil
}

// unpack installs the release's packages into a directory, whole or not at all.
func (i Image) unpack(ctx context.Context, release string) error {
	if _, err := os.Stat(i.release()); err == nil {
		return nil
	}
	mirror, err := aptMirror(ctx)
	if err != nil {
		return err
	}
	begun := i.release() + ".new"
	if err := errors.Join(os.RemoveAll(begun), ignoreMissing(os.Remove(i.key()))); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"debootstrap", "--variant=minbase", "--include=" + strings.Join(packages, ","), release, begun, mirror},
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", i.key()},
		{"install", "-D", "-m", "600", i.key() + ".pub", filepath.Join(begun, "root/.ssh/authorized_keys")},
		{"chroot", begun, "systemctl", "enable", "systemd-networkd", "ssh"},
		// clusters start their own, and a user has none by this
		{"chroot", begun, "systemctl", "disable", "containerd"},
	} {
		if err := run(ctx, args...); err != nil {
			return err
		}
	}
	for name, text := range files {
		path := filepath.Join(begun, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	for pattern, to := range map[string]string{"boot/vmlinuz-*": i.kernel(), "boot/initrd.img-*": i.initrd()} {
		found, err := filepath.Glob(filepath.Join(begun, pattern))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("not one %s: %q, %w", pattern, found, err)
		}
		if err := run(ctx, "cp", found[0], to); err != nil {
			return err
		}
	}
	return os.Rename(begun, i.release())
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

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
