package masterleases

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

func server(s storage.Interface, ip string) *Leases {
	return New(s, netip.MustParseAddr(ip), slog.New(slog.DiscardHandler))
}

func alive(t *testing.T, l *Leases) (out []string) {
	t.Helper()
	all, err := l.Alive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		out = append(out, a.String())
	}
	return out
}

// The bytes are those of kube-apiserver v1.36.3 at its second renewal.
func TestAsStored(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	l := server(s, "192.0.2.10")
	for range 3 {
		alive(t, l)
	}
	item, err := s.Get(t.Context(), "/registry/masterleases/192.0.2.10", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := "k8s\x00\n\x0f\n\x02v1\x12\tEndpoints\x12$\n\x10\n\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x02B\x00\x12\x10\n\x0e\n\n192.0.2.10\x1a\x00\x1a\x00\"\x00"
	if got := string(item.Value()); got != want {
		t.Errorf("stored %q\n  want %q", got, want)
	}
}

func TestComeAndGo(t *testing.T) {
	t.Parallel()
	s := memory.New(nil)
	a, b := server(s, "192.0.2.10"), server(s, "192.0.2.9")
	if got, want := alive(t, a), []string{"192.0.2.10"}; !slices.Equal(got, want) {
		t.Errorf("alone: %v, want %v", got, want)
	}
	if got, want := alive(t, b), []string{"192.0.2.9", "192.0.2.10"}; !slices.Equal(got, want) {
		t.Errorf("both: %v, want %v", got, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var told []netip.Addr
	a.Leave(ended, func(ctx context.Context) (err error) {
		told, err = a.Alive(ctx)
		return err
	})
	if len(told) != 1 || told[0] != b.own {
		t.Errorf("when it has left: %v", told)
	}
	if got, want := alive(t, a), []string{"192.0.2.9"}; !slices.Equal(got, want) {
		t.Errorf("who has left came back: %v, want %v", got, want)
	}
}

// TestRun: what is made of the leases is brought in line often enough, soon again after a failure, and at once when a
// lease ends.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		a, dies, leaves := server(s, "192.0.2.1"), server(s, "192.0.2.2"), server(s, "192.0.2.3")
		alive(t, dies)
		ctx, cancel := context.WithCancel(t.Context())
		begin := time.Now()
		var at []time.Duration
		var fail atomic.Bool
		done := make(chan error)
		go func() {
			done <- a.Run(ctx, func(ctx context.Context) error {
				at = append(at, time.Since(begin))
				if fail.CompareAndSwap(true, false) {
					return errors.New("no")
				}
				_, err := a.Alive(ctx)
				return err
			})
		}()
		time.Sleep(12 * time.Second)
		alive(t, leaves)
		time.Sleep(8 * time.Second)
		leaves.Leave(ctx, func(context.Context) error { return nil })
		synctest.Wait()
		fail.Store(true)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second,
			31 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("in line at %v, want %v", at, want)
		}
	})
}
