package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stopPatience is how long a supervisor may take to end in order: nodes, control plane and etcd, stopGrace each.
	stopPatience = 3*stopGrace + 15*time.Second
	// answerPatience is how long a supervisor that does not answer is taken to be on its way.
	answerPatience = 5 * time.Second
	// killPatience is how long the kernel may take to end killed processes and to empty their cgroups.
	killPatience = 20 * time.Second
)

// endEarlierLife ends and removes everything on the host that carries the cluster's mark: processes, mounts, network, cgroups.
// Nothing of value is in it. A supervisor that answers is asked to end in order first.
func (c Config) endEarlierLife(ctx context.Context) error {
	return errors.Join(c.stop(ctx), c.removeNetwork(ctx), c.removeMounts(), c.removeCgroups(ctx))
}

// stop ends the supervisor and with it all processes, and then, by their cgroups, those that its end did not reach.
func (c Config) stop(ctx context.Context) error {
	if c.paused() { // what is frozen hears no signal
		if err := c.freezer().set(ctx, false); err != nil {
			return fmt.Errorf("thaw the cluster's processes: %w", err)
		}
	}
	if err := c.stopInOrder(ctx); err != nil {
		return err
	}
	return c.killProcesses(ctx)
}

// stopInOrder asks the supervisor to end, and waits for that. One that holds the data directory and does not answer has just begun, or is
// about to end as who started it is gone: it is given answerPatience. What does not end in time is left to be killed.
func (c Config) stopInOrder(ctx context.Context) error {
	inOrder, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	began, asked := time.Now(), false
	err := poll(inOrder, 10*time.Millisecond, func() (bool, error) {
		if !c.locked() {
			return true, nil
		}
		if asked {
			return false, nil
		}
		status, err := askControl(inOrder, c.layout().socket("supervisor"))
		if err != nil {
			return time.Since(began) > answerPatience, nil
		}
		asked = true
		if err := syscall.Kill(status.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return false, fmt.Errorf("stop the supervisor, process %d: %w", status.PID, err)
		}
		return false, nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return err
}

// killProcesses kills every process in the cluster's cgroups until there is none. The kernel ends what is in a node together
// with the node's init.
func (c Config) killProcesses(ctx context.Context) error {
	groups, err := c.cgroups()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, killPatience, fmt.Errorf("processes that do not die within %s of SIGKILL", killPatience))
	defer cancel()
	return groups.kill(ctx, "")
}

// removeCgroups removes all of the cluster's groups.
func (c Config) removeCgroups(ctx context.Context) error {
	groups, err := c.cgroups()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	return groups.remove(ctx, "")
}

// removeMounts detaches what is mounted below the data directory, so that removing it can reach nothing else.
func (c Config) removeMounts() error {
	mounts, err := mountsBelow(c.DataDir)
	if err != nil {
		return err
	}
	var errs []error
	for i := len(mounts) - 1; i >= 0; i-- { // a later one may be inside an earlier one
		if err := unix.Unmount(mounts[i], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) { // it went with another
			errs = append(errs, fmt.Errorf("unmount %s: %w", mounts[i], err))
		}
	}
	return errors.Join(errs...)
}

// mountsBelow lists the mount points below dir, in the order in which they were mounted; dir itself is not one of them.
func mountsBelow(dir string) ([]string, error) {
	points, err := mountPoints()
	if err != nil {
		return nil, err
	}
	var below []string
	for _, point := range points {
		if strings.HasPrefix(point, dir+"/") {
			below = append(below, point)
		}
	}
	return below, nil
}

// isMountPoint tells whether something is mounted at dir itself.
func isMountPoint(dir string) bool {
	points, err := mountPoints()
	if err != nil {
		return false
	}
	for _, point := range points {
		if point == dir {
			return true
		}
	}
	return false
}

// mountPoints reads the fifth field of proc_pid_mountinfo(5), where space, tab, newline and backslash are octal.
func mountPoints() ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the mounts: %w", err)
	}
	defer f.Close()
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 {
			points = append(points, plain.Replace(fields[4]))
		}
	}
	return points, nil
}

// locked tells whether a supervisor holds the data directory.
func (c Config) locked() bool {
	if _, err := os.Stat(c.layout().lock()); err != nil {
		return false
	}
	lock, err := lockData(c.layout().lock())
	if err != nil {
		return true
	}
	lock.Close()
	return false
}

// processName returns a process's command as the kernel keeps it, or "?" for one that has gone.
func processName(pid int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(data))
}
