package pleg

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	before := map[types.UID]record{"same": {"a": "running"}, "changed": {"a": "running"}, "gone": {"a": "exited"}}
	after := map[types.UID]record{"same": {"a": "running"}, "changed": {"a": "exited"}, "new": {"s": "running"}}
	if got := diff(before, after); !reflect.DeepEqual(got, []types.UID{"changed", "gone", "new"}) {
		t.Errorf("got %v", got)
	}
}

type fake struct {
	pods   atomic.Pointer[[]*runtime.PodStatus]
	lists  atomic.Int32
	events func(ctx context.Context, connected func(), changed func(types.UID)) error
}

func (f *fake) Pods(context.Context) ([]*runtime.PodStatus, error) {
	f.lists.Add(1)
	return *f.pods.Load(), nil
}

func (f *fake) Events(ctx context.Context, connected func(), changed func(types.UID)) error {
	return f.events(ctx, connected, changed)
}

// handler calls itself with each change, and ignores lists.
type handler func(types.UID)

func (h handler) Changed(uid types.UID)     { h(uid) }
func (handler) Listed([]*runtime.PodStatus) {}

var ignore handler = func(types.UID) {}

var errNone = errors.New("none")

func TestRelistsFastWithoutEventsAndSlowlyWithThem(t *testing.T) {
	t.Parallel()
	for _, with := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{events: func(ctx context.Context, connected func(), _ func(types.UID)) error {
				if !with {
					return errNone
				}
				connected()
				<-ctx.Done()
				return ctx.Err()
			}}
			f.pods.Store(&[]*runtime.PodStatus{{UID: "u", Sandboxes: []runtime.Sandbox{{ID: "s", Ready: true}}}})
			var changed atomic.Int32
			g := New(Config{Runtime: f, Unsupported: errNone, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second+time.Millisecond)
			defer cancel()
			if err := g.Run(ctx, handler(func(types.UID) { changed.Add(1) })); err != nil {
				t.Fatal(err)
			}
			want := int32(21)
			if with {
				want = 3
			}
			if got := f.lists.Load(); got < want-1 || got > want+1 {
				t.Errorf("events %v: %d lists in 20 s, want %d", with, got, want)
			}
			if changed.Load() != 1 {
				t.Errorf("%d changes told, want 1", changed.Load())
			}
		})
	}
}

// What happens while the runtime restarts is told by no event: it must not wait for the slow relist.
func TestBrokenEventsMakeARelistDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := make(chan struct{})
		f := &fake{events: func(ctx context.Context, connected func(), _ func(types.UID)) error {
			connected()
			select {
			case <-broken:
				return errors.New("unavailable")
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		f.pods.Store(&[]*runtime.PodStatus{})
		g := New(Config{Runtime: f, Unsupported: errNone, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.Run(ctx, ignore) }()
		time.Sleep(15 * time.Second)
		before := f.lists.Load()
		close(broken)
		synctest.Wait()
		if got := f.lists.Load() - before; got != 1 {
			t.Errorf("%d lists at once", got)
		}
		time.Sleep(3*time.Second + time.Millisecond)
		if got := f.lists.Load() - before; got != 4 {
			t.Errorf("%d lists within 3 s, want one a second", got)
		}
		cancel()
		<-done
	})
}

// How every list went is told.
func TestListsAreObserved(t *testing.T) {
	t.Parallel()
	f := &fake{}
	f.pods.Store(&[]*runtime.PodStatus{{UID: "u"}})
	var seen []int
	g := New(Config{Runtime: f, Log: slog.New(slog.DiscardHandler),
		Observe: func(begun time.Time, _ time.Duration, pods []*runtime.PodStatus, err error) {
			if begun.IsZero() || err != nil {
				t.Errorf("begun %v, %v", begun, err)
			}
			seen = append(seen, len(pods))
		}})
	g.relist(t.Context(), ignore)
	f.pods.Store(&[]*runtime.PodStatus{})
	g.relist(t.Context(), ignore)
	if !reflect.DeepEqual(seen, []int{1, 0}) {
		t.Errorf("observed lists of %v pods", seen)
	}
}

func TestHealthyForThreeMinutesAfterARelist(t *testing.T) {
	t.Parallel()
	g, at := New(Config{}), time.Unix(1000, 0)
	if err := g.Healthy(at); err == nil || err.Error() != "pleg has yet to be successful" {
		t.Error("before the first relist:", err)
	}
	g.relisted.Store(at.UnixNano())
	if err := g.Healthy(at.Add(3 * time.Minute)); err != nil {
		t.Error(err)
	}
	if err := g.Healthy(at.Add(3*time.Minute + time.Second)); err == nil ||
		err.Error() != "pleg was last seen active 3m1s ago; threshold is 3m0s" {
		t.Error(err)
	}
}
