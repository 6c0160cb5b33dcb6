package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/systemd"
	"bonsai/pkg/cluster/teardown"
)

// prepareStart takes the steps before a supervisor starts. It returns the cluster with everything that c leaves open.
func prepareStart(ctx context.Context, start steps.Start, c plan.Config, home machine.Home) (plan.Config, error) {
	if c.Joined != nil {
		return c, start.Take(ctx, cleanUp(c),
			steps.New("Check the machine", func(ctx context.Context) error {
				return checkJoining(ctx, c, home)
			}),
			steps.New("Make the configuration", func(context.Context) error {
				return errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700))
			}))
	}
	full, err := steps.Value(ctx, start, "Check the machine", func(ctx context.Context) (plan.Config, error) {
		return checkMachine(ctx, c, home)
	})
	if err != nil {
		return c, err
	}
	return full, start.Take(ctx, cleanUp(full),
		steps.New("Make certificates and configuration", func(context.Context) error {
			return prepare(full)
		}))
}

// cleanUp returns the step that ends and removes everything that an earlier life of the cluster left on the host. A
// lost data directory may have left something, too: so a first start takes the step as well, under a name that speaks
// of no last run.
func cleanUp(c plan.Config) steps.Step {
	name := "Clean up after the last run"
	if _, err := os.Stat(c.Layout().Config()); errors.Is(err, fs.ErrNotExist) {
		name = "Prepare the machine"
	}
	return steps.New(name, func(ctx context.Context) error { return endEarlierLife(ctx, c) })
}

// endEarlierLife ends and removes everything on the host that carries the cluster's mark: processes, mounts, network,
// cgroups. Nothing of value is in it. It asks a supervisor that answers to end in order first.
func endEarlierLife(ctx context.Context, c plan.Config) error {
	return errors.Join(teardown.Stop(ctx, c.Layout(), c.Mark()), network.Remove(ctx, c), host.UnmountBelow(c.DataDir),
		teardown.RemoveCgroups(ctx, c.Mark(), ""))
}

// checkMachine checks what a start needs, all of it before anything is made. It returns the cluster with everything
// that c leaves open chosen.
func checkMachine(ctx context.Context, c plan.Config, home machine.Home) (plan.Config, error) {
	if err := preflight(ctx, c); err != nil {
		return c, err
	}
	if err := kubeconfig.Check(ctx); err != nil {
		return c, err
	}
	m, err := survey(c, home)
	if err != nil {
		return c, err
	}
	return m.Plan(c)
}

// prepare makes the files that the processes read.
func prepare(c plan.Config) error {
	// The configuration is first: by it down knows a cluster's directory, however soon a start is broken off.
	if err := errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700)); err != nil {
		return err
	}
	if err := controlplane.WriteCloudConfig(c); err != nil {
		return err
	}
	if err := pki.Make(c, time.Now()); err != nil {
		return err
	}
	return kubeconfig.WriteAll(c)
}

// checkNotServed refuses to replace a supervisor that a service manager runs (systemd.CheckNotServed).
func checkNotServed(c plan.Config, again string) error {
	if !datadir.IsLocked(c.Layout().Lock()) {
		return nil
	}
	return systemd.CheckNotServed(c.Layout(), again)
}
