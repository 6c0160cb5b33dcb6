package inflight

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/apiserver/request"
)

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1, 0, time.Second)
		ctx := t.Context()
		first, ok := l.Acquire(ctx, Others, false)
		if !ok {
			t.Fatal("the first request was refused")
		}
		start := time.Now()
		if _, ok := l.Acquire(ctx, Others, false); ok {
			t.Fatal("a request beyond the bound got a turn")
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("refused after %v, want 1s", d)
		}
		for range 10 {
			if _, ok := l.Acquire(ctx, Others, true); !ok {
				t.Fatal("mutating requests have no bound here")
			}
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			first.End()
		}()
		if _, ok := l.Acquire(ctx, Others, false); !ok {
			t.Error("a freed turn was not given to the one who waits")
		}
		if n := l.InFlight(false); n != 1 {
			t.Errorf("in flight: %d, want 1", n)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, ok := l.Acquire(gone, Others, false); ok {
			t.Error("a request whose client left got a turn")
		}
	})
}

// TestKeptPermits: whatever others hold, the system has permits, and leases have some that the rest of the system
// cannot take.
func TestKeptPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(0, 16, time.Second)
		take := func(lane Lane) (n int) {
			for range 100 {
				if _, ok := l.Acquire(t.Context(), lane, true); !ok {
					return n
				}
				n++
			}
			return n
		}
		if n := take(Others); n != 13 {
			t.Errorf("others took %d of 16 permits, want 13", n)
		}
		if n := take(System); n != 2 {
			t.Errorf("the system took %d permits that are kept for it, want 2", n)
		}
		if n := take(Leases); n != 1 {
			t.Errorf("leases took %d permits that are kept for them, want 1", n)
		}
		if n := take(Exempt); n != 100 {
			t.Errorf("masters took %d permits, want as many as they like", n)
		}
		if n := l.InFlight(true); n != 16 {
			t.Errorf("in flight: %d, want 16", n)
		}
	})
}

// TestLargeBodies: only so many bytes of large bodies are in work, and they keep nobody with a small one waiting.
func TestLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := NewBodies(time.Second)
		take := func(lane Lane, bytes int) (Body, bool) { return bodies.Take(t.Context(), lane, bytes) }
		first, ok := take(Others, largeBodies)
		if !ok {
			t.Fatal("the first large body was refused")
		}
		if _, ok := take(Others, smallBody+1); ok {
			t.Error("a second large body is in work")
		}
		for _, lane := range []Lane{System, Leases, Exempt} {
			body, ok := take(lane, largeBodies)
			if !ok {
				t.Errorf("lane %d was refused for a large body of others", lane)
			}
			body.Give()
		}
		if _, ok := take(Others, smallBody); !ok {
			t.Error("a small body was refused")
		}
		first.Give()
		if body, ok := take(Others, 10*largeBodies); !ok {
			t.Error("a body beyond the bound was refused while it was alone")
		} else {
			body.Give()
		}
	})
}

func TestLaneOf(t *testing.T) {
	t.Parallel()
	lease := func(ns string) *request.Info {
		return &request.Info{IsResource: true, APIGroup: "coordination.k8s.io", Resource: "leases", Namespace: ns}
	}
	pods := &request.Info{IsResource: true, Resource: "pods", Namespace: "kube-system"}
	user := func(name string, groups ...string) *request.User { return &request.User{Name: name, Groups: groups} }
	for _, c := range []struct {
		user *request.User
		info *request.Info
		want Lane
	}{
		{user("root", request.GroupMasters), pods, Exempt},
		{user("system:node:a", request.GroupNodes), pods, System},
		{user("system:node:a", request.GroupNodes), lease("kube-node-lease"), Leases},
		{user("system:node:a", request.GroupNodes), lease("kube-system"), System},
		{user("system:kube-scheduler"), lease("kube-system"), Leases},
		{user("system:kube-controller-manager"), pods, System},
		{user("system:serviceaccount:kube-system:job-controller", "system:serviceaccounts:kube-system"), pods, System},
		{user("system:serviceaccount:x:y", "system:serviceaccounts:x"), lease("kube-system"), Others},
		{user("eve"), lease("kube-node-lease"), Others},
		{nil, pods, Others},
	} {
		if got := LaneOf(c.user, c.info); got != c.want {
			t.Errorf("%v %v: lane %d, want %d", c.user, c.info, got, c.want)
		}
	}
}
