package start

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"bonsai/pkg/cluster/addon"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/dns"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/preflight"
	"bonsai/pkg/cluster/steps"
)

// Before takes the steps before a supervisor starts. It returns the cluster with everything that c leaves open.
func Before(ctx context.Context, s steps.Start, c plan.Config, home machine.Home) (plan.Config, error) {
	if err := datadir.CheckRelease(c.Layout()); err != nil {
		return c, err
	}
	if c.Joined != nil {
		return beforeJoined(ctx, s, c, home)
	}
	var found []preflight.Finding
	full, err := steps.Value(ctx, s, "Check the machine", func(ctx context.Context) (full plan.Config, err error) {
		full, found, err = Plan(ctx, c, home)
		return full, err
	})
	if err != nil {
		return c, err
	}
	s.Warn(preflight.Warnings(found)...)
	return full, s.Take(ctx, cleanUp(full),
		steps.New("Make certificates and configuration", func(context.Context) error {
			return Write(full)
		}))
}

// beforeJoined takes the steps before a supervisor of a machine that has joined starts.
func beforeJoined(ctx context.Context, s steps.Start, c plan.Config, home machine.Home) (plan.Config, error) {
	if err := s.Take(ctx, cleanUp(c)); err != nil {
		return c, err
	}
	full, err := CheckJoined(ctx, s, c, home)
	if err != nil {
		return c, err
	}
	return full, s.Take(ctx, steps.New("Make the configuration", func(context.Context) error {
		return WriteJoined(full)
	}))
}

// CheckJoined takes the step that checks a machine that joins (PlanJoined), and prints its warnings.
func CheckJoined(ctx context.Context, s steps.Start, c plan.Config, home machine.Home) (plan.Config, error) {
	var found []preflight.Finding
	full, err := steps.Value(ctx, s, "Check the machine", func(ctx context.Context) (full plan.Config, err error) {
		full, found, err = PlanJoined(ctx, c, home)
		return full, err
	})
	if err == nil {
		s.Warn(preflight.Warnings(found)...)
	}
	return full, err
}

// cleanUp returns the step that ends and removes everything that an earlier life of the cluster left on the host. A
// lost data directory may have left something, too: so a first start takes the step as well, under a name that speaks
// of no last run.
func cleanUp(c plan.Config) steps.Step {
	name := "Clean up after the last run"
	if _, err := os.Stat(c.Layout().Config()); errors.Is(err, fs.ErrNotExist) {
		name = "Prepare the machine"
	}
	return steps.New(name, func(ctx context.Context) error { return CleanUp(ctx, c) })
}

// After returns the steps of a cluster whose API server is ready. The add-ons come first: some of them give the nodes'
// components the permissions that they need to become Ready.
func After(c plan.Config) []steps.Step {
	switch {
	case !c.HasControlPlane():
		return []steps.Step{steps.New("Wait for the node", func(ctx context.Context) error {
			return join.Wait(ctx, c)
		})}
	case c.Joined != nil:
		return []steps.Step{
			steps.New("Wait for the control plane", func(ctx context.Context) error {
				return client.WaitReadyAt(ctx, c, "https://"+c.Advertised().Listens().String())
			}),
			steps.New("Wait for the node", func(ctx context.Context) error { return WaitNodes(ctx, c) }),
			steps.New("Tell the other machines", func(ctx context.Context) error { return join.PublishPeer(ctx, c) }),
		}
	}
	all := []steps.Step{
		steps.New("Install the add-ons", func(ctx context.Context) error {
			// Joined machines learn of the images of add-ons before a pod wants them.
			return errors.Join(join.Publish(ctx, c), addon.Install(ctx, c))
		}),
		steps.New("Wait for the nodes", func(ctx context.Context) error { return WaitNodes(ctx, c) }),
	}
	if c.HasAddon(plan.DNSAddon) {
		all = append(all, steps.New("Wait for the cluster's DNS", func(ctx context.Context) error {
			return dns.Wait(ctx, c)
		}))
	}
	return all
}

// WaitNodes returns when the nodes are Ready and have their labels and taints.
func WaitNodes(ctx context.Context, c plan.Config) error {
	if err := client.WaitNodes(ctx, c); err != nil {
		return err
	}
	return client.DescribeNodes(ctx, c)
}
