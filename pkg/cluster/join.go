package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/preflight"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/status"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/supervisor"
)

// Join makes this machine a node of the cluster at o.Server, and returns when the node is Ready. The machine's part of
// the cluster is in c.DataDir, and has the name c.Name on this machine. Nothing is written before the cluster has
// proved its identity and the machine has everything that a node needs. A machine that has joined, and whose
// certificate has expired, joins again in the same way and keeps what it has.
func Join(ctx context.Context, home machine.Home, c plan.Config, o join.Options, self string,
	out io.Writer) (plan.Config, error) {
	if err := plan.CheckName(c.Name); err != nil {
		return c, fmt.Errorf("--name: %w", err)
	}
	was, err := datadir.Load(c.DataDir)
	again := err == nil && was.Joined != nil // this machine may need another certificate
	if !again && !errors.Is(err, os.ErrNotExist) {
		return c, errors.Join(fmt.Errorf("there is a cluster in %s already: choose another --name", c.DataDir), err)
	}
	if again && running(ctx, was) {
		return c, fmt.Errorf("this machine is the node %s of the cluster at %s, and runs (to join again: bonsai stop first)",
			was.Nodes[0].Name(), was.Joined.Server)
	}
	if again && o.NodeName == "" {
		o.NodeName = was.Nodes[0].Name()
	}
	request, err := o.Check()
	if err != nil {
		return c, err
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return c, err
	}
	defer lock.Close()
	s := newStart(c, out)
	found, err := steps.Value(ctx, s, "Ask the cluster who it is", request.Discover)
	if err != nil {
		return c, err
	}
	c, err = steps.Value(ctx, s, "Ask what a node must know", func(ctx context.Context) (plan.Config, error) {
		now, err := found.Complete(ctx, c, request)
		if err == nil && again {
			now, err = found.Again(was, now)
		}
		return now, err
	})
	if err != nil {
		return c, err
	}
	s = s.Of(c.NodeNames())
	var checked []preflight.Finding
	err = s.Take(ctx,
		steps.New("Check the machine", func(ctx context.Context) (err error) {
			checked, err = start.CheckJoining(ctx, c, home)
			return err
		}),
		steps.New("Make the configuration", func(context.Context) error {
			return errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700),
				found.WriteCredentials(c, request))
		}))
	if err != nil {
		return c, err
	}
	s.Warn(preflight.Warnings(checked)...)
	// From here on the machine has joined: if the node does not become Ready, its files stay, and `bonsai start` tries
	// again or `bonsai down` removes them.
	return c, startJoined(ctx, s, c, self)
}

// startAgain starts the node of a machine that has joined. started is false if it was Ready already. It holds the
// machine's lock until the node is Ready, since Launch and the wait are one piece here.
func startAgain(ctx context.Context, c plan.Config, home machine.Home, self string, out io.Writer) (started bool,
	err error) {
	lock, err := machine.Lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if paused(c) {
		if err := resume(ctx, c); err != nil {
			return false, err
		}
	}
	s := newStart(c, out)
	if running(ctx, c) {
		if status.AllReady(ctx, c) {
			return false, nil
		}
		ctx, done := s.WhileSupervised(ctx)
		defer done()
		return true, s.Run("Wait for the node", func() error { return join.Wait(ctx, c) })
	}
	if _, err := start.Before(ctx, s, c, home); err != nil {
		return true, err
	}
	return true, startJoined(ctx, s, c, self)
}

// startJoined starts the supervisor of a joined machine and waits for its node. The supervisor keeps running if the
// wait fails.
func startJoined(ctx context.Context, s steps.Start, c plan.Config, self string) error {
	return s.Take(ctx,
		steps.New("Start the node", func(ctx context.Context) error { return supervisor.Launch(ctx, c, self) }),
		steps.New("Wait for the node", func(ctx context.Context) error {
			ctx, done := s.WhileSupervised(ctx)
			defer done()
			return join.Wait(ctx, c)
		}))
}

// LoadJoinable returns the cluster in dataDir for commands about its tokens. It must run, and other machines must be
// able to join it.
func LoadJoinable(ctx context.Context, dataDir string) (plan.Config, error) {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return c, err
	}
	if !c.IsJoinable() {
		return c, fmt.Errorf(
			"no other machine reaches the cluster in %s: bonsai stop, then bonsai up --advertise-address with an address of this machine", dataDir)
	}
	if paused(c) || !running(ctx, c) {
		return c, notRunning(c)
	}
	return c, nil
}
