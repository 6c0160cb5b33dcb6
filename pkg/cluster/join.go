package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/etcd"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/cluster/supervisor"
)

// Join makes this machine a node of the cluster at o.Server, with a control plane if o asks for one, and returns when
// the node is Ready. The machine's part of the cluster is in c.DataDir, and has the name c.Name on this machine.
// Nothing is written before the cluster has proved its identity and the machine has everything that it needs. A machine
// that has joined as a node alone, and whose certificate has expired, joins again in the same way and keeps what it
// has.
func Join(ctx context.Context, home machine.Home, c plan.Config, o join.Options, self string,
	out io.Writer) (plan.Config, error) {
	if err := plan.CheckName(c.Name); err != nil {
		return c, fmt.Errorf("--name: %w", err)
	}
	// The lock comes before the first look at the data directory: another join may be making a cluster there.
	lock, err := machine.Lock(ctx)
	if err != nil {
		return c, err
	}
	defer lock.Close()
	was, err := datadir.Load(c.DataDir)
	// A supervisor may not answer yet, or no more.
	isServed := datadir.IsLocked(c.Layout().Lock())
	again := err == nil && !was.HasControlPlane() && !o.ControlPlane // this machine may need another certificate
	if !again && (isServed || !errors.Is(err, os.ErrNotExist)) {
		return c, errors.Join(
			fmt.Errorf("there is a cluster in %s already: choose another --name, or remove it (bonsai down)", c.DataDir),
			err)
	}
	if !again {
		if err := checkNew(c.DataDir); err != nil {
			return c, err
		}
	}
	if again && (isServed || running(ctx, was)) {
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
	var authorities join.Authorities
	if c.HasControlPlane() {
		authorities, err = steps.Value(ctx, s, "Fetch the cluster's authorities",
			func(ctx context.Context) (join.Authorities, error) { return found.Authorities(ctx, request) })
		if err != nil {
			return c, err
		}
		c.EncryptSecrets = authorities.EncryptSecrets()
	}
	if c, err = start.CheckJoined(ctx, s, c, home); err != nil {
		return c, err
	}
	if c.HasControlPlane() {
		if c, err = enter(ctx, s, c, found, authorities); err != nil {
			return c, err
		}
	} else {
		err = s.Take(ctx, steps.New("Make the configuration", func(context.Context) error {
			return errors.Join(start.WriteJoined(c), found.WriteCredentials(c, request))
		}))
		if err != nil {
			return c, err
		}
	}
	// From here on the machine has joined: if the node does not become Ready, its files stay, and `bonsai start` tries
	// again or `bonsai down` removes them.
	return c, startJoined(ctx, s, c, self, out)
}

// enter makes the files of a machine that joins with a control plane, and adds its etcd to the cluster's. If it fails,
// nothing is left of it.
func enter(ctx context.Context, s steps.Start, c plan.Config, found *join.Cluster,
	authorities join.Authorities) (plan.Config, error) {
	err := s.Take(ctx,
		steps.New("Make certificates and configuration", func(context.Context) error {
			// The configuration comes first: `down` recognizes the directory by it.
			return errors.Join(datadir.Save(c), authorities.Write(c), start.WriteJoined(c))
		}),
		steps.New("Check the node's name", func(ctx context.Context) error { return found.CheckName(ctx, c) }),
		steps.New("Add an etcd member", func(ctx context.Context) (err error) {
			joined := *c.Joined
			if joined.InitialCluster, err = etcd.Enter(ctx, c); err != nil {
				return err
			}
			c.Joined = &joined
			return datadir.Save(c)
		}))
	if err != nil {
		return c, errors.Join(err, datadir.Remove(c.DataDir))
	}
	return c, nil
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
	if err := checkFinished(c.DataDir); err != nil {
		return false, err
	}
	if paused(c) {
		if err := resume(ctx, c); err != nil {
			return false, err
		}
	}
	s := newStart(c, out)
	if running(ctx, c) {
		if isUp(ctx, c) {
			return false, nil
		}
		return true, awaitJoined(ctx, s, c, out)
	}
	if c, err = start.Before(ctx, s, c, home); err != nil {
		return true, err
	}
	return true, startJoined(ctx, s, c, self, out)
}

// startJoined starts the supervisor of a joined machine and waits for its node, and for its control plane if it has
// one. The supervisor keeps running if the wait fails.
func startJoined(ctx context.Context, s steps.Start, c plan.Config, self string, out io.Writer) error {
	name := "Start the node"
	if c.HasControlPlane() {
		name = "Start etcd, the control plane and the node"
	}
	err := s.Take(ctx, steps.New(name, func(ctx context.Context) error { return supervisor.Launch(ctx, c, self) }))
	if err != nil {
		return err
	}
	return awaitJoined(ctx, s, c, out)
}

// awaitJoined waits until a joined machine whose supervisor runs is ready.
func awaitJoined(ctx context.Context, s steps.Start, c plan.Config, out io.Writer) error {
	ctx, done := s.WhileSupervised(ctx)
	defer done()
	if err := s.Take(ctx, start.After(c)...); err != nil {
		return err
	}
	if c.HasControlPlane() {
		if err := kubeconfig.Export(ctx, c, out); err != nil {
			return err
		}
	}
	return start.Finish(c)
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

// UploadCertificates prepares the running cluster in dataDir for control planes on other machines: it opens etcd's
// ports to them, says where this machine's control plane is, and uploads the authorities, encrypted with the key. It
// can be repeated.
func UploadCertificates(ctx context.Context, dataDir string, key join.CertificateKey) error {
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	c, err := LoadJoinable(ctx, dataDir)
	if err != nil {
		return err
	}
	if c.IsHighlyAvailable() {
		return fmt.Errorf("the cluster in %s has %d control planes on this machine, and takes none of others", dataDir,
			c.ControlPlanes)
	}
	if encryption.IsRotating(c.Layout()) { // a machine that joined with the keys of now would soon lack one
		return fmt.Errorf("the key of the cluster's Secrets is being changed: finish that first (%s)",
			encryption.Command(c.Layout(), "rotate"))
	}
	if !c.Extensible {
		was := c
		c.Extensible = true
		if err := errors.Join(datadir.Save(c), supervise.Reload(ctx, c.Layout().Socket("supervisor"))); err != nil {
			return errors.Join(err, datadir.Save(was))
		}
	}
	// The order matters: a machine that finds the Secret finds the rest.
	if err := etcd.Announce(ctx, c); err != nil {
		return fmt.Errorf("tell etcd where other machines reach it: %w", err)
	}
	if err := join.PublishPeer(ctx, c); err != nil {
		return err
	}
	return join.UploadCertificates(ctx, c, key, time.Now())
}
