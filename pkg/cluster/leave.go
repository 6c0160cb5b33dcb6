package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/etcd"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
)

const (
	// leavePatience bounds the attempt to leave the control planes of other machines in order, and forgetPatience the
	// questions to one API server for that.
	leavePatience  = 40 * time.Second
	forgetPatience = 10 * time.Second
)

// others returns the control planes of other machines.
func others(c plan.Config) []plan.Peer {
	if !c.HasControlPlane() || !c.Extensible {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Peers), func(p plan.Peer) bool { return p.Name == c.Etcd().Name })
}

// leave takes this machine's control plane out of the cluster before its data is removed: its etcd member, its nodes,
// and what others know of it. It asks other machines, so it does not matter whether this one runs. It does nothing if
// there are no others.
//
// A member whose data is gone still counts for etcd's majority. So it is an error if the member cannot be removed.
func leave(ctx context.Context, c plan.Config) error {
	if len(others(c)) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, leavePatience, errors.New("the other machines do not answer"))
	defer cancel()
	if err := etcd.CheckMajority(ctx, c); err != nil {
		return err
	}
	// What others know goes first: afterwards this machine is none of the cluster's.
	if err := forget(ctx, c, c.Etcd().Name, c.NodeNames()); err != nil {
		return err
	}
	return etcd.Remove(ctx, c, c.Etcd().Name)
}

// forget removes what the API has of a machine with a control plane. The API servers of other machines are asked.
func forget(ctx context.Context, c plan.Config, name string, nodes []string) error {
	var errs []error
	for _, p := range others(c) {
		if p.Name == name {
			continue
		}
		err := forgetAt(ctx, c, "https://"+p.API.String(), name, nodes)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("ask the API server of %s: %w", p.Name, err))
	}
	return errors.Join(errs...)
}

// forgetAt asks one API server. Requests to one that does not answer are repeated, so the time for each is bounded: the
// next one may answer.
func forgetAt(ctx context.Context, c plan.Config, server, name string, nodes []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, forgetPatience, errors.New("it does not answer"))
	defer cancel()
	if err := join.RemovePeer(ctx, c, server, name); err != nil {
		return err
	}
	for _, node := range nodes {
		if err := client.DeleteNodeAt(ctx, c, server, node); err != nil {
			return err
		}
	}
	return nil
}

// leaveFirst leaves before `down` removes anything. Without force, down ends if that fails.
func leaveFirst(ctx context.Context, c plan.Config, force bool, out io.Writer) error {
	err := leave(ctx, c)
	switch {
	case err == nil:
		return nil
	case force:
		fmt.Fprintf(out, "  (etcd's member %s stays, and counts for the majority: %v. On a machine whose control plane lives: bonsai node remove %[1]s)\n",
			c.Etcd().Name, err)
		return nil
	}
	return fmt.Errorf("the control planes on other machines still count on etcd's member %s, and it cannot be removed: %w. Nothing was removed here: bring the other machines back, "+
		"or, if they are gone for good, remove dead ones first (bonsai node remove NAME), or go on with bonsai down --force", c.Etcd().Name, err)
}

// removePeer removes the control plane of another machine, which is gone, and its node. isPeer is false if the cluster
// has no such control plane.
func removePeer(ctx context.Context, dataDir, name string, out io.Writer) (isPeer bool, err error) {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil || !slices.ContainsFunc(others(c), func(p plan.Peer) bool { return p.Name == name }) {
		return false, err
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return true, err
	}
	defer lock.Close()
	if paused(c) || !running(ctx, c) {
		return true, notRunning(c)
	}
	members, err := etcd.Members(ctx, c)
	if err != nil {
		return true, err
	}
	if slices.ContainsFunc(members, func(m etcd.State) bool { return m.Name == name && m.Err == nil }) {
		return true, fmt.Errorf("the control plane %s lives: run bonsai down on its machine", name)
	}
	if err := etcd.Remove(ctx, c, name); err != nil {
		return true, err
	}
	if err := join.RemovePeer(ctx, c, "", name); err != nil {
		return true, err
	}
	if err := client.DeleteNode(ctx, c, name); err != nil {
		return true, err
	}
	fmt.Fprintf(out, "Removed the etcd member %s and its node.\n", name)
	return true, nil
}

// printMembers prints etcd's members on all machines. It returns an error for each that does not answer.
func printMembers(ctx context.Context, c plan.Config, out io.Writer) error {
	if len(others(c)) == 0 {
		return nil
	}
	members, err := etcd.Members(ctx, c)
	if err != nil {
		return fmt.Errorf("ask etcd for its members: %w", err)
	}
	var errs []error
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "ETCD MEMBER\tSTATUS\tROLE\tADDRESS")
	for _, m := range members {
		status, role := "answers", "voter"
		if m.IsLearner {
			role = "learner"
		}
		if m.Err != nil {
			status = "away"
			errs = append(errs, fmt.Errorf("etcd member %s: %w", m.Name, m.Err))
		}
		if m.Name == c.Etcd().Name {
			status += ", this machine"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.Name, status, role, strings.Join(m.PeerURLs, " "))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	alive := len(members) - len(errs)
	if majority := len(members)/2 + 1; alive < majority {
		fmt.Fprintf(out, "%d of %d members answer, and %d must for the cluster to store anything.\n", alive, len(members), majority)
	}
	return errors.Join(errs...)
}
