package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is a virtual machine that can be started, and its disk. Its methods are for one goroutine.
type Machine struct {
	image       Image
	dir         string
	accelerator string
	port        int // of its ssh, on loopback
	qemu        *exec.Cmd
}

// NewMachine returns a machine with the image's disk, which is copied to dir, a directory of its own. accelerator is
// qemu's -accel: tcg emulates, some 20 times slower than the host; kvm is fast where the host's kernel has it.
func NewMachine(ctx context.Context, image Image, dir, accelerator string) (*Machine, error) {
	m := &Machine{image: image, dir: dir, accelerator: accelerator}
	if err := run(ctx, "cp", "--sparse=always", image.disk(), m.disk()); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.port = l.Addr().(*net.TCPAddr).Port
	return m, l.Close()
}

func (m *Machine) disk() string { return filepath.Join(m.dir, "disk.raw") }

// Console is the file of what the machine writes to its serial console.
func (m *Machine) Console() string { return filepath.Join(m.dir, "console.log") }

// Start switches the machine on, and returns when it answers by ssh. It reaches nothing: restrict=on.
func (m *Machine) Start(ctx context.Context) error {
	m.qemu = exec.Command("qemu-system-x86_64", "-accel", m.accelerator, "-cpu", "max", "-M", "q35", "-smp", "1", "-m",
		"4096",
		"-kernel", m.image.kernel(), "-initrd", m.image.initrd(), "-append",
		"root=/dev/vda rw console=ttyS0 net.ifnames=0",
		"-drive", "if=virtio,format=raw,file="+m.disk(),
		"-netdev", "user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:"+strconv.Itoa(m.port)+"-:22", "-device",
		"virtio-net-pci,netdev=n0",
		"-serial", "file:"+m.Console(), "-display", "none", "-monitor", "none")
	m.qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.qemu.Start(); err != nil {
		return err
	}
	return m.waitForSSH(ctx)
}

// waitForSSH returns when a command runs in the machine.
func (m *Machine) waitForSSH(ctx context.Context) error {
	return until(ctx, time.Second, "the machine answers by ssh", func() (bool, string) {
		out, err := m.Run(ctx, "true")
		return err == nil, out
	})
}

// Run runs a script as root in the machine, and returns what it wrote.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	args := append(m.sshOptions(), "-p", strconv.Itoa(m.port), "root@127.0.0.1",
		"export PATH=$PATH:/usr/sbin:/sbin:/usr/local/bin; "+script)
	out, err := exec.CommandContext(ctx, "ssh", args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Copy copies a file or directory into the machine.
func (m *Machine) Copy(ctx context.Context, from, to string) error {
	return run(ctx, append(append([]string{"scp", "-q", "-r"}, m.sshOptions()...), "-P", strconv.Itoa(m.port), from,
		"root@127.0.0.1:"+to)...)
}

func (m *Machine) sshOptions() []string {
	return []string{"-i", m.image.key(), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o",
		"LogLevel=ERROR", "-o", "ConnectTimeout=10"}
}

// Reboot shuts the machine down in order and returns when it answers again, in another life of its kernel.
func (m *Machine) Reboot(ctx context.Context) error {
	const bootID = "cat /proc/sys/kernel/random/boot_id"
	before, err := m.Run(ctx, bootID)
	if err != nil {
		return err
	}
	if _, err := m.Run(ctx, "systemctl --no-block reboot"); err != nil {
		return err
	}
	return until(ctx, time.Second, "the machine has booted again", func() (bool, string) {
		now, err := m.Run(ctx, bootID)
		return err == nil && now != before, now
	})
}

// CutPower ends the machine at once: what it has not written to its disk is lost.
func (m *Machine) CutPower() error {
	if m.qemu == nil || m.qemu.Process == nil {
		return nil
	}
	err := m.qemu.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	_ = m.qemu.Wait() // it was killed
	m.qemu = nil
	return err
}

// until asks done at every interval until it is, or ctx ends: then the error has what it said last.
func until(ctx context.Context, interval time.Duration, what string, done func() (ok bool, said string)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		ok, said := done()
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w: %s", what, context.Cause(ctx), said)
		}
	}
}
