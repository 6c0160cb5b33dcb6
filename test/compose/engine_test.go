package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// engine is a Docker engine of the test's own: its data, sockets and containers are below dir, its network is a
// namespace that goes with it. So it changes nothing of an engine that is there, or of the machine, and can be killed.
type engine struct {
	dir, namespace string
	daemon         *exec.Cmd
	ended          chan struct{}
}

// connect makes the engine's network namespace.
func (e *engine) connect(ctx context.Context) error {
	for _, args := range [][]string{{"netns", "add", e.namespace}, {"-n", e.namespace, "link", "set", "lo", "up"}} {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return os.WriteFile(e.path("daemon.json"), []byte("{}"), 0o600)
}

func (e *engine) path(name string) string { return filepath.Join(e.dir, name) }

// inside is a command in the engine's network.
func (e *engine) inside(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=/run/netns/" + e.namespace}, argv...)...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+e.path("docker.sock"))
	return cmd
}

// start starts the daemon and returns when it answers. One that ends is started again, as an init system would: on a
// machine with much other work Docker gives its containerd too little time.
func (e *engine) start(ctx context.Context) error {
	return until(ctx, func() error {
		if e.ended == nil || isClosed(e.ended) {
			if err := e.run(ctx); err != nil {
				return err
			}
		}
		if out, err := e.inside(ctx, "docker", "info").CombinedOutput(); err != nil {
			return fmt.Errorf("docker info (%s): %w: %s", e.path("dockerd.log"), err, out)
		}
		return nil
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run starts the daemon once.
func (e *engine) run(ctx context.Context) error {
	log, err := os.OpenFile(e.path("dockerd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	e.daemon = e.inside(context.WithoutCancel(ctx), "dockerd", "--config-file="+e.path("daemon.json"),
		"--data-root="+e.path("data"), "--exec-root="+e.path("exec"),
		"--cgroup-parent=/"+e.namespace, "--pidfile="+e.path("docker.pid"), "--host=unix://"+e.path("docker.sock"))
	e.daemon.Stdout, e.daemon.Stderr, e.daemon.SysProcAttr = log, log, &syscall.SysProcAttr{Setpgid: true}
	if err := e.daemon.Start(); err != nil {
		return err
	}
	e.ended = make(chan struct{})
	go func(daemon *exec.Cmd, ended chan struct{}) {
		daemon.Wait()
		close(ended)
	}(e.daemon, e.ended)
	return nil
}

// kill ends the daemon as a power failure would, but leaves containers to themselves.
func (e *engine) kill() error {
	err := e.daemon.Process.Kill()
	<-e.ended
	return err
}

// close stops the engine, and returns what of it is left on the machine. That is ended and removed, too.
func (e *engine) close(ctx context.Context) error {
	if e.ended != nil {
		e.daemon.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-e.ended:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), e.kill())
		}
	}
	brief, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	errs := []error{until(brief, e.noProcess), e.endProcesses(), until(ctx, e.noProcess)}
	// The directory is mounted over itself by the daemon, which leaves that to the next one when it is killed.
	if err := unix.Unmount(e.path("data"), 0); err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOENT) {
		errs = append(errs, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	errs = append(errs, err)
	for _, line := range strings.Split(string(mounts), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], e.dir) {
			errs = append(errs, fmt.Errorf("a mount is left: %s", line), unix.Unmount(fields[1], unix.MNT_DETACH))
		}
	}
	if out, err := exec.CommandContext(ctx, "ip", "netns", "del", e.namespace).CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("ip netns del: %w: %s", err, out))
	}
	for _, group := range e.groups() {
		errs = append(errs, removeGroups(group))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w (%s is kept)", err, e.dir)
	}
	return os.RemoveAll(e.dir)
}

// groups are the cgroups of the engine's containers, of all hierarchies.
func (e *engine) groups() []string {
	found, _ := filepath.Glob("/sys/fs/cgroup/*/" + e.namespace) // the pattern is well formed
	return append(found, "/sys/fs/cgroup/"+e.namespace)
}

// processes are those of the engine that are there: it and its containers' shims name its directory, the others are in
// its cgroups.
func (e *engine) processes() ([]int, error) {
	var pids []int
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if data, err := os.ReadFile(line); err == nil && strings.Contains(string(data), e.path("")) {
			pid, err := strconv.Atoi(strings.Split(line, "/")[2])
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	errs := []error{err}
	for _, group := range e.groups() {
		err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Name() != "cgroup.procs" {
				return err
			}
			data, err := os.ReadFile(path)
			for _, field := range strings.Fields(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					pids = append(pids, pid)
				}
			}
			return err
		})
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) { // it went
			errs = append(errs, err)
		}
	}
	return pids, errors.Join(errs...)
}

// noProcess says what is left of the engine.
func (e *engine) noProcess() error {
	pids, err := e.processes()
	if err == nil && len(pids) > 0 {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pids[0])) // it may have ended
		err = fmt.Errorf("%d processes are left: %s", len(pids), strings.ReplaceAll(string(line), "\x00", " "))
	}
	return err
}

// endProcesses kills what is left of the engine.
func (e *engine) endProcesses() error {
	pids, err := e.processes()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return err
}

// removeGroups removes a cgroup and those below it, if it is there.
func removeGroups(group string) error {
	var all []string
	err := filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, path := range slices.Backward(all) {
		errs = append(errs, syscall.Rmdir(path))
	}
	return errors.Join(errs...)
}

// until calls try again and again until it returns nil, or ctx ends, which returns try's last error.
func until(ctx context.Context, try func() error) error {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
