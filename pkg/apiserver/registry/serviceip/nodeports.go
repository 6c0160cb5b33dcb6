package serviceip

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// Storage is the part of storage.Interface that node ports need.
type Storage interface {
	Create(ctx context.Context, key string, d storage.Draft) (*storage.Item, error)
	Get(ctx context.Context, key string, notOlderThan int64) (*storage.Item, error)
	Update(ctx context.Context, key string, change func(current *storage.Item) (storage.Draft, error)) (*storage.Item,
		error)
}

// nodePortsKey is where Kubernetes keeps which node ports are taken: a RangeAllocation whose range is "30000-32767" and
// whose data is a number, its first byte the highest, with a bit for each port, the lowest one for the first.
const nodePortsKey = "/registry/ranges/servicenodeports"

// nodePorts are the node ports of all services, as all API servers on one storage agree on them. One stored object has
// all of them, so each change is a race for that object. turn keeps the requests of this server out of it; against
// other servers, storage.Update tries again.
type nodePorts struct {
	storage     Storage
	codec       registry.Codec
	first, last int
	random      *rand.Rand // belongs to who has the turn
	services    func(context.Context) ([]*corev1.Service, error)
	// turn is held by the one of this server that chooses, so that they do not come between each other.
	turn chan struct{}
	// suspects belong to Repair.
	suspects suspects
}

func newNodePorts(s Storage, first, last int, random *rand.Rand,
	services func(context.Context) ([]*corev1.Service, error)) *nodePorts {
	gvk := corev1.SchemeGroupVersion.WithKind("RangeAllocation")
	return &nodePorts{storage: s, first: first, last: last, random: random, services: services,
		turn: make(chan struct{}, 1), suspects: suspects{},
		codec: registry.NewKindCodec(gvk, func() runtime.Object { return &corev1.RangeAllocation{} }, nil, nil)}
}

// portBand is KEP-3668's lower band of the node ports.
func portBand(size int) int {
	if size < 64 {
		return 0
	}
	return min(max(16, size/32), 128)
}

func (p *nodePorts) empty() *numbers {
	size := p.last - p.first + 1
	return &numbers{size: size, lower: portBand(size), used: new(big.Int)}
}

// held are the ports that services have.
func (p *nodePorts) held(services []*corev1.Service) *numbers {
	out := p.empty()
	for _, svc := range services {
		for _, port := range holdingsOf(svc).ports {
			if p.contains(port) {
				out.take(port - p.first)
			}
		}
	}
	return out
}

func (p *nodePorts) contains(port int) bool { return port >= p.first && port <= p.last }

func (p *nodePorts) draft(n *numbers) (storage.Draft, error) {
	r := &corev1.RangeAllocation{Range: fmt.Sprintf("%d-%d", p.first, p.last), Data: n.used.Bytes()}
	r.SetGroupVersionKind(p.codec.GVK())
	d, err := p.codec.Draft(r)
	if err != nil {
		return d, fmt.Errorf("encoding which node ports are taken: %w", err)
	}
	return d, nil
}

// decode reads which ports are taken. Of another range than the flag's, which servers had before, the ports in common
// count.
func (p *nodePorts) decode(value []byte) (*numbers, error) {
	obj, err := p.codec.Decode(value, 0)
	if err != nil {
		return nil, fmt.Errorf("reading which node ports are taken: %w", err)
	}
	r, ok := obj.(*corev1.RangeAllocation)
	if !ok {
		return nil, fmt.Errorf("reading which node ports are taken: it is a %T", obj)
	}
	had, err := utilnet.ParsePortRange(r.Range)
	if err != nil {
		return nil, fmt.Errorf("reading which node ports are taken: %w", err)
	}
	out, stored := p.empty(), new(big.Int).SetBytes(r.Data)
	for port := p.first; port <= p.last; port++ {
		if had.Contains(port) && stored.Bit(port-had.Base) == 1 {
			out.take(port - p.first)
		}
	}
	return out, nil
}

// change lets f take ports and free them, again and again until no other server came between; f must not change
// anything else. Where nothing is stored yet, what the services have is taken.
func (p *nodePorts) change(ctx context.Context, f func(*numbers) error) error {
	if err := p.await(ctx); err != nil {
		return err
	}
	defer p.pass()
	for {
		_, err := p.storage.Update(ctx, nodePortsKey, func(item *storage.Item) (storage.Draft, error) {
			taken, err := p.decode(item.Value())
			if err != nil {
				return storage.Draft{}, err
			}
			if err := f(taken); err != nil {
				return storage.Draft{}, err
			}
			return p.draft(taken)
		})
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if err := p.begin(ctx); err != nil {
			return err
		}
	}
}

// begin stores what the services have, unless something is stored. Of several servers that begin at the same time, the
// first wins, and the others go on with its object.
func (p *nodePorts) begin(ctx context.Context) error {
	services, err := p.services(ctx)
	if err != nil {
		return err
	}
	d, err := p.draft(p.held(services))
	if err != nil {
		return err
	}
	if _, err = p.storage.Create(ctx, nodePortsKey, d); errors.Is(err, storage.ErrExists) {
		return nil
	}
	return err
}

// release gives ports back.
func (p *nodePorts) release(ctx context.Context, ports []int) error {
	if len(ports) == 0 {
		return nil
	}
	return p.change(ctx, func(taken *numbers) error {
		for _, port := range ports {
			if p.contains(port) {
				taken.free(port - p.first)
			}
		}
		return nil
	})
}

// look shows f which ports are taken; what f takes is not.
func (p *nodePorts) look(ctx context.Context, f func(*numbers) error) error {
	if err := p.await(ctx); err != nil {
		return err
	}
	defer p.pass()
	item, err := p.storage.Get(ctx, nodePortsKey, 0)
	if errors.Is(err, storage.ErrNotFound) {
		services, err := p.services(ctx)
		if err != nil {
			return err
		}
		return f(p.held(services))
	}
	if err != nil {
		return err
	}
	taken, err := p.decode(item.Value())
	if err != nil {
		return err
	}
	return f(taken)
}

// await waits for the turn, which pass ends. A channel and not a mutex: a request that ends stops waiting. The turn is
// held over requests to the storage, which have their own time limit.
func (p *nodePorts) await(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *nodePorts) pass() { <-p.turn }
