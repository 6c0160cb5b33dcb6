package leader

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// store is a one-lease API server with optimistic locking that can be made to fail.
type store struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version byte
	down    bool
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (s *store) Get(context.Context, string, string) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down:
		return nil, errors.New("connection refused")
	case s.lease == nil:
		return nil, apierrors.NewNotFound(leases, "l")
	}
	return s.lease.DeepCopy(), nil
}

func (s *store) write(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.version++
	s.lease = l.DeepCopy()
	s.lease.ResourceVersion = string('a' + rune(s.version))
	return s.lease.DeepCopy(), nil
}

func (s *store) Create(_ context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		return nil, apierrors.NewAlreadyExists(leases, "l")
	}
	return s.write(l)
}

func (s *store) Update(_ context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down:
		return nil, errors.New("connection refused")
	case s.lease == nil:
		return nil, apierrors.NewNotFound(leases, "l")
	case s.lease.ResourceVersion != l.ResourceVersion:
		return nil, apierrors.NewConflict(leases, "l", errors.New("changed"))
	}
	return s.write(l)
}

func (s *store) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func candidate(s *store, id string) Config {
	return Config{Leases: s, Namespace: "kube-system", Name: "l", Identity: id, Lease: 15 * time.Second,
		Renew: 10 * time.Second, Retry: 2 * time.Second, Observer: &heard{}, Log: slog.New(slog.DiscardHandler)}
}

// heard is what an Observer was told.
type heard struct {
	mu    sync.Mutex
	leads bool
	reads int
}

func (h *heard) Leading(now bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leads = now
}

func (h *heard) Read() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
}

// said is what was told so far.
func (h *heard) said() (leads bool, reads int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leads, h.reads
}

// TestObserver hears when a candidate leads, and of each try that had to read the Lease: not of renewals that nobody
// disturbs.
func TestObserver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		ctx, cancel := context.WithCancel(t.Context())
		cfg := candidate(s, "one")
		one := cfg.Observer.(*heard)
		leading, done := start(ctx, cfg)
		<-leading
		time.Sleep(time.Minute)
		if leads, reads := one.said(); !leads || reads != 1 {
			t.Errorf("leading: %t, reads %d, want one read", leads, reads)
		}
		s.mu.Lock()
		s.lease.ResourceVersion = "another"
		s.mu.Unlock()
		time.Sleep(time.Minute)
		if leads, reads := one.said(); !leads || reads != 2 {
			t.Errorf("after somebody wrote: %t, reads %d, want one more", leads, reads)
		}
		cancel()
		<-done
		if leads, _ := one.said(); leads {
			t.Error("leads after its end")
		}
	})
}

// start runs a candidate; the channel gets Run's result, leading is closed once it leads.
func start(ctx context.Context, cfg Config) (leading chan struct{}, done chan error) {
	leading, done = make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Run(ctx, cfg, func(ctx context.Context) error {
			close(leading)
			<-ctx.Done()
			return nil
		})
	}()
	return leading, done
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestSecondWaitsAndTakesOverAtOnceAfterRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		ctx, cancel := context.WithCancel(t.Context())
		one, oneDone := start(ctx, candidate(s, "one"))
		<-one
		two, _ := start(t.Context(), candidate(s, "two"))
		time.Sleep(time.Minute)
		if closed(two) {
			t.Fatal("two lead at once")
		}
		cancel()
		if err := <-oneDone; err != nil {
			t.Fatalf("Run after its context ended = %v", err)
		}
		begin := time.Now()
		<-two
		if waited := time.Since(begin); waited > 3*time.Second {
			t.Errorf("took over after %s, want within one retry", waited)
		}
		if n := *s.lease.Spec.LeaseTransitions; n != 1 && n != 2 {
			t.Errorf("leaseTransitions = %d", n)
		}
	})
}

// TestLeaseIsGivenBackAfterTheWork: while the work of the old leader still ends, nobody else leads.
func TestLeaseIsGivenBackAfterTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		ctx, cancel := context.WithCancel(t.Context())
		leads, done := make(chan struct{}), make(chan error, 1)
		var ended time.Time
		go func() {
			done <- Run(ctx, candidate(s, "one"), func(ctx context.Context) error {
				close(leads)
				<-ctx.Done()
				time.Sleep(7 * time.Second)
				ended = time.Now()
				return nil
			})
		}()
		<-leads
		two, _ := start(t.Context(), candidate(s, "two"))
		cancel()
		<-two
		took := time.Now()
		if err := <-done; err != nil || took.Before(ended) || took.Sub(ended) > 3*time.Second {
			t.Errorf("the next one led %s after the end of the work: %v", took.Sub(ended), err)
		}
	})
}

func TestDeadLeaderIsReplacedAfterItsLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		dead := &election{Config: candidate(s, "dead")}
		if ok, err := dead.try(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		begin := time.Now()
		two, _ := start(t.Context(), candidate(s, "two"))
		<-two
		if waited := time.Since(begin); waited < 15*time.Second || waited > 18*time.Second {
			t.Errorf("took over after %s, want after the lease of 15s", waited)
		}
	})
}

func TestLeaderStopsWhenItCannotRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		one, done := start(t.Context(), candidate(s, "one"))
		<-one
		s.setDown(true)
		begin := time.Now()
		if err := <-done; !errors.Is(err, ErrLost) {
			t.Fatalf("Run = %v, want ErrLost", err)
		}
		if took := time.Since(begin); took > 13*time.Second {
			t.Errorf("worked on for %s without a lease", took)
		}
	})
}

func TestShortOutageIsSurvived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		ctx, cancel := context.WithCancel(t.Context())
		one, done := start(ctx, candidate(s, "one"))
		<-one
		s.setDown(true)
		time.Sleep(6 * time.Second)
		s.setDown(false)
		time.Sleep(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// TestLongOutage: a candidate that gets no answer for long asks no more often than one that waits for its turn.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{down: true}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		cfg := candidate(s, "one")
		cfg.Observer = &patient{heard: cfg.Observer.(*heard), giveUp: cancel}
		_, done := start(ctx, cfg)
		if err := <-done; err != nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("Run = %v, and its context: %v", err, ctx.Err())
		}
	})
}

// patient gives up after more tries than ten minutes have.
type patient struct {
	*heard
	giveUp func()
}

func (p *patient) Read() {
	p.heard.Read()
	if _, reads := p.said(); reads > 310 {
		p.giveUp()
	}
}

func (s *store) replace(l *coordinationv1.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = l
}

// TestDeletedLeaseIsMadeAnew: nobody else leads, so the leader goes on, as client-go's does.
func TestDeletedLeaseIsMadeAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		ctx, cancel := context.WithCancel(t.Context())
		one, done := start(ctx, candidate(s, "one"))
		<-one
		for range 3 {
			s.replace(nil)
			time.Sleep(time.Minute)
			if got, err := s.Get(ctx, "", ""); err != nil || holder(got) != "one" {
				t.Errorf("the lease is %+v, %v", got, err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// TestLeaseTakenByAnother: the candidate that recreated the deleted Lease leads, and the old leader stops at once.
func TestLeaseTakenByAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		one, done := start(t.Context(), candidate(s, "one"))
		<-one
		s.replace(nil)
		two := &election{Config: candidate(s, "two")}
		if ok, err := two.try(t.Context()); !ok || err != nil {
			t.Fatal(ok, err)
		}
		begin := time.Now()
		if err := <-done; !errors.Is(err, ErrLost) || time.Since(begin) > 3*time.Second {
			t.Errorf("Run = %v after %s", err, time.Since(begin))
		}
		if got, err := s.Get(t.Context(), "", ""); err != nil || holder(got) != "two" {
			t.Errorf("the lease is %+v, %v", got, err)
		}
	})
}

func TestWorkErrorEndsLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		boom := errors.New("boom")
		if err := Run(t.Context(), candidate(s, "one"), func(context.Context) error {
			return boom
		}); !errors.Is(err, boom) {
			t.Errorf("Run = %v, want the work's error", err)
		}
		if holder(s.lease) != "" {
			t.Errorf("the lease is still held by %q", holder(s.lease))
		}
	})
}

// TestPromise: the Lease promises no less than what its holder goes by, in whole seconds.
func TestPromise(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]int32{time.Second: 1, 1500 * time.Millisecond: 2, 15 * time.Second: 15} {
		e := election{Config: Config{Lease: lease, Identity: "a"}}
		if got := *e.record(&coordinationv1.Lease{}, time.Unix(0, 0)).Spec.LeaseDurationSeconds; got != want {
			t.Errorf("%s: %d seconds", lease, got)
		}
	}
}
