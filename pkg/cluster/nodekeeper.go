package cluster

import (
	"context"
	"fmt"
	"sync"

	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
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

// keep starts the nodes of c that do not run, until ctx ends, and ends those that are not c's. It returns when they have ended.
func (k *nodeKeeper) keep(ctx context.Context, c plan.Config) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted := map[int]bool{}
	for _, node := range c.Nodes {
		wanted[node.Number] = true
		if k.running[node.Number] != nil {
			if _, err := writeNode(c, node, k.groups); err != nil { // for when its init starts again
				return err
			}
			continue
		}
		p, err := nodeProcess(ctx, c, node, k.self, k.groups)
		if err != nil {
			return fmt.Errorf("start node %s: %w", node.Name(), err)
		}
		life, stop := context.WithCancel(ctx)
		kept := &keptNode{name: p.Name, stop: stop, done: make(chan struct{})}
		k.running[node.Number] = kept
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
