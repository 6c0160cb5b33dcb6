// Package leader lets one of several processes work at a time: the one that holds a Lease. The record in the Lease is
// the one that client-go's leader election writes, so both kinds of candidates understand each other.
//
// It is not client-go's because of two promises, which that one does not make: a leader stops at once when another one
// holds the Lease, not when it has failed to renew it for a while, and the Lease is given back after the work has
// ended, not before. It also brings the generated clients and kinds of all groups along.
package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrLost says that the Lease could not be renewed in time: another process may lead now.
var ErrLost = errors.New("leader election lost")

// Leases is the part of the API that an election needs.
type Leases interface {
	Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error)
	Create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// Observer hears of what becomes of a candidate.
type Observer interface {
	// Leading is called with true when the candidate begins to lead, and with false when it no longer does.
	Leading(now bool)
	// Read is called for a try that has to read the Lease first: each try of a candidate that does not lead, and a
	// leader's try after another process wrote the Lease.
	Read()
}

// Config describes one candidate.
type Config struct {
	Leases          Leases
	Namespace, Name string
	// Identity is this candidate's name, different for each process.
	Identity string
	// Lease is how long others wait after the last renewal; Renew, shorter, how long the leader tries to renew before
	// it stops working; Retry, shorter still, the time between tries.
	Lease, Renew, Retry time.Duration
	Observer            Observer
	Log                 *slog.Logger
}

// election is the state of one candidate.
type election struct {
	Config
	// seen is the record as last read, since the local time when it last changed: clocks of others are not trusted.
	seen  coordinationv1.LeaseSpec
	since time.Time
	held  *coordinationv1.Lease
}

// firstRetry is the first delay after an error; a cluster that is just starting answers a moment later.
const firstRetry = 50 * time.Millisecond

// Run waits to become leader, calls work with a context that ends with the leadership, and returns after work did: its
// error, ErrLost, or nil when ctx ended. On the way out the Lease is given back, so that the next one need not wait.
func Run(ctx context.Context, cfg Config, work func(ctx context.Context) error) error {
	e := &election{Config: cfg}
	if !e.acquire(ctx) {
		return nil
	}
	cfg.Observer.Leading(true)
	defer cfg.Observer.Leading(false)
	cfg.Log.Info("became leader", "lease", cfg.Namespace+"/"+cfg.Name, "identity", cfg.Identity)
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- work(working) }()
	renewed := make(chan error, 1)
	go func() { renewed <- e.renewUntil(working) }()
	select {
	case err := <-done:
		stop()
		<-renewed
		e.release(ctx)
		return err
	case err := <-renewed:
		stop()
		workErr := <-done
		if err == nil {
			e.release(ctx)
		}
		return errors.Join(err, workErr)
	}
}

// acquire tries until it holds the Lease; false says that ctx ended before.
func (e *election) acquire(ctx context.Context) bool {
	delay := firstRetry
	for {
		got, err := e.try(ctx)
		if got {
			return true
		}
		wait := jitter(e.Retry)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			e.Log.Warn("leader election failed, trying again", "err", err)
			wait, delay = min(delay, wait), min(2*delay, 2*e.Retry)
		}
		if !sleep(ctx, wait) {
			return false
		}
	}
}

// renewUntil keeps the Lease until ctx ends (nil) or it is lost (ErrLost).
func (e *election) renewUntil(ctx context.Context) error {
	last := time.Now()
	for sleep(ctx, e.Retry) {
		attempt, cancel := context.WithDeadline(ctx, last.Add(e.Renew))
		got, err := e.try(attempt)
		cancel()
		switch {
		case got:
			last = time.Now()
		case ctx.Err() != nil:
			return nil
		case time.Since(last) >= e.Renew || err == nil:
			return fmt.Errorf("%w: %s/%s, last renewed %s ago: %w", ErrLost, e.Namespace, e.Name,
				time.Since(last).Round(time.Second), orNil(err))
		default:
			e.Log.Warn("renewing the lease failed, trying again", "err", err)
		}
	}
	return nil
}

// orNil names the reason when there was no error: somebody else took over.
func orNil(err error) error {
	if err == nil {
		return errors.New("held by another candidate")
	}
	return err
}

// try makes one attempt to take or renew the Lease. false without an error: another one holds it.
func (e *election) try(ctx context.Context) (bool, error) {
	if e.held != nil {
		got, err := e.keep(e.Leases.Update(ctx, e.record(e.held, time.Now())))
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return got, err
		}
		// Somebody wrote or deleted it in between: it is still ours, or is again if nobody else takes it first.
		e.held = nil
	}
	e.Observer.Read()
	lease, err := e.Leases.Get(ctx, e.Namespace, e.Name)
	now := time.Now()
	switch {
	case apierrors.IsNotFound(err):
		return e.keep(e.Leases.Create(ctx,
			e.record(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}}, now)))
	case err != nil:
		return false, fmt.Errorf("reading lease %s/%s: %w", e.Namespace, e.Name, err)
	case !e.free(lease, now):
		return false, nil
	}
	return e.keep(e.Leases.Update(ctx, e.record(lease, now)))
}

func (e *election) keep(l *coordinationv1.Lease, err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("writing lease %s/%s: %w", e.Namespace, e.Name, err)
	}
	e.held = l
	return true, nil
}

// free reports whether the Lease may be taken: it has no holder, we hold it, or its holder did not renew it in time.
func (e *election) free(l *coordinationv1.Lease, now time.Time) bool {
	if !sameRecord(e.seen, l.Spec) {
		e.seen, e.since = l.Spec, now
	}
	promised := e.Lease
	if l.Spec.LeaseDurationSeconds != nil {
		promised = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	h := holder(l)
	return h == "" || h == e.Identity || now.Sub(e.since) >= promised
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func sameRecord(a, b coordinationv1.LeaseSpec) bool {
	return a.HolderIdentity != nil && b.HolderIdentity != nil && *a.HolderIdentity == *b.HolderIdentity &&
		a.RenewTime.Equal(b.RenewTime)
}

// record writes this candidate into a copy of the Lease.
func (e *election) record(l *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	l = l.DeepCopy()
	at := metav1.NewMicroTime(now)
	if holder(l) != e.Identity {
		n := int32(0)
		if l.Spec.LeaseTransitions != nil {
			n = *l.Spec.LeaseTransitions + 1
		}
		l.Spec.LeaseTransitions, l.Spec.AcquireTime = &n, &at
	}
	l.Spec.HolderIdentity, l.Spec.RenewTime = &e.Identity, &at
	// In whole seconds: others must not take over before the time that this one goes by.
	l.Spec.LeaseDurationSeconds = new(int32(math.Ceil(e.Lease.Seconds())))
	return l
}

// release gives the Lease back; if that fails the others wait until it runs out.
func (e *election) release(ctx context.Context) {
	if e.held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	l := e.record(e.held, time.Now())
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	if _, err := e.Leases.Update(ctx, l); err != nil {
		e.Log.Warn("giving the lease back failed", "err", err)
	}
}

func jitter(d time.Duration) time.Duration { return d + time.Duration(rand.Float64()*0.2*float64(d)) }

// sleep waits for d; false says that ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
