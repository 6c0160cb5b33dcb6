package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/publish"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/cluster/systemd"
)

// supervisorLock is the file descriptor by which a supervisor is given the lock of its data directory.
const supervisorLock = 3

// untilReleased returns a context that ends when starter does without a byte: who started the supervisor is gone, or
// does not want it any more, before it answered (startSupervisor).
func untilReleased(ctx context.Context, starter io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		if _, err := io.ReadFull(starter, make([]byte, 1)); err != nil {
			cancel()
		}
	}()
	return ctx
}

// Supervise is the life of a supervisor in the background. See startSupervisor for starter.
func Supervise(ctx context.Context, c plan.Config, self string, starter io.Reader, log *slog.Logger) error {
	if err := unix.Flock(supervisorLock, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("the supervisor is started by bonsai up: %w", err)
	}
	// the lock is gone with this process, whoever else it leaves
	unix.CloseOnExec(supervisorLock)
	if err := host.IgnoreMissing(os.Remove(c.Layout().Service())); err != nil { // of a service that was killed
		return err
	}
	return runSupervisor(untilReleased(ctx, starter), c, self, systemd.ScopeGroup, log)
}

// supervise is the supervisor's life: it makes the node network, keeps the control plane and the nodes running until
// ctx ends, stops the nodes, then the control plane in the order that controlPlane says, and takes the network away.
// The cluster's groups are below that of parent.
func runSupervisor(ctx context.Context, c plan.Config, self string, parent parentGroup, log *slog.Logger) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// What must outlive ctx to tidy up.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	groups, err := beginGroups(ctx, c, parent)
	if err != nil {
		return err
	}
	if err := host.RaiseInotifyLimits(); err != nil {
		log.Warn("cannot raise the limits of inotify", "err", err)
	}
	defer func() { err = errors.Join(err, network.Remove(life, c)) }()
	if err := network.Make(ctx, c); err != nil {
		return err
	}
	s := supervise.New(life, log)
	s.Environ = c.Environ(s.Environ)

	var ends []func()
	defer func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}()
	// run runs all until their end comes, which waits for them.
	run := func(all ...func(context.Context)) {
		life, stop := context.WithCancel(life)
		var running sync.WaitGroup
		for _, f := range all {
			running.Go(func() { f(life) })
		}
		ends = append(ends, func() { stop(); running.Wait() })
	}
	for _, layer := range controlplane.Processes(c, self) {
		var all []func(context.Context)
		for _, p := range layer {
			all = append(all, func(ctx context.Context) { s.Keep(ctx, p) })
		}
		run(all...)
	}
	if c.IsJoinable() {
		stop, err := advertise(ctx, c, log)
		if err != nil {
			return err
		}
		ends = append(ends, stop)
	}
	if c.Egress && c.Joined == nil {
		relay, stop := context.WithCancel(life)
		wait, err := publish.RelayDNS(relay, c.Networks().HostIPs(), log)
		if err != nil {
			stop()
			return err
		}
		ends = append(ends, func() { stop(); wait() })
	}
	published := publish.NewPortKeeper(log)
	published.LeadTo(nodeAddresses(c))
	if err := published.Keep(ctx, c.Mappings()); err != nil {
		return err
	}
	nodes := node.NewKeeper(s, self, groups, network.ConnectNode)
	defer nodes.Wait()
	defer stop() // before that, whatever this ends for
	if err := nodes.Keep(ctx, c); err != nil {
		return err
	}
	if c.Joined == nil {
		lead := &network.Gateways{}
		run(func(ctx context.Context) { network.FollowNodes(ctx, c, lead, log) })
		run(func(ctx context.Context) { network.FollowLocalBalancers(ctx, c, lead, log) })
	}
	if c.IsJoinable() {
		run(func(ctx context.Context) { join.ApproveServing(ctx, c, pki.ServerNames(c), log) })
	}
	reload := func() error {
		now, err := datadir.Load(c.DataDir)
		if err != nil {
			return err
		}
		published.LeadTo(nodeAddresses(now))
		return errors.Join(published.Keep(ctx, now.Mappings()), nodes.Keep(ctx, now))
	}
	err = supervise.Serve(ctx, c.Layout().Socket("supervisor"), func() supervise.Status {
		return supervise.Status{PID: os.Getpid(), Processes: s.Statuses()}
	}, reload)
	stop()
	published.Wait()
	return err
}

// advertise forwards connections to the advertised address to the API server, until stop is called or ctx ends.
func advertise(ctx context.Context, c plan.Config, log *slog.Logger) (stop func(), err error) {
	p := publish.New(log)
	p.LeadTo([]netip.Addr{c.Networks().HostIP()})
	ctx, end := context.WithCancel(ctx)
	wait, err := p.Publish(ctx, []plan.PortMapping{c.Advertised()})
	if err != nil {
		end()
		return nil, fmt.Errorf("let other machines reach the API server: %w", err)
	}
	return func() { end(); wait() }, nil
}

// controlPlaneGroup is the group of the supervisor and the control plane, beside those of the nodes, which are called
// as the nodes.
const controlPlaneGroup = "control-plane"

// parentGroup finds the group below which a supervisor may make the groups of its cluster (systemd.ScopeGroup).
type parentGroup func(ctx context.Context, mark, dataDir string) (string, error)

// beginGroups makes the groups of this life, below that of parent, and moves this process into that of the control
// plane.
func beginGroups(ctx context.Context, c plan.Config, parent parentGroup) (cgroup.Groups, error) {
	below, err := parent(ctx, c.Mark(), c.DataDir)
	if err != nil {
		return cgroup.Groups{}, err
	}
	groups, err := cgroup.Below(below, c.Mark())
	if err != nil {
		return groups, err
	}
	for _, step := range []func() error{
		func() error { return groups.Make(controlPlaneGroup) },
		func() error { return groups.Enter(controlPlaneGroup) },
		groups.HandDown, // once this process is not in the way
	} {
		if err := step(); err != nil {
			return groups, err
		}
	}
	return groups, nil
}

// OpenLog opens the log of the supervisor in dataDir. This process's standard error follows it, for what the Go runtime
// says at the end.
func OpenLog(dataDir string) (io.WriteCloser, error) {
	return supervise.OpenStderrLog(plan.Layout(dataDir).Log(supervisorName))
}

// OpenServiceLog is OpenLog for a supervisor whose standard error somebody else keeps: a service manager, or a user who
// looks on.
func OpenServiceLog(dataDir string) (io.WriteCloser, error) {
	return supervise.OpenLog(plan.Layout(dataDir).Log(supervisorName))
}

// nodeAddresses returns the first address of each node, to which published ports lead.
func nodeAddresses(c plan.Config) []netip.Addr {
	var nodes []netip.Addr
	for _, n := range c.Nodes {
		nodes = append(nodes, c.NodeIP(n))
	}
	return nodes
}
