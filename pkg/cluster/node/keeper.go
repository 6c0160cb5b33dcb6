package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// Keeper keeps the nodes of a cluster running: it belongs to the cluster's supervisor, which is outside of the nodes.
type Keeper struct {
	supervisor *supervise.Supervisor
	self       string
	groups     cgroup.Groups
	connect    Connect

	mu      sync.Mutex    // held for the whole of a change: one at a time
	running map[int]*kept // by the nodes' numbers
}

// Connect connects the network namespace of a node, whose init has just begun as the process pid, to the other nodes
// and the host.
type Connect func(ctx context.Context, c plan.Config, node string, pid int) error

// NewKeeper returns a Keeper that keeps no node yet. self is this program, and groups are the cluster's.
func NewKeeper(s *supervise.Supervisor, self string, groups cgroup.Groups, connect Connect) *Keeper {
	return &Keeper{supervisor: s, self: self, groups: groups, connect: connect, running: map[int]*kept{}}
}

// kept is a node that is kept running until stop; done is closed when it has ended.
type kept struct {
	name string
	stop context.CancelFunc
	done chan struct{}
}

// Keep starts the nodes of c that do not run and keeps them until ctx ends, and ends the nodes that c no longer has. It
// returns when these have ended: then their files can be removed.
//
// The supervisor calls it at its start, and again for each reload on a goroutine of the control socket. After an error
// the nodes that were already started keep running, and no unwanted node has ended. The next call goes on from there.
func (k *Keeper) Keep(ctx context.Context, c plan.Config) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted := map[int]bool{}
	for _, n := range c.Nodes {
		wanted[n.Number] = true
		if k.running[n.Number] != nil {
			if err := k.change(ctx, Of(c, n)); err != nil {
				return fmt.Errorf("change node %s: %w", n.Name(), err)
			}
			continue
		}
		p, err := k.process(ctx, c, n)
		if err != nil {
			return fmt.Errorf("start node %s: %w", n.Name(), err)
		}
		// Each node has a life of its own, so that Keep can end one of them and leave the others alone.
		life, stop := context.WithCancel(ctx)
		started := &kept{name: p.Name, stop: stop, done: make(chan struct{})}
		k.running[n.Number] = started
		go func() {
			defer close(started.done)
			k.supervisor.Keep(life, p)
		}()
	}
	// The nodes that c no longer has end at the same time: the reload that asked for it waits for one StopGrace in all.
	var unwanted []*kept
	for number, node := range k.running {
		if !wanted[number] {
			node.stop()
			unwanted = append(unwanted, node)
			delete(k.running, number)
		}
	}
	for _, node := range unwanted {
		<-node.done
		k.supervisor.Forget(node.name)
	}
	return nil
}

// Wait returns when all nodes have ended, after the context of Keep. Keep must not be called again.
func (k *Keeper) Wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, node := range k.running {
		<-node.done
		node.stop()
	}
}

// process returns a node's init: this program again, in namespaces of its own. A machine that has joined a cluster
// lends its node its own network namespace. Whenever the init starts, also again after a failure, its groups and its
// link are made new.
//
// It asks for no cgroup namespace here: the root of such a namespace is the group of the process that makes it. Enter
// makes it once it is in the node's group.
func (k *Keeper) process(ctx context.Context, c plan.Config, of plan.Node) (supervise.Process, error) {
	n := Of(c, of)
	path, err := k.write(n)
	if err != nil {
		return supervise.Process{}, err
	}
	flags := uintptr(syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWPID)
	started := func(int) error { return k.groups.Renew(ctx, n.Name, cgroup.KillPatience) }
	if !n.Joined {
		flags |= syscall.CLONE_NEWNET
		started = func(pid int) error {
			return errors.Join(k.groups.Renew(ctx, n.Name, cgroup.KillPatience), k.connect(ctx, c, n.Name, pid))
		}
	}
	return supervise.Process{
		Name: "node-" + n.Name,
		Argv: []string{k.self, "node-enter", path}, // see Enter for its standard input
		Log:  plan.Layout(n.DataDir).Log("node-" + n.Name),
		Attr: syscall.SysProcAttr{Cloneflags: flags}, Started: started,
	}, nil
}

// changePatience bounds the wait for a node's init that is just beginning, and does not answer yet.
const changePatience = 5 * time.Second

// change has a running node go on with another configuration. It does nothing if that is the one that the node has.
//
// An init that does not run reads the file at its next start. One that begins at this moment may have read the earlier
// file, so it is asked until it answers.
func (k *Keeper) change(ctx context.Context, n Config) error {
	before, err := os.ReadFile(n.path())
	if err != nil {
		return err
	}
	path, err := k.write(n)
	if err != nil {
		return err
	}
	after, err := os.ReadFile(path)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changePatience, errors.New("its init does not answer"))
	defer cancel()
	socket := plan.Layout(n.DataDir).NodeSocket(n.Name)
	if err := host.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		_, err := supervise.Ask(ctx, socket)
		return err == nil, nil
	}); err != nil {
		return err
	}
	return supervise.Reload(ctx, socket)
}

// write writes the file that the node's init reads, and returns its path.
func (k *Keeper) write(n Config) (string, error) {
	n.Cgroups = k.groups.Trees
	return n.Write()
}
