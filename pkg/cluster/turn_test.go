package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/leader"
	"bonsai/pkg/testenv"
)

// TestInTurn: of two machines that restart at once, the second says for whom it waits, and begins when the first has
// ended. The API server is a real one; a second one is away.
func TestInTurn(t *testing.T) {
	t.Parallel()
	first, second := twoMachines(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var working atomic.Int32
	alone := func() {
		if working.Add(1) != 1 {
			t.Error("both restart at once")
		}
	}
	began, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	run := func(c plan.Config, out io.Writer, work func(context.Context) error) {
		done <- inTurn(ctx, c, steps.NewPrinter(out), work)
	}
	boom := errors.New("boom")
	go run(first, io.Discard, func(context.Context) error {
		alone()
		close(began)
		<-end
		working.Add(-1)
		return boom
	})
	select {
	case <-began:
	case err := <-done:
		t.Fatal(err)
	}
	waits := make(lines, 10)
	go run(second, waits, func(context.Context) error {
		alone()
		return nil
	})
	select {
	case line := <-waits:
		if !strings.Contains(line, fmt.Sprintf("Control plane %q is restarting", plan.FirstMember)) {
			t.Errorf("it says %q", line)
		}
	case err := <-done:
		close(end)
		t.Fatalf("it has not waited: %v", err)
	}
	close(end)
	if err := errors.Join(<-done, <-done); err == nil || err.Error() != boom.Error() {
		t.Error(err)
	}
}

// lines are what was written, to be waited for.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// twoMachines returns two machines with control planes of a cluster. One API server is away.
func twoMachines(t *testing.T) (first, second plan.Config) {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := host.StatError(filepath.Join(bin, "kube-apiserver")); err != nil {
		t.Skipf("SKIPPED: %v (make tools components)", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	env, err := testenv.Start(ctx, testenv.Config{BinDir: bin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := env.Client()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(env.KubeconfigPath())
	if err != nil {
		t.Fatal(err)
	}
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	peers := []plan.Peer{{Name: plan.FirstMember, API: netip.MustParseAddrPort(away.Addr().String())},
		{Name: "m2", API: netip.MustParseAddrPort(strings.TrimPrefix(config.Host, "https://"))}}
	first, second = plantest.Config(t), plantest.Config(t)
	second.Joined = &plan.Joined{ControlPlane: true}
	for _, c := range []*plan.Config{&first, &second} {
		c.Peers = peers
		if err := host.WriteFile(c.Layout().Kubeconfig(plan.Administrator), kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	return first, second
}

// TestNoTurn: a machine whose control planes are the only ones, and one without a control plane, ask nobody.
func TestNoTurn(t *testing.T) {
	t.Parallel()
	alone, node := plantest.Config(t), plantest.Config(t)
	alone.Peers = make([]plan.Peer, 1)
	node.Joined, node.Peers = &plan.Joined{}, make([]plan.Peer, 3)
	boom := errors.New("boom")
	for name, c := range map[string]plan.Config{"alone": alone, "node": node} {
		if err := inTurn(t.Context(), c, steps.NewPrinter(io.Discard), func(context.Context) error {
			return boom
		}); !errors.Is(err, boom) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTakeTurn: how long a command waits for others, and what it says. The clock of another machine does not matter.
func TestTakeTurn(t *testing.T) {
	t.Parallel()
	const restarting = `Control plane "m2" is restarting`
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, turnLease, errors.New("no role"))
	for name, c := range map[string]struct {
		holder  string        // of the Lease when the command begins, none if ""
		skew    time.Duration // of its holder's clock
		renewed bool          // while the command waits
		slow    time.Duration // of the API server, to answer
		err     error         // of the API server
		waits   time.Duration
		want    string // the error
		says    string
	}{
		"nobody":             {},
		"killed on this one": {holder: "m1"},
		"killed":             {holder: "m2", waits: turnLasts, says: restarting},
		"killed, clock fast": {holder: "m2", skew: time.Hour, waits: turnLasts, says: restarting},
		"killed, clock slow": {holder: "m2", skew: -time.Hour, waits: turnLasts, says: restarting},
		"long": {holder: "m2", renewed: true, waits: returnPatience, says: restarting,
			want: `control plane "m2" is still restarting after 2m0s, so nothing was restarted here`},
		"long, while an API server is away": {holder: "m2", renewed: true, slow: 10 * time.Second,
			waits: returnPatience, says: restarting, want: `control plane "m2" is still restarting after 2m0s`},
		"no name": {holder: "\x1b[2J" + strings.Repeat("x", 1000), renewed: true, waits: returnPatience,
			says: `Control plane "\x1b[2J` + strings.Repeat("x", 59) + `" is restarting`,
			want: `control plane "\x1b[2J` + strings.Repeat("x", 59) + `" is still restarting`},
		"refused": {err: refused, waits: returnPatience, want: "no role"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &oneLease{err: c.err, slow: c.slow}
				if c.holder != "" {
					l.renew(c.holder, time.Now().Add(c.skew))
				}
				if l.renewed = func() {}; c.renewed {
					l.renewed = func() { l.renew(c.holder, time.Now().Add(c.skew)) }
				}
				var out strings.Builder
				begun, worked := time.Now(), false
				err := takeTurn(t.Context(), l, "m1", steps.NewPrinter(&out), func(context.Context) error {
					worked = true
					return nil
				})
				if waited := time.Since(begun); waited < c.waits || waited > c.waits+3*turnRetry {
					t.Errorf("it waited for %v, not %v", waited, c.waits)
				}
				if worked != (c.want == "") || (err == nil) != worked ||
					!worked && !strings.Contains(err.Error(), c.want) {
					t.Errorf("worked: %t, with %v", worked, err)
				}
				if (out.Len() > 0) != (c.says != "") || !strings.Contains(out.String(), c.says) ||
					strings.Count(out.String(), "\n") > 1 {
					t.Errorf("it says %q, not %q", out.String(), c.says)
				}
				if worked && l.holder() != "" {
					t.Errorf("%s still has the turn", l.holder())
				}
			})
		})
	}
}

// TestTurnEnds: a command that is interrupted gives its turn back. One that has lost it ends its work, and says so.
func TestTurnEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    func(interrupt func(), l *oneLease)
		want   string
		holder string
	}{
		"interrupted": {func(interrupt func(), _ *oneLease) { interrupt() }, context.Canceled.Error(), ""},
		"lost": {func(_ func(), l *oneLease) { l.renew("m2", time.Now()) },
			"another machine may restart its control plane now", "m2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l := &oneLease{renewed: func() {}}
				var out strings.Builder
				err := takeTurn(ctx, l, "m1", steps.NewPrinter(&out), func(ctx context.Context) error {
					time.Sleep(2 * turnLasts)
					if ctx.Err() != nil || l.holder() != "m1" {
						t.Errorf("%v: %s has the turn", ctx.Err(), l.holder())
					}
					c.end(cancel, l)
					<-ctx.Done()
					return context.Cause(ctx)
				})
				if err == nil || !strings.Contains(err.Error(), c.want) || l.holder() != c.holder {
					t.Errorf("%s has the turn after %v", l.holder(), err)
				}
				if out.Len() > 0 { // nothing is waited for
					t.Errorf("the user reads %q", out.String())
				}
			})
		})
	}
}

// oneLease is a lease whose writers must have seen it as it is.
type oneLease struct {
	renewed func() // by another holder, before each look
	err     error  // of Create
	slow    time.Duration
	mu      sync.Mutex
	lease   *coordinationv1.Lease
}

var _ leader.Leases = &oneLease{}

// renew writes the lease for a holder whose clock shows now.
func (o *oneLease) renew(holder string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := metav1.NewMicroTime(now)
	l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at,
		LeaseDurationSeconds: new(int32(turnLasts.Seconds()))}}
	o.store(l)
}

func (o *oneLease) holder() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lease == nil {
		return ""
	}
	return *o.lease.Spec.HolderIdentity
}

func (o *oneLease) store(l *coordinationv1.Lease) *coordinationv1.Lease {
	version := "x"
	if o.lease != nil {
		version += o.lease.ResourceVersion
	}
	o.lease = l.DeepCopy()
	o.lease.ResourceVersion = version
	return o.lease.DeepCopy()
}

func (o *oneLease) Get(ctx context.Context, _, _ string) (*coordinationv1.Lease, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(o.slow):
	}
	o.renewed()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, turnLease)
	}
	return o.lease.DeepCopy(), nil
}

func (o *oneLease) Create(_ context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil, o.err
	}
	return o.store(l), nil
}

func (o *oneLease) Update(_ context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l.ResourceVersion != o.lease.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, turnLease, errors.New("changed"))
	}
	return o.store(l), nil
}
