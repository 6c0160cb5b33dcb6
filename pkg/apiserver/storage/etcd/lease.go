package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	// leaseKeys is how many keys share a lease at most: etcd deletes them in one go when it ends.
	leaseKeys = 1000
	// leaseWindow is how long after its making a lease takes new keys at most; shorter for TTLs under 20 minutes.
	leaseWindow = time.Minute
)

// leases hands out etcd leases for TTLs. Keys written within a window (a twentieth of the TTL, between one second and
// leaseWindow) share a lease that lives for the TTL and the window: a key lives between TTL and TTL plus window. etcd's
// own granularity is about two seconds.
type leases struct {
	client pb.LeaseClient
	call   []grpc.CallOption

	mu   sync.Mutex
	open map[int64]*lease // by TTL in seconds
}

type lease struct {
	id    int64
	until time.Time // takes keys until then
	keys  int
}

// take returns a lease for one more key with this TTL. One caller at a time makes a new one; the others wait for it,
// with the lock held over the request. ctx has the store's time limit (Store.do), which bounds that wait: the limit of
// each waiter runs while it waits. A failed grant leaves nothing behind, and the next caller tries again.
//
// A lease for each key would cost etcd far more: etcd keeps and ends each lease on its own.
func (l *leases) take(ctx context.Context, ttl time.Duration, now time.Time) (int64, error) {
	window := min(max(ttl/20, time.Second), leaseWindow).Truncate(time.Second)
	seconds := int64((ttl + time.Second - 1) / time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	if open := l.open[seconds]; open != nil && open.keys < leaseKeys && now.Before(open.until) {
		open.keys++
		return open.id, nil
	}
	resp, err := l.client.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: seconds + int64(window/time.Second)}, l.call...)
	if err != nil {
		return 0, fmt.Errorf("grant a lease of %v: %w", ttl, err)
	}
	for s, old := range l.open {
		if !now.Before(old.until) {
			delete(l.open, s)
		}
	}
	l.open[seconds] = &lease{id: resp.ID, until: now.Add(window), keys: 1}
	return resp.ID, nil
}

// drop forgets the lease of this TTL, which etcd says is gone.
func (l *leases) drop(ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, int64((ttl+time.Second-1)/time.Second))
}
