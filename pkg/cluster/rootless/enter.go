package rootless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/door"
)

// entered is the variable with which a command begins in the namespaces: the descriptor of its lease, and its working
// directory.
const entered = "BONSAI_ENTERED"

// Entry is how a command enters the namespaces of its user.
type Entry struct {
	Home string // of the clusters
	Self string // this program
	// Attach has the user's systemd move a process into a group below the one of a scope.
	Attach func(ctx context.Context, runtime, unit, group string, pid int) error
}

// Enter runs this program with the arguments in the user's namespaces, in place of this process: it returns only with
// an error. It starts the keeper of the namespaces if there is none.
//
// The lease is taken first and passed on, so that the keeper cannot end in between.
func (e Entry) Enter(ctx context.Context, args []string) error {
	u, err := CurrentUser()
	if err != nil {
		return err
	}
	p := placeOf(u, e.Home)
	lease, err := p.hold()
	if err != nil {
		return err
	}
	defer lease.Close()
	if err := e.ensure(ctx, p); err != nil {
		return err
	}
	s, err := p.read()
	if err != nil {
		return err
	}
	if err := e.Attach(ctx, u.Runtime, p.unit(), "/"+commandsGroup, os.Getpid()); err != nil {
		return fmt.Errorf("enter the cgroup of the user's clusters: %w", err)
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(lease.Fd(), unix.F_SETFD, 0); err != nil { // it outlives exec
		return fmt.Errorf("pass the lease on: %w", err)
	}
	environ := append(os.Environ(), fmt.Sprintf("%s=%d:%s", entered, lease.Fd(), dir), "BONSAI_HOME="+e.Home)
	// All capabilities are those of the user namespace, which comes first. Without --preserve-credentials nsenter would
	// drop the groups, which it may not.
	argv := append([]string{nsenter, "--preserve-credentials", "-t", strconv.Itoa(s.PID), "-U", "-m", "-n", "-C", "--",
		e.Self}, args...)
	return unix.Exec(nsenter, argv, environ)
}

// ensure returns when a keeper answers. Commands at the same time start one keeper.
func (e Entry) ensure(ctx context.Context, p place) error {
	if answers(p) {
		return nil
	}
	lock, err := host.Lock(ctx, p.starting())
	if err != nil {
		return err
	}
	defer lock.Close()
	if answers(p) { // another command has started it meanwhile
		return nil
	}
	// What a keeper left that was killed.
	if err := errors.Join(host.IgnoreMissing(os.Remove(p.door())),
		host.IgnoreMissing(os.Remove(p.state()))); err != nil {
		return err
	}
	return e.launch(ctx, p)
}

// answers reports whether the keeper answers.
func answers(p place) bool {
	conn, err := net.Dial("unix", p.door())
	if err != nil {
		return false
	}
	conn.Close()
	_, err = p.read()
	return err == nil
}

// launch starts the keeper in the background, and returns when it is ready: then its standard output has one line. If
// it ends before that, its standard error has the reason.
func (e Entry) launch(ctx context.Context, p place) error {
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(e.Self, "rootless-keep", e.Home)
	cmd.Dir, cmd.Stderr = "/", log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the terminal's signals are not for it
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	if _, err := io.ReadFull(out, make([]byte, 1)); err == nil {
		return cmd.Process.Release()
	}
	err = cmd.Wait()
	words, errRead := os.ReadFile(p.log())
	return errors.Join(fmt.Errorf("make the namespaces of the user's clusters: %w: %s", err,
		strings.TrimSpace(string(words))), errRead)
}

// Arrive continues, inside, what Enter began: this process has the working directory of the command, and its lease,
// which no child inherits. In other processes it does nothing.
func Arrive() error {
	value, ok := os.LookupEnv(entered)
	if !ok {
		return nil
	}
	if err := os.Unsetenv(entered); err != nil {
		return err
	}
	text, dir, _ := strings.Cut(value, ":")
	fd, err := strconv.Atoi(text)
	if err != nil || !filepath.IsAbs(dir) {
		return fmt.Errorf("%s: %q is not what bonsai sets", entered, value)
	}
	unix.CloseOnExec(fd)
	return os.Chdir(dir)
}

// Stay has a process of a cluster, in a user's namespaces, live no longer than their keeper, and the keeper no shorter
// than until leave is called. Elsewhere it returns ctx.
func Stay(ctx context.Context) (life context.Context, leave func() error, err error) {
	if !door.IsInside() {
		return ctx, func() error { return nil }, nil
	}
	lease, err := inside.hold()
	if err != nil {
		return nil, nil, err
	}
	life, err = door.UntilClosed(ctx, inside.door())
	if err != nil {
		return nil, nil, errors.Join(err, lease.Close())
	}
	return life, lease.Close, nil
}
