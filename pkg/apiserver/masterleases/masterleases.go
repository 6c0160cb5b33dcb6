// Package masterleases tells the API servers on one etcd of each other, as Kubernetes' do: each keeps a key under
// /registry/masterleases/, named by the address where it is reached, that etcd removes when it is not renewed. The
// endpoints of the Service "kubernetes" are made of them.
package masterleases

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/follow"
)

const (
	prefix = "/registry/masterleases/"
	// ttl is how long a server that died counts as alive, and renewEvery how often one that lives says so: upstream's.
	ttl        = 15 * time.Second
	renewEvery = 10 * time.Second
	// retryAfter is how soon a renewal that failed is tried again.
	retryAfter = time.Second
	// leaveTimeout bounds what a server does that goes; etcd does it otherwise.
	leaveTimeout = 5 * time.Second
)

// Leases are those of all servers, one of them this server's.
type Leases struct {
	storage storage.Interface
	own     netip.Addr
	codec   registry.Codec
	log     *slog.Logger

	mu   sync.Mutex // held while the own lease is written
	left bool
}

// New returns the leases for a server that is reached at own.
func New(s storage.Interface, own netip.Addr, log *slog.Logger) *Leases {
	gvk := corev1.SchemeGroupVersion.WithKind("Endpoints")
	return &Leases{storage: s, own: own, log: log,
		//nolint:staticcheck // what Kubernetes stores
		codec: registry.NewKindCodec(gvk, func() runtime.Object { return &corev1.Endpoints{} }, nil, nil)}
}

func (l *Leases) key() string { return prefix + l.own.String() }

// Alive renews this server's lease, unless it has left, and returns the addresses of all servers that have one, in
// order.
func (l *Leases) Alive(ctx context.Context) ([]netip.Addr, error) {
	if err := l.renew(ctx); err != nil {
		return nil, fmt.Errorf("renewing this API server's lease: %w", err)
	}
	list, err := l.storage.List(ctx, prefix, storage.ListOptions{Match: storage.Latest})
	if err != nil {
		return nil, fmt.Errorf("reading the leases of API servers: %w", err)
	}
	var out []netip.Addr
	for _, item := range list.Items {
		if a, err := netip.ParseAddr(strings.TrimPrefix(item.Key, prefix)); err == nil {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out, nil
}

// renew writes the lease. Its generation counts, as a write that changes nothing would not be one.
func (l *Leases) renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left {
		return nil
	}
	_, err := l.storage.Update(ctx, l.key(), func(item *storage.Item) (storage.Draft, error) {
		obj, err := l.codec.Decode(item.Value(), 0)
		if err != nil {
			return storage.Draft{}, fmt.Errorf("reading the lease: %w", err)
		}
		return l.draft(obj.(*corev1.Endpoints).Generation + 1) //nolint:staticcheck // as above
	})
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	d, err := l.draft(0)
	if err == nil {
		_, err = l.storage.Create(ctx, l.key(), d)
	}
	return err
}

func (l *Leases) draft(generation int64) (storage.Draft, error) {
	//nolint:staticcheck // as above
	ep := &corev1.Endpoints{
		Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: l.own.String()}}}}}
	ep.SetGroupVersionKind(l.codec.GVK())
	ep.Generation = generation
	d, err := l.codec.Draft(ep)
	d.TTL = ttl
	return d, err
}

// Leave takes this server's lease away, for good, and has changed bring in line what is made of the others'. It works
// on when ctx has ended, for a while.
func (l *Leases) Leave(ctx context.Context, changed func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	err := l.remove(ctx)
	if err == nil {
		err = changed(ctx)
	}
	if err != nil {
		l.log.Warn("the other API servers will notice later that this one has gone", "err", err)
	}
}

func (l *Leases) remove(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = true
	_, err := l.storage.Delete(ctx, l.key(), func(*storage.Item) error { return nil })
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// Run calls changed, which is to call Alive, often enough for the lease to stay, and when a server's lease ends, until
// ctx does.
func (l *Leases) Run(ctx context.Context, changed func(context.Context) error) error {
	gone := make(chan struct{}, 1)
	others := follow.New(follow.Resource{Source: l.storage, Prefix: prefix,
		Decode: func(v []byte) (runtime.Object, error) {
			return l.codec.Decode(v, 0)
		}}, departures(gone), l.log)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = others.Run(ctx) }) // returns nil, when ctx ends
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-gone:
		case <-time.After(wait):
		}
		wait = renewEvery
		if err := changed(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("the endpoints of the API servers are not in line", "err", err, "retry", retryAfter)
			wait = retryAfter
		}
	}
}

// departures tells that a lease has ended.
type departures chan struct{}

// Put implements follow.Handler. A server that comes puts itself among the endpoints.
func (departures) Put(string, runtime.Object) {}

// Delete implements follow.Handler.
func (d departures) Delete(string) {
	select {
	case d <- struct{}{}:
	default:
	}
}
