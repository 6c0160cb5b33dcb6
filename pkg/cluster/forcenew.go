package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/etcd"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/join"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/supervise"
)

// forcePatience bounds the one run of an etcd that forgets the other members.
const forcePatience = time.Minute

// errAlone is the error of --force-new-cluster in a cluster that has one machine's control plane.
var errAlone = errors.New("--force-new-cluster: no other machine has a control plane of the cluster")

// ForceNewCluster makes the etcd of this machine, whose cluster is stopped, the only member of a cluster with
// everything that it has: for when a majority of the control planes is gone for good. What the others had stored beyond
// that is lost. They must not come back with their data: they join again after bonsai down --force.
//
// This machine and the cluster know the others until the cluster runs and ForgetPeers is called: after a start that
// fails, all of it can be done again.
func ForceNewCluster(ctx context.Context, dataDir string, out io.Writer) error {
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	known := len(others(c)) > 0
	if !known && len(c.Peers) > 1 { // a snapshot of the time before others came, which was restored
		c.Peers = nil
		return datadir.SavePeers(c)
	}
	if !known {
		return errAlone
	}
	if paused(c) || running(ctx, c) {
		return fmt.Errorf("--force-new-cluster: the cluster in %s runs (bonsai stop)", dataDir)
	}
	if err := checkNotServed(c, ""); err != nil {
		return err
	}
	return newStart(c, out).Take(ctx,
		steps.New("Clean up after the last run", func(ctx context.Context) error { return start.CleanUp(ctx, c) }),
		steps.New("Make etcd's member here the only one", func(ctx context.Context) error {
			return forceAlone(ctx, c)
		}))
}

// forceAlone runs this machine's etcd once with --force-new-cluster, until it is the only member. It must not be in the
// flags of the etcd that the supervisor keeps: each restart would forget the members that have joined since.
func forceAlone(ctx context.Context, c plan.Config) error {
	ctx, cancel := context.WithTimeoutCause(ctx, forcePatience, errors.New("etcd does not come up alone"))
	defer cancel()
	process := controlplane.Processes(c, "")[0][0]
	log, err := supervise.OpenLog(process.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(process.Argv[0], append(process.Argv[1:], "--force-new-cluster")...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(c.Environ(os.Environ()), process.Env...)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = host.Poll(ctx, 200*time.Millisecond, func() (bool, error) {
		select {
		case exit := <-ended:
			ended <- exit
			return false, fmt.Errorf("etcd ended (%w): see %s", exit, process.Log)
		default:
		}
		alone, err := etcd.IsAlone(ctx, c)
		return err == nil && alone, nil
	})
	cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-ended:
	case <-time.After(supervise.StopGrace):
		cmd.Process.Kill()
		<-ended
	}
	return err
}

// ForgetPeers says in the cluster, which runs, that this machine's control plane is the only one. Its supervisor takes
// that over (join.Follow).
func ForgetPeers(ctx context.Context, dataDir string) error {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	return join.RemoveOtherPeers(ctx, c)
}
