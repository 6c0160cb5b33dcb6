package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/etcd"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/door"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/publish"
	"bonsai/pkg/cluster/supervise"
)

// Run is a supervisor's life. It makes the node network and keeps the control plane and the nodes running until ctx
// ends. Then it stops the nodes, then the control plane in the reverse order of its start, and takes the network away.
// The cluster's groups are below the group that parent returns.
func Run(ctx context.Context, c plan.Config, self string, parent ParentGroup, log *slog.Logger) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// Whatever tidies up outlives ctx.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	// The groups come first: children begin in their parent's group, and teardown finds them by it.
	groups, err := beginGroups(ctx, c, parent)
	if err != nil {
		return err
	}
	if err := host.LowerOOMScore(host.ControlPlaneOOMScore); err != nil {
		log.Warn("cannot lower the OOM score of the control plane", "err", err)
	}
	if err := host.RaiseInotifyLimits(); err != nil {
		log.Warn("cannot raise the limits of inotify", "err", err)
	}
	// Remove also tidies up after a Make that failed halfway.
	defer func() { err = errors.Join(err, network.Remove(life, c)) }()
	if err := network.Make(ctx, c); err != nil {
		return err
	}
	rules := network.NewRuleKeeper(c)
	// life and not ctx: the layers end one after the other, and what ends last may have to start again until then.
	s := supervise.New(life, log)
	s.Environ = c.Environ(s.Environ)
	layers := layers{life: life}
	defer layers.end()
	layers.run(func(ctx context.Context) { rules.Keep(ctx, log) })
	if err := controlplane.RemoveUnborn(c); err != nil {
		return err
	}
	balancer := supervise.NewChanging(s)
	balanced, stopBalancer := context.WithCancel(life)
	layers.atEnd(func() { stopBalancer(); balancer.Wait() })
	balance := func(c plan.Config) error { return keepBalancer(balanced, balancer, c, self) }
	if err := balance(c); err != nil {
		return err
	}
	traces := supervise.NewChanging(s)
	traced, stopTraces := context.WithCancel(life)
	layers.atEnd(func() { stopTraces(); traces.Wait() }) // after those that send it their last spans
	// The doors of etcd shut after etcd has ended: until then it needs the others to store anything.
	doors := publish.NewPortKeeper(log)
	doors.LeadTo([]netip.Addr{netip.MustParseAddr(plan.Loopback)})
	open, shut := context.WithCancel(life)
	layers.atEnd(func() { shut(); doors.Wait() })
	if err := doors.Keep(open, c.Etcd().Doors); err != nil {
		return fmt.Errorf("let the etcds of other machines reach this one's: %w", err)
	}
	// Every process retries until what it needs is there, so a layer need not wait for the one before.
	for _, layer := range controlplane.Processes(c, self) {
		var all []func(context.Context)
		for _, p := range layer {
			all = append(all, func(ctx context.Context) { s.Keep(ctx, p) })
		}
		layers.run(all...)
	}
	keepTraces(traced, traces, c)
	if err := openToOthers(ctx, c, &layers, log); err != nil {
		return err
	}
	if c.Joined != nil && c.HasControlPlane() {
		layers.run(func(ctx context.Context) {
			if err := etcd.Promote(ctx, c); err != nil && ctx.Err() == nil {
				log.Error("etcd here does not become a member that votes", "err", err)
			}
		})
	}
	if c.Joined != nil && c.HasControlPlane() && componentflags.EncryptsSecrets(c.EncryptSecrets, c.ComponentFlags) {
		layers.run(func(ctx context.Context) { join.FollowKeys(ctx, c, takeKeys(c), log) })
	}
	published := publish.NewPortKeeper(log)
	published.LeadTo(nodeAddresses(c))
	if err := published.Keep(ctx, c.Mappings()); err != nil {
		return err
	}
	nodes := node.NewKeeper(s, self, groups, network.ConnectNode)
	defer nodes.Wait()
	defer stop() // before Wait, which waits for the nodes that ctx ends
	if err := nodes.Keep(ctx, c); err != nil {
		return err
	}
	// The routes to pods and load balancers end before the API server that they follow.
	if c.Joined == nil {
		lead := &network.Gateways{}
		layers.run(func(ctx context.Context) { network.FollowNodes(ctx, c, lead, rules, log) })
		layers.run(func(ctx context.Context) { network.FollowLocalBalancers(ctx, c, lead, log) })
	}
	if c.IsJoinable() {
		layers.run(func(ctx context.Context) { join.ApproveServing(ctx, c, pki.ServerNames(c), log) })
	}
	// An `up` or `node add` has written the configuration, and waits for the answer. The control plane stays as it is.
	reload := func() error {
		now, err := datadir.Load(c.DataDir)
		if err != nil {
			return err
		}
		published.LeadTo(nodeAddresses(now))
		keepTraces(traced, traces, now)
		return errors.Join(doors.Keep(open, now.Etcd().Doors), published.Keep(ctx, now.Mappings()),
			nodes.Keep(ctx, now))
	}
	if c.Joined != nil || c.IsJoinable() {
		// The node lives as long as ctx, and not as the layer.
		change := func(now plan.Config) error {
			err := balance(now)
			if now.Joined == nil {
				return err
			}
			return errors.Join(err, nodes.Keep(ctx, now))
		}
		layers.run(func(ctx context.Context) { join.Follow(ctx, c, change, log) })
	}
	err = supervise.Serve(ctx, c.Layout().Socket(socket), func() supervise.Status {
		return supervise.Status{PID: os.Getpid(), Processes: s.Statuses()}
	}, reload)
	stop() // Serve may have failed while ctx still lives
	published.Wait()
	return err
}

// keepBalancer keeps the balancer of a machine that has joined, as the control planes are now. It starts again for
// another authority or address alone: the connections of all components here go through it. Those of several control
// planes on one machine have theirs in a layer (controlplane.Processes).
func keepBalancer(ctx context.Context, keeper *supervise.Changing, c plan.Config, self string) error {
	if c.Joined == nil || c.Ports.API == 0 {
		return nil
	}
	if err := controlplane.WriteBackends(c); err != nil {
		return err
	}
	keeper.Keep(ctx, []supervise.Process{controlplane.Balancer(c, self)}, func(p supervise.Process) string {
		authority, err := os.ReadFile(c.Layout().PKI("ca.crt"))
		if err != nil {
			authority = []byte(err.Error()) // the process will say what it lacks
		}
		return strings.Join(p.Argv, "\x00") + string(authority)
	})
	return nil
}

// keepTraces keeps the process that keeps the cluster's traces, with sockets for the nodes as they are now. On a
// machine that joined with a control plane it is the one that sends spans on. There may be neither.
func keepTraces(ctx context.Context, keeper *supervise.Changing, c plan.Config) {
	var processes []supervise.Process
	if controlplane.HasTraces(c) {
		processes = append(processes, controlplane.Traces(c))
	}
	keeper.Keep(ctx, processes, func(p supervise.Process) string { return strings.Join(p.Argv, "\x00") })
}

// openToOthers opens the doors through which others reach the cluster: other machines, and a user outside of the
// namespaces, its API server, and its pods the DNS servers of this machine.
func openToOthers(ctx context.Context, c plan.Config, layers *layers, log *slog.Logger) error {
	if c.IsJoinable() && c.Joined == nil { // elsewhere the API server itself listens at the machine's address
		shut, err := leadToAPI(ctx, c, c.Advertised(), log)
		if err != nil {
			return fmt.Errorf("let other machines reach the API server: %w", err)
		}
		layers.atEnd(shut)
	}
	if door.IsInside() { // its loopback is not the user's, from which no packet rules lead in
		own := plan.PortMapping{Address: c.Networks().Loopback(), HostPort: c.Ports.API, NodePort: c.Ports.API}
		shut, err := leadToAPI(ctx, c, own, log)
		if err != nil {
			return fmt.Errorf("let the user reach the API server: %w", err)
		}
		layers.atEnd(shut)
	}
	if c.Egress && c.Joined == nil {
		relay, stop := context.WithCancel(layers.life)
		wait, err := publish.RelayDNS(relay, c.Networks().HostIPs(), log)
		if err != nil {
			stop()
			return err
		}
		layers.atEnd(func() { stop(); wait() })
	}
	return nil
}

// leadToAPI forwards connections to an address of the machine to the API server, until stop is called or ctx ends.
func leadToAPI(ctx context.Context, c plan.Config, from plan.PortMapping, log *slog.Logger) (stop func(), err error) {
	p := publish.New(log)
	p.LeadTo([]netip.Addr{c.Networks().HostIP()})
	ctx, end := context.WithCancel(ctx)
	wait, err := p.Publish(ctx, []plan.PortMapping{from})
	if err != nil {
		end()
		return nil, err
	}
	return func() { end(); wait() }, nil
}

// nodeAddresses returns the first address of each node, to which published ports lead.
func nodeAddresses(c plan.Config) []netip.Addr {
	var nodes []netip.Addr
	for _, n := range c.Nodes {
		nodes = append(nodes, c.NodeIP(n))
	}
	return nodes
}

// takeKeys makes a published file with the keys of Secrets this machine's, if it is newer.
func takeKeys(c plan.Config) func(text []byte) error {
	return func(text []byte) error { return encryption.Take(c.Layout(), text) }
}
