package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/status"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/supervisor"
	"bonsai/pkg/cluster/systemd"
)

const (
	// serveAgain is the time between two attempts of the steps that follow a start, if they fail.
	serveAgain = 5 * time.Second
	// statusPeriod is the time between two questions how many nodes are Ready. A node that is lost counts as such after
	// 40 seconds at the latest (--node-monitor-grace-period).
	statusPeriod = 20 * time.Second
)

// Serve runs an existing cluster in this process until ctx ends, as a service manager wants it; Up starts a supervisor
// in the background. It prints the steps with their times to out, and reports them to systemd. For systemd the service
// is ready when the API server is, or on a machine that has joined, when the node's own processes run.
//
// It is an error if the API server is not ready after patience without progress. Serve waits for the nodes without end:
// a service that fails because one node is slow to come up would take the others down with it.
func Serve(ctx context.Context, home machine.Home, c plan.Config, self string, patience time.Duration, out io.Writer,
	log *slog.Logger) error {
	n := systemd.NewNotifier()
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if running(ctx, c) {
		return fmt.Errorf("the cluster in %s runs already, in another process (bonsai stop --name %s)", c.DataDir,
			c.Name)
	}
	if err := checkFinished(c.DataDir); err != nil {
		return err
	}
	s := newStart(c, out)
	if c, err = start.Before(ctx, s, c, home); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Layout().Log(supervisor.LogName)), 0o700); err != nil {
		return err
	}
	// The lock of the data directory tells other commands that a supervisor is there, before its socket answers. It is
	// free again when Serve returns.
	held, err := datadir.Lock(c.Layout().Lock())
	if err != nil {
		return err
	}
	defer held.Close()
	if err := systemd.Note(c.Layout().Service(), n); err != nil {
		return err
	}
	// The supervisor runs on this goroutine, and the steps that follow its start on another. Each ends the other.
	ctx, fail := context.WithCancelCause(ctx)
	// It runs when ctx ends, whether a signal or follow ended it, so systemd learns at once that the service stops.
	context.AfterFunc(ctx, func() { tell(n, log, "STOPPING=1") })
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		if err := follow(ctx, c, s, patience, out, n, log, func() { lock.Close() }); err != nil {
			fail(err)
		}
	}()
	err = supervisor.Run(ctx, c, self, systemd.ServiceGroup, log)
	fail(context.Canceled)
	// Wait for it, because it uses out and log, which the caller closes.
	<-followed
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		err = errors.Join(cause, err)
	}
	return errors.Join(err, host.UnmountBelow(c.DataDir), host.IgnoreMissing(os.RemoveAll(c.Layout().Run())))
}

// follow takes the steps after the supervisor's start. It waits for that and then calls begun, which releases the
// machine's lock. It returns an error if the API server does not become ready, and nil when ctx ends. Until then it
// keeps the service's status.
func follow(ctx context.Context, c plan.Config, s steps.Start, patience time.Duration, out io.Writer,
	n systemd.Notifier, log *slog.Logger, begun func()) error {
	waiting, cancel := host.WithPatience(ctx, patience)
	defer cancel()
	if err := host.Poll(waiting, 5*time.Millisecond, func() (bool, error) {
		return running(waiting, c), nil
	}); err != nil {
		return ignoreEnd(ctx, fmt.Errorf("start the supervisor: %w", err))
	}
	begun()
	if c.HasControlPlane() {
		tell(n, log, systemd.Status("waits for the API server"))
		if err := s.Take(waiting, steps.New("Wait for the API server", func(ctx context.Context) error {
			return client.WaitReady(ctx, c)
		})); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
	tell(n, log, "READY=1", systemd.Status("waits for the nodes"))
	// The steps are safe to repeat: those that are done find nothing to do.
	err := host.Poll(ctx, serveAgain, func() (bool, error) {
		if now, err := datadir.Load(c.DataDir); err == nil { // an `up` may have changed it meanwhile
			now.Addons = c.Addons
			c = now
		}
		err := s.Of(c.NodeNames()).Take(ctx, start.After(c)...)
		if err == nil && c.HasControlPlane() {
			err = kubeconfig.Export(ctx, c, out)
		}
		if err == nil {
			err = start.Finish(c)
		}
		if err != nil && ctx.Err() == nil {
			tell(n, log, systemd.Status(err.Error()))
			log.Warn("not all is ready", "err", err)
		}
		return err == nil, nil
	})
	if err == nil {
		keepStatus(ctx, c, n, log)
	}
	return nil
}

// keepStatus tells systemd how many nodes are Ready, now and whenever that has changed, until ctx ends.
func keepStatus(ctx context.Context, c plan.Config, n systemd.Notifier, log *slog.Logger) {
	look := time.NewTicker(statusPeriod)
	defer look.Stop()
	for told := ""; ; {
		if now, err := datadir.Load(c.DataDir); err == nil { // a `node add` may have changed it
			c = now
		}
		if line := status.Line(ctx, c); line != told && ctx.Err() == nil {
			tell(n, log, systemd.Status(line))
			told = line
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// ignoreEnd returns err unless ctx has ended, which is no failure of a service.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// tell notifies systemd. A failure is logged, and changes nothing in the cluster.
func tell(n systemd.Notifier, log *slog.Logger, assignments ...string) {
	if err := n.Notify(assignments...); err != nil {
		log.Warn("systemd is not told", "err", err)
	}
}
