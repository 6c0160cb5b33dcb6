package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"syscall"

	"bonsai/pkg/cluster/addon"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/snapshot"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/status"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/cluster/supervisor"
	"bonsai/pkg/cluster/systemd"
)

// Up starts the cluster, or the same cluster again, and returns when every node is Ready and the cluster's DNS answers.
// It prints each step with its time to out. An existing cluster keeps whatever c leaves open; for a new one, Up
// chooses. up is the cluster with all of that. started is false if the cluster was already up and nothing changed.
//
// A supervisor that runs does not yet make a cluster that is up: the API server must answer and the nodes be Ready. If
// they are not, or an earlier command has not taken all steps of the start, Up goes on as after a start. A cluster
// without its network on the host cannot come back, and Up starts it again.
func Up(ctx context.Context, home machine.Home, c plan.Config, self string, out io.Writer) (up plan.Config,
	started bool, err error) {
	if c.Joined != nil {
		started, err := startAgain(ctx, c, home, self, out)
		return c, started, err
	}
	if err := c.Validate(); err != nil {
		return c, false, err
	}
	// The lock is held from before the first look at the cluster until its supervisor answers (begun). From then on
	// other commands see what the cluster has taken, and may work beside the rest of the start. The deferred Close then
	// finds the file closed, which is no harm.
	lock, err := machine.Lock(ctx)
	if err != nil {
		return c, false, err
	}
	defer lock.Close()
	if err := checkFinished(c.DataDir); err != nil {
		return c, false, err
	}
	if paused(c) {
		if err := resume(ctx, c); err != nil {
			return c, false, err
		}
	}
	c, old, alive, err := compareWithRunning(ctx, c)
	if err != nil {
		return c, false, err
	}
	standing := alive && network.Stands(c)
	if standing {
		if err := signalManagers(c, syscall.SIGCONT); err != nil { // a killed resume may have left them held
			return c, false, err
		}
		if reflect.DeepEqual(c, old) && isUp(ctx, c) {
			return c, false, nil
		}
	} else if err := checkNotServed(c, ""); err != nil {
		return c, false, err
	}
	s := newStart(c, out)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// Its goroutine ends with ctx, at the latest when Up returns.
	go s.WatchSpace(ctx, fail)
	switch {
	case !standing:
		c, err = launch(ctx, s, c, home, self)
	case !reflect.DeepEqual(c, old):
		fmt.Fprintf(out, "Changing the cluster in %s while it runs: %s.\n", c.DataDir, plan.Difference(old, c))
		err = s.Take(ctx, steps.New("Change the settings", func(ctx context.Context) error {
			return changeFrom(ctx, c, home, old)
		}))
	default:
		fmt.Fprintf(out, "The cluster in %s runs, but its start is not finished: going on with it.\n", c.DataDir)
		// If a command was killed while it added a node, the node is in the configuration and its supervisor does not
		// know.
		err = supervise.Reload(ctx, c.Layout().Socket("supervisor"))
	}
	if err != nil {
		return c, true, err
	}
	if err := awaitReady(ctx, s, c, func() { lock.Close() }); err != nil {
		return c, true, err
	}
	if err := addon.PrintLeft(c, old, out); err != nil {
		return c, true, err
	}
	// The context comes last: with it, the user's tools would use a cluster that is not ready.
	if err := kubeconfig.Export(ctx, c, out); err != nil {
		return c, true, err
	}
	return c, true, start.Finish(c)
}

// isUp reports whether nothing is left to do: the start is finished, and all is Ready now.
func isUp(ctx context.Context, c plan.Config) bool {
	return start.IsFinished(c) && status.AllReady(ctx, c)
}

// awaitReady waits until a cluster whose supervisor runs is ready. It calls begun, which releases the machine's lock,
// when the start has got so far that others can see what the cluster has.
func awaitReady(ctx context.Context, s steps.Start, c plan.Config, begun func()) error {
	ctx, done := s.WhileSupervised(ctx)
	defer done()
	return s.Take(ctx, append([]steps.Step{steps.New("Wait for the API server", func(ctx context.Context) error {
		begun()
		return client.WaitReady(ctx, c)
	})}, start.After(c)...)...)
}

// newStart returns a start of the cluster that begins now.
func newStart(c plan.Config, out io.Writer) steps.Start {
	return steps.NewStart(c.Layout(), c.NodeNames(), out)
}

// launch prepares the machine and starts a supervisor in the background. It returns the cluster with everything that c
// leaves open. A failure leaves the files that were written. The supervisor itself is ended by Launch if it does not
// answer, and the next start cleans up the rest.
func launch(ctx context.Context, s steps.Start, c plan.Config, home machine.Home, self string) (plan.Config,
	error) {
	c, err := start.Before(ctx, s, c, home)
	if err != nil {
		return c, err
	}
	return c, s.Take(ctx, steps.New("Start etcd, the control plane and the nodes", func(ctx context.Context) error {
		return supervisor.Launch(ctx, c, self)
	}))
}

// compareWithRunning compares the wanted cluster with the one in the data directory, old. It returns c with old's
// values for everything that c leaves open, and whether the supervisor of old runs. The error says that old cannot
// become the wanted cluster. A new cluster counts as one that has always been as wanted. The caller holds the machine's
// lock, so the configuration on the disk does not change meanwhile.
func compareWithRunning(ctx context.Context, c plan.Config) (wanted, old plan.Config, alive bool, err error) {
	old, err = datadir.Load(c.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		if err := checkNew(c.DataDir); err != nil {
			return c, c, false, err
		}
		// A cluster that begins with a file of the user's never had keys of its own.
		if _, own := componentflags.OwnEncryption(c.ComponentFlags); own {
			c.EncryptSecrets = false
		}
		return c, c, false, nil
	}
	if err != nil {
		return c, c, false, fmt.Errorf(
			"%w (repair the file, or delete the cluster with everything in it: bonsai down --data-dir %s)", err,
			c.DataDir)
	}
	old.Addons = c.Addons
	c.Peers = old.Peers // which the supervisor writes at any time
	c = c.FilledFrom(old)
	alive = running(ctx, old)
	return c, old, alive, old.CheckChange(c, alive)
}

// checkNew refuses a data directory for a new cluster that has files of others (datadir.CheckNew).
func checkNew(dataDir string) error {
	return datadir.CheckNew(dataDir, snapshot.Restoring, snapshot.Restored)
}

// running reports whether the cluster's supervisor answers.
func running(ctx context.Context, c plan.Config) bool { return supervisor.IsRunning(ctx, c.Layout()) }

// checkNotServed refuses to replace a supervisor that a service manager runs (systemd.CheckNotServed).
func checkNotServed(c plan.Config, again string) error {
	if !datadir.IsLocked(c.Layout().Lock()) {
		return nil
	}
	return systemd.CheckNotServed(c.Layout(), again)
}
