package vm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// Config is what a machine is made of.
type Config struct {
	Image    Image
	Programs Programs
	// Dir is a directory of the machine's own, for its disks and its console.
	Dir string
	// QEMU is the program qemu-system-x86_64, or a command that becomes it.
	QEMU string
	// Accelerator is qemu's -accel: tcg emulates, some 20 times slower than the host; kvm is fast where the host's
	// kernel has it.
	Accelerator string
	// Memory is in MiB. The default is 4096.
	Memory int
	// Disks are the sizes of further, empty disks in bytes: /dev/vdc, /dev/vdd and so on.
	Disks []int64
	// Network is what eth1 is connected to, if anything, and Number the machine's there, 1 to maxMachines. Its name is
	// then mN, and its address Address(N). A machine without a network is m1.
	Network *Network
	Number  int
}

// Address is that of a machine on its Network, in a /24.
func Address(number int) string { return "192.168.77." + strconv.Itoa(number) }

// Machine is a virtual machine that can be started, and its disks. Power is for one goroutine: Start, Reboot and
// CutPower. Other methods may be called by several at a time.
type Machine struct {
	config Config
	ssh    *remote
	qemu   *exec.Cmd     // nil without power
	ended  chan struct{} // closed when that qemu has ended
}

// NewMachine returns a machine without power. Its disk is a layer above the image's, in config.Dir.
func NewMachine(ctx context.Context, config Config) (*Machine, error) {
	if config.Memory == 0 {
		config.Memory = 4096
	}
	m := &Machine{config: config}
	disk, err := filepath.Abs(config.Image.disk())
	if err != nil {
		return nil, err
	}
	if err := run(ctx, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", disk, m.disk(0)); err != nil {
		return nil, err
	}
	for i, size := range config.Disks {
		if err := run(ctx, "qemu-img", "create", "-q", "-f", "qcow2", m.disk(i+1), fmt.Sprint(size)); err != nil {
			return nil, err
		}
	}
	// A machine's ssh has an address of its own. On 127.0.0.1, from where programs connect, one could take the port
	// before qemu does, and again after each power cut.
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)))
	if err != nil {
		return nil, err
	}
	defer l.Close()
	m.ssh, err = newRemote(l.Addr().String(), config.Image.key())
	return m, err
}

func (m *Machine) disk(i int) string {
	return filepath.Join(m.config.Dir, fmt.Sprintf("disk%d.qcow2", i))
}

// Console is the file of what the machine writes to its serial console.
func (m *Machine) Console() string { return filepath.Join(m.config.Dir, "console.log") }

// processor and kernelArguments are those of every machine. The processor has no fast string instructions, because qemu
// emulates them a byte at a time: without them, and with memory that is cleared once, an emulated machine needs a tenth
// less time.
const (
	processor       = "max,erms=off,fsrm=off"
	kernelArguments = "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off clearcpuid=rep_good init_on_alloc=0"
)

// arguments are those of qemu. The machine reaches nothing by eth0: restrict=on. It has one processor, as several
// threads of tcg made Debian 13's kernel panic.
func (m *Machine) arguments() []string {
	c := m.config
	kernel := kernelArguments + " systemd.hostname=m" + strconv.Itoa(max(c.Number, 1))
	if c.Network != nil {
		kernel += " bonsai.machine=" + strconv.Itoa(c.Number)
	}
	args := []string{"-accel", c.Accelerator, "-cpu", processor, "-M", "q35", "-smp", "1", "-m", strconv.Itoa(c.Memory),
		"-global", "ICH9-LPC.disable_s3=0", "-kernel", c.Image.kernel(), "-initrd", c.Image.initrd(), "-append", kernel,
		"-drive", "if=virtio,format=qcow2,file=" + m.disk(0),
		"-drive", "if=virtio,format=raw,read-only=on,file=" + c.Programs.disk}
	for i := range c.Disks {
		// Tests fill these with zeros, which then take no room here.
		args = append(args, "-drive", "if=virtio,format=qcow2,discard=unmap,detect-zeroes=unmap,file="+m.disk(i+1))
	}
	args = append(args, "-netdev", "user,id=n0,restrict=on,hostfwd=tcp:"+m.ssh.address+"-:22",
		"-device", "virtio-net-pci,netdev=n0")
	if c.Network != nil {
		args = append(args, "-netdev", "stream,id=n1,server=off,addr.type=unix,addr.path="+c.Network.socket(c.Number),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=n1,mac=52:54:00:77:00:%02x", c.Number))
	}
	return append(args, "-chardev", "file,id=c0,append=on,path="+m.Console(), "-serial", "chardev:c0", "-display", "none", "-monitor", "none",
		"-qmp", "unix:"+m.monitor()+",server=on,wait=off")
}

// Start switches the machine on, and returns when it answers.
func (m *Machine) Start(ctx context.Context) error {
	m.qemu = exec.Command(m.config.QEMU, m.arguments()...)
	m.qemu.Stderr = os.Stderr
	m.qemu.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.qemu.Start(); err != nil {
		m.qemu = nil
		return err
	}
	process, ended := m.qemu, make(chan struct{})
	m.ended = ended
	go func() {
		_ = process.Wait() // CutPower kills it
		close(ended)
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ended:
			cancel(errors.New("qemu has ended"))
		case <-ctx.Done():
		}
	}()
	return until(ctx, time.Second, "the machine answers", func() (bool, string) {
		out, err := m.attempt(ctx, "true")
		return err == nil, fmt.Sprint(out, err)
	})
}

// Run runs a script as root in the machine, and returns what it wrote.
func (m *Machine) Run(ctx context.Context, script string) (string, error) {
	return m.ssh.run(ctx, script, nil)
}

// Follow is Run for a script that takes long: it calls said with each line that the script writes, as soon as it has.
func (m *Machine) Follow(ctx context.Context, script string, said func(line string)) error {
	return m.ssh.follow(ctx, script, said)
}

// Dial connects to an address as the machine sees it. The connection ends with the machine's life.
func (m *Machine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return m.ssh.dial(ctx, network, address)
}

// Copy copies a file or the content of a directory into a directory of the machine.
func (m *Machine) Copy(ctx context.Context, from, to string) error {
	dir, name := filepath.Split(from)
	if info, err := os.Stat(from); err != nil {
		return err
	} else if info.IsDir() {
		dir, name = from, "."
	}
	tar := exec.CommandContext(ctx, "tar", "-C", filepath.Join(dir, "."), "-cf", "-", name)
	files, err := tar.StdoutPipe()
	if err != nil {
		return err
	}
	if err := tar.Start(); err != nil {
		return err
	}
	out, err := m.ssh.run(ctx, "mkdir -p "+to+" && tar -C "+to+" -xf -", files)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
		_ = files.Close() // tar would wait for a reader
	}
	return errors.Join(err, tar.Wait())
}

// attempt is Run for a machine that may be about to end, or not yet there: it gives up soon, and its connection.
func (m *Machine) attempt(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := m.Run(ctx, script)
	if err != nil {
		m.ssh.hangUp()
	}
	return out, err
}

// bootID prints which life of the kernel this is.
const bootID = "cat /proc/sys/kernel/random/boot_id"

// Reboot shuts the machine down in order, and returns when it answers in another life of its kernel.
func (m *Machine) Reboot(ctx context.Context) error {
	before, err := m.Run(ctx, bootID)
	if err != nil {
		return err
	}
	// sshd may end before it has said how the command ended.
	var unknown *ssh.ExitMissingError
	if _, err := m.Run(ctx, "systemctl --no-block reboot"); err != nil && !errors.As(err, &unknown) {
		return err
	}
	return until(ctx, time.Second, "the machine has booted again", func() (bool, string) {
		now, err := m.attempt(ctx, bootID)
		return err == nil && now != before, now
	})
}

// CutPower ends the machine at once. What it has not written to its disk is lost: its own caches, and what qemu has not
// yet entered in the layer's tables. What it has written without a flush may be there, because this machine's page
// cache keeps it; a real disk might have lost it.
func (m *Machine) CutPower() error {
	m.ssh.hangUp()
	if m.qemu == nil {
		return nil
	}
	err := m.qemu.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-m.ended
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
