package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// inside returns p changed so that it runs in the namespaces of a control plane: this program enters them and then
// becomes p (Enter). A single control plane is in the host's namespaces.
func inside(m plan.Member, self string, p supervise.Process) supervise.Process {
	if m.Number == 0 {
		return p
	}
	p.Argv = append([]string{self, "member-enter", m.Namespace(), m.Name(), "--"}, p.Argv...)
	// The UTS namespace is made at the fork. The network namespace exists (network.connectMember), so Enter only goes
	// into it.
	p.Attr.Cloneflags |= syscall.CLONE_NEWUTS
	p.Started = func(int) error { return nil } // gives it a line to the supervisor
	return p
}

// Enter moves this process into the network namespace of a control plane, gives the host a name, and becomes the
// program argv. Its UTS namespace must be its own. Standard input is the line to the supervisor, as that of
// node.Enter. It returns only with an error.
func Enter(namespace, hostname string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("no program is given")
	}
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return fmt.Errorf("wait for the supervisor: %w", err)
	}
	// A network namespace is a thread's (setns(2)), and exec keeps that of the calling thread.
	runtime.LockOSThread() // until exec makes this thread the process
	ns, err := os.Open(plan.NetnsDir + namespace)
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
