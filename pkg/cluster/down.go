package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// Down stops the cluster in dataDir and removes all it made: processes, namespaces, links, routes, packet rules, cgroups,
// the context in the user's kubeconfig, and, unless keepData, the data directory. It also tidies up after a supervisor that
// was killed. found is false if there was no cluster.
func Down(ctx context.Context, dataDir string, keepData bool, out io.Writer) (found bool, err error) {
	c, err := Load(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p := progress{out: out, began: time.Now()}
	steps := []struct {
		name string
		run  func() error
	}{
		{"Stop the processes", func() error { return c.stopSupervisor(ctx) }},
		{"Remove the node network", func() error { return c.removeNetwork(ctx) }},
		{"Remove the cgroups", removeCgroups},
		{"Remove the kubeconfig context", c.removeContext},
	}
	for _, step := range steps {
		err = errors.Join(err, p.step(step.name, step.run))
	}
	if err != nil || keepData {
		return true, errors.Join(err, ignoreMissing(os.RemoveAll(c.layout().run())))
	}
	return true, p.step("Remove the data directory", func() error { return os.RemoveAll(dataDir) })
}

// stopSupervisor ends the supervisor, and with it all processes, and waits until the lock on the data directory is free.
func (c Config) stopSupervisor(ctx context.Context) error {
	status, err := askControl(ctx, c.layout().socket("supervisor"))
	if err == nil {
		if err := syscall.Kill(status.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the supervisor, process %d: %w", status.PID, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("the supervisor does not end"))
	defer cancel()
	return poll(ctx, 10*time.Millisecond, func() (bool, error) {
		lock, err := lockData(c.layout().at("run", "lock"))
		if err != nil {
			return false, nil
		}
		return true, lock.Close()
	})
}
