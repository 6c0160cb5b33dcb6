package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/leader"
)

// turnLease is the Lease that a machine holds in kube-system while it restarts its control plane.
const turnLease = "bonsai-restart"

const (
	// turnLasts is how long the turn of a command that was killed keeps others waiting, shorter than returnPatience. It
	// is long for a renewal, since of two etcds both are needed: while one restarts, nothing is written.
	turnLasts = time.Minute
	turnRenew = 50 * time.Second
	turnRetry = time.Second
)

// inTurn calls work while no other machine with a control plane of the cluster is in its own inTurn. The context of
// work ends if that can no longer be promised. A machine without etcd, or with the only control planes, needs no turn:
// the machine's lock keeps its commands apart.
func inTurn(ctx context.Context, c plan.Config, p steps.Printer, work func(context.Context) error) error {
	if !c.HasControlPlane() || len(c.Peers) < 2 {
		return work(ctx)
	}
	var urls []string
	for _, s := range apiServers(c) {
		urls = append(urls, s.url)
	}
	leases, err := client.LeasesOfAny(c, urls)
	if err != nil {
		return err
	}
	return takeTurn(ctx, leases, c.Etcd().Name, p, work)
}

// takeTurn is inTurn of the control plane with that name. It waits for returnPatience. A command that was killed on the
// same machine keeps it from nothing: the Lease has the same holder.
func takeTurn(ctx context.Context, leases leader.Leases, name string, p steps.Printer,
	work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tired := errors.New("waited for too long")
	patience := time.AfterFunc(returnPatience, func() { cancel(tired) })
	defer patience.Stop()
	watched := &watchedLeases{Leases: leases, own: name, printer: p}
	err := leader.Run(ctx, leader.Config{Leases: watched, Namespace: metav1.NamespaceSystem, Name: turnLease,
		Identity: name, Lease: turnLasts, Renew: turnRenew, Retry: turnRetry, Observer: unobserved{},
		Log: slog.New(slog.DiscardHandler)}, func(ctx context.Context) error {
		if !patience.Stop() {
			return nil
		}
		watched.began.Store(true)
		return work(ctx)
	})
	switch began := watched.began.Load(); {
	case !began && ctx.Err() != nil && context.Cause(ctx) != tired:
		return context.Cause(ctx)
	case !began: // patience has ended, even where it has not yet ended ctx
		return watched.explain()
	case errors.Is(err, leader.ErrLost):
		return fmt.Errorf("stopped, since another machine may restart its control plane now (bonsai status): %w", err)
	}
	return err
}

// watchedLeases are Leases that tell the user who holds the turn, until work begins. An election asks one question at a
// time. The holder's name may be any text: the Lease is everyone's who may write those of kube-system. So its beginning
// is quoted.
type watchedLeases struct {
	leader.Leases
	own     string
	printer steps.Printer
	began   atomic.Bool
	holder  string // the last other one
	err     error  // of the last question
}

func (w *watchedLeases) Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	lease, err := w.Leases.Get(ctx, namespace, name)
	return w.see(ctx, lease, err)
}

func (w *watchedLeases) Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease, err := w.Leases.Create(ctx, l)
	return w.see(ctx, lease, err)
}

func (w *watchedLeases) Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	lease, err := w.Leases.Update(ctx, l)
	return w.see(ctx, lease, err)
}

// see notes an answer. A question that the end of the wait has cut off says less than the last answer.
func (w *watchedLeases) see(ctx context.Context, l *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if ctx.Err() == nil || w.holder == "" {
		w.err = err
	}
	if err != nil {
		return l, err
	}
	holder := w.own
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	if holder != w.own && holder != "" && holder != w.holder && !w.began.Load() {
		w.holder = holder
		w.printer.Note(fmt.Sprintf("Control plane %.63q is restarting: wait for it, at most %v", holder, returnPatience))
	}
	return l, nil
}

// explain says why the turn could not be taken.
func (w *watchedLeases) explain() error {
	const nothing = "so nothing was restarted here"
	if w.err != nil {
		return fmt.Errorf("cannot take the Lease %s in %s for %v, %s (bonsai status, bonsai logs): %w", turnLease,
			metav1.NamespaceSystem, returnPatience, nothing, w.err)
	}
	if w.holder == "" {
		return fmt.Errorf("the Lease %s in %s was taken only after %v, %s: try again", turnLease,
			metav1.NamespaceSystem, returnPatience, nothing)
	}
	return fmt.Errorf("control plane %.63q is still restarting after %v, %s: wait for the end of bonsai restart on its "+
		"machine, or interrupt it there, and try again", w.holder, returnPatience, nothing)
}

// unobserved is the observer of an election without metrics.
type unobserved struct{}

func (unobserved) Leading(bool) {}
func (unobserved) Read()        {}
