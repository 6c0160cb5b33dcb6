package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/cluster/addon"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/cluster/teardown"
)

// AddNode adds a node to the running cluster in dataDir and waits until it is Ready. Its number is the lowest that is
// free. If the node does not become Ready, AddNode removes it again.
func AddNode(ctx context.Context, dataDir string, labels map[string]string, out io.Writer) error {
	if err := metav1validation.ValidateLabels(labels, field.NewPath("--labels")).ToAggregate(); err != nil {
		return err
	}
	return changeNodes(ctx, dataDir, func(c plan.Config) error {
		if len(c.Nodes) == plan.MaxNodes {
			return fmt.Errorf("the cluster has %d nodes already, and no more can be", plan.MaxNodes)
		}
		node := plan.Node{Number: plan.FreeNumber(c.Nodes), Labels: labels}
		c.Nodes = append(slices.Clone(c.Nodes), node)
		slices.SortFunc(c.Nodes, func(a, b plan.Node) int { return a.Number - b.Number })
		if _, err := start.Check(ctx, c); err != nil {
			return err
		}
		s := newStart(c, out)
		err := s.Take(ctx,
			steps.New("Start node "+node.Name(), func(ctx context.Context) error {
				return errors.Join(start.Write(c), supervise.Reload(ctx, c.Layout().Socket("supervisor")))
			}),
			steps.New("Wait for the nodes", func(ctx context.Context) error {
				ctx, done := s.WhileSupervised(ctx)
				defer done()
				return start.WaitNodes(ctx, c)
			}),
			steps.New("Add it to the API of traces", func(ctx context.Context) error {
				ctx, cancel := client.WhileAnswered(ctx)
				defer cancel()
				return addon.FollowNodes(ctx, c)
			}))
		// WithoutCancel, because the usual failure is that the patience of ctx has ended.
		if err != nil { // no half a node: the cluster is as it was
			err = errors.Join(err, dropNode(context.WithoutCancel(ctx), s, c, node.Name()))
		}
		return err
	})
}

// RemoveNode stops a node of the running cluster in dataDir and removes it with everything it has, also from the API.
// Its pods end at once: `kubectl drain` moves them in order before that. If it is broken off, the same command can be
// repeated (mayRemove).
//
// The name of the control plane of another machine, which must be gone for good, removes that with its etcd member.
func RemoveNode(ctx context.Context, dataDir, name string, out io.Writer) error {
	if isPeer, err := removePeer(ctx, dataDir, name, out); isPeer || err != nil {
		return err
	}
	return changeNodes(ctx, dataDir, func(c plan.Config) error {
		if err := mayRemove(c, name); err != nil {
			return err
		}
		return dropNode(ctx, newStart(c, out), c, name)
	})
}

// mayRemove says why a node cannot be removed. A node whose removal was interrupted is no longer in the configuration
// but has its directory, which goes last. It may still run, and the API may know it: so it can be removed again.
func mayRemove(c plan.Config, name string) error {
	isNode := func(n plan.Node) bool { return n.Name() == name }
	switch {
	case c.HasNode(name) && len(c.Nodes) == 1:
		return errors.New("a cluster keeps its last node (bonsai stop stops the cluster, and keeps what it holds)")
	case !c.HasNode(name) &&
		(!slices.ContainsFunc(plan.NodesUpTo(plan.MaxNodes), isNode) || host.StatError(c.Layout().Node(name)) != nil):
		return fmt.Errorf("this machine has no node %s of the cluster: if another machine joined as %[1]s, run bonsai down there, "+
			"then kubectl delete node %[1]s", name)
	}
	return nil
}

// dropNode stops a node of the running cluster, and removes it with everything it has. The node leaves the
// configuration first: a start after a failure does not bring it back.
func dropNode(ctx context.Context, s steps.Start, c plan.Config, name string) error {
	c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n plan.Node) bool { return n.Name() == name })
	return s.Of(c.NodeNames()).Take(ctx,
		steps.New("Stop node "+name, func(ctx context.Context) error {
			return errors.Join(datadir.Save(c), supervise.Reload(ctx, c.Layout().Socket("supervisor")))
		}),
		steps.New("Remove its objects", func(ctx context.Context) error {
			ctx, cancel := client.WhileAnswered(ctx)
			defer cancel()
			return errors.Join(client.DeleteNode(ctx, c, name), addon.FollowNodes(ctx, c))
		}),
		steps.New("Remove its files and cgroups", func(ctx context.Context) error {
			return teardown.RemoveNode(ctx, c.Layout(), c.Mark(), name)
		}))
}

// changeNodes runs change on the running cluster. It holds the machine's lock, so there is one change at a time. It
// loads the configuration under the lock, so it sees the change before it.
func changeNodes(ctx context.Context, dataDir string, change func(plan.Config) error) error {
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	c, err := datadir.LoadFirst(dataDir)
	if err != nil {
		return err
	}
	if !running(ctx, c) {
		return notRunning(c)
	}
	return change(c)
}
