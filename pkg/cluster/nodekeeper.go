package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/cluster/teardown"
)

// nodeKeeper runs the nodes that the cluster is to have.
type nodeKeeper struct {
	supervisor *supervise.Supervisor
	self       string
	groups     cgroup.Groups

	mu      sync.Mutex // one change at a time
	running map[int]*keptNode
}

// keptNode is a node that is kept running until stop; done is closed when it has ended.
type keptNode struct {
	name string
	stop context.CancelFunc
	done chan struct{}
}

// keep starts the nodes of c that do not run, until ctx ends, and ends those that are not c's. It returns when they
// have ended.
func (k *nodeKeeper) keep(ctx context.Context, c plan.Config) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted := map[int]bool{}
	for _, n := range c.Nodes {
		wanted[n.Number] = true
		if k.running[n.Number] != nil {
			if _, err := writeNode(c, n, k.groups); err != nil { // for when its init starts again
				return err
			}
			continue
		}
		p, err := nodeProcess(ctx, c, n, k.self, k.groups)
		if err != nil {
			return fmt.Errorf("start node %s: %w", n.Name(), err)
		}
		life, stop := context.WithCancel(ctx)
		kept := &keptNode{name: p.Name, stop: stop, done: make(chan struct{})}
		k.running[n.Number] = kept
		go func() {
			defer close(kept.done)
			k.supervisor.Keep(life, p)
		}()
	}
	for number, kept := range k.running {
		if wanted[number] {
			continue
		}
		kept.stop()
		<-kept.done
		k.supervisor.Forget(kept.name)
		delete(k.running, number)
	}
	return nil
}

// wait returns when all nodes have ended.
func (k *nodeKeeper) wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, kept := range k.running {
		<-kept.done
		kept.stop()
	}
}

func nodeConfig(c plan.Config, n plan.Node) node.Config {
	gateways := c.Networks().HostIPs()
	if c.Contained {
		gateways = nil
	}
	return node.Config{
		Name: n.Name(), Addresses: c.NodePrefixes(n), Gateways: gateways, ServiceSubnets: c.Networks().Services(),
		Contained: c.Contained,
		DataDir:   c.DataDir, BinDir: c.BinDir, Mark: c.Mark(), Egress: c.Egress, DNSIP: c.Networks().DNSIP(),
		Podnets: c.Networks().Pods(), Server: c.Server(),
		Mirrors: c.RegistryMirrors(), OCIRuntime: c.OCIRuntime, Images: c.LocalImages(), FeatureGates: c.FeatureGates,
		ComponentFlags: c.ComponentFlags, Labels: n.RegisteredLabels(), Taints: n.Taints, Mounts: n.Mounts,
		Joined: c.Joined != nil,
	}
}

// nodeProcess is the node's init: this program again, in namespaces of its own. See EnterNode for its standard input.
func nodeProcess(ctx context.Context, c plan.Config, of plan.Node, self string,
	groups cgroup.Groups) (supervise.Process, error) {
	l, n := c.Layout(), nodeConfig(c, of)
	path, err := writeNode(c, of, groups)
	if err != nil {
		return supervise.Process{}, err
	}
	flags, started := uintptr(syscall.CLONE_NEWNS|syscall.CLONE_NEWUTS|syscall.CLONE_NEWIPC|syscall.CLONE_NEWPID),
		func(int) error {
			return groups.Renew(ctx, n.Name, teardown.KillPatience)
		}
	if !n.Joined {
		flags |= syscall.CLONE_NEWNET
		started = func(pid int) error {
			return errors.Join(groups.Renew(ctx, n.Name, teardown.KillPatience),
				network.ConnectNode(ctx, c, n.Name, pid))
		}
	}
	return supervise.Process{
		Name: "node-" + n.Name,
		Argv: []string{self, "node-enter", path},
		Log:  l.Log("node-" + n.Name),
		Attr: syscall.SysProcAttr{Cloneflags: flags}, Started: started,
	}, nil
}

// writeNode writes the file that a node's init reads when it starts, and returns its path.
func writeNode(c plan.Config, of plan.Node, groups cgroup.Groups) (string, error) {
	n := nodeConfig(c, of)
	n.Cgroups = groups.Trees
	path := c.Layout().Node(n.Name, "etc", "node.json")
	data, err := json.MarshalIndent(n, "", "  ")
	if err == nil {
		err = host.WriteFile(path, data)
	}
	if err != nil {
		return "", fmt.Errorf("write the configuration of node %s: %w", n.Name, err)
	}
	return path, nil
}
