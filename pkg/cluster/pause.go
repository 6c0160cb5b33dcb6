package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
)

const (
	// renewPatience bounds the wait, after a pause, for nodes to renew their leases. Nothing is lost meanwhile, as the
	// controller managers are held. Kubelets renew every 10 s; an emulated or overloaded machine needs several times
	// that.
	renewPatience = 2 * time.Minute
	// leasesTimeout bounds one question for the leases: an API server that has just been thawed may be slow.
	leasesTimeout = 10 * time.Second
	// freshLease is the age up to which a lease needs no renewal: half of the time after which the controller manager
	// gives a node up (--node-monitor-grace-period).
	freshLease = 20 * time.Second
)

// paused reports whether the cluster's processes are frozen.
func paused(c plan.Config) bool {
	is, err := cgroup.FreezerOf(c.Mark()).IsFrozen()
	return is && err == nil
}

// notRunning says why a cluster that does not answer does not.
func notRunning(c plan.Config) error {
	if paused(c) {
		return fmt.Errorf("the cluster in %s is paused (bonsai resume)", c.DataDir)
	}
	return fmt.Errorf("the cluster in %s is not running (bonsai up)", c.DataDir)
}

// Pause freezes every process of the cluster in dataDir, containers too, where it is. They keep their memory and use no
// CPU.
func Pause(ctx context.Context, dataDir string) error {
	c, err := LoadExisting(dataDir)
	if err != nil {
		return err
	}
	if paused(c) {
		return nil
	}
	if !running(ctx, c) {
		return notRunning(c)
	}
	return pause(ctx, c)
}

func pause(ctx context.Context, c plan.Config) error {
	if err := cgroup.FreezerOf(c.Mark()).Set(ctx, true); err != nil {
		return errors.Join(fmt.Errorf("freeze the cluster's processes: %w", err),
			cgroup.FreezerOf(c.Mark()).Set(context.WithoutCancel(ctx), false))
	}
	return nil
}

// Resume lets a paused cluster go on.
func Resume(ctx context.Context, dataDir string) error {
	c, err := LoadExisting(dataDir)
	if err != nil {
		return err
	}
	lock, err := lockMachine(ctx, machineLock) // who else resumes it holds the controller managers for a while
	if err != nil {
		return err
	}
	defer lock.Close()
	if paused(c) {
		return resume(ctx, c)
	}
	if !running(ctx, c) {
		return notRunning(c)
	}
	return signalManagers(c, syscall.SIGCONT)
}

// resume thaws all but the controller manager, which goes on when every node has renewed its lease: by the clock, all
// nodes have been silent for as long as the pause took, and it would give them up.
func resume(ctx context.Context, c plan.Config) (err error) {
	defer func() { err = errors.Join(err, signalManagers(c, syscall.SIGCONT)) }()
	if err := signalManagers(c, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := cgroup.FreezerOf(c.Mark()).Set(ctx, false); err != nil {
		return fmt.Errorf("thaw the cluster's processes: %w", err)
	}
	if c.Joined != nil {
		return nil // who sees the leases is elsewhere
	}
	ctx, cancel := context.WithTimeoutCause(ctx, renewPatience,
		errors.New("the nodes do not renew their leases (bonsai status)"))
	defer cancel()
	return waitLeases(ctx, c)
}

// signalManagers holds the controller managers (SIGSTOP), or lets them go on (SIGCONT): also those that a resume held
// which was killed.
func signalManagers(c plan.Config, signal syscall.Signal) error {
	managers, err := processesOf(c, "kube-controller-manager")
	if err != nil {
		return err
	}
	for _, pid := range managers {
		// one that has ended is none
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal the controller manager, process %d: %w", pid, err)
		}
	}
	return nil
}

// processesOf returns the pids of the control plane's processes that run the cluster's binary of that name.
func processesOf(c plan.Config, name string) ([]int, error) {
	groups, err := cgroup.Find(c.Mark())
	if err != nil {
		return nil, err
	}
	all, err := groups.Processes("")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range all {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if argv0, _, _ := strings.Cut(string(line), "\x00"); err == nil && argv0 == c.Bin(name) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// waitLeases waits until the API server knows a fresh lease of each node that runs.
func waitLeases(ctx context.Context, c plan.Config) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Layout().Kubeconfig(plan.Administrator))
	if err != nil {
		return err
	}
	s, err := apiclient.NewScheme(
		apiclient.Only(coordinationv1.SchemeGroupVersion, &coordinationv1.Lease{}, &coordinationv1.LeaseList{}))
	if err != nil {
		return err
	}
	client, err := apiclient.New(config, s)
	if err != nil {
		return err
	}
	var last error
	err = host.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		ask, cancel := context.WithTimeout(ctx, leasesTimeout)
		defer cancel()
		leases, err := coordination.Leases(client).List(ask, "kube-node-lease", metav1.ListOptions{})
		last = err
		return err == nil && allFresh(c, leases, time.Now()), nil // until ctx ends
	})
	return errors.Join(err, last)
}

// allFresh reports whether each of the cluster's nodes that has a lease has a fresh one.
func allFresh(c plan.Config, leases []*coordinationv1.Lease, now time.Time) bool {
	for _, l := range leases {
		if c.HasNode(l.Name) && (l.Spec.RenewTime == nil || now.Sub(l.Spec.RenewTime.Time) > freshLease) {
			return false
		}
	}
	return true
}

// loadControlPlane is LoadExisting for commands that need a cluster's control plane.
func loadControlPlane(dataDir string) (plan.Config, error) {
	c, err := LoadExisting(dataDir)
	return c, errors.Join(err, c.CheckControlPlane())
}

// LoadExisting is Load for commands that need a cluster.
func LoadExisting(dataDir string) (plan.Config, error) {
	c, err := Load(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("no cluster in %s (bonsai up)", dataDir)
	}
	return c, err
}
