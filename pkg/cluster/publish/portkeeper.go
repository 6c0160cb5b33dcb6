package publish

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"bonsai/pkg/cluster/plan"
)

// PortKeeper publishes the node ports that a cluster wants, which may change while it runs.
type PortKeeper struct {
	*Publisher

	mu      sync.Mutex // one change at a time
	running map[plan.PortMapping]publication
}

// NewPortKeeper returns a keeper that publishes nothing yet.
func NewPortKeeper(log *slog.Logger) *PortKeeper {
	return &PortKeeper{Publisher: New(log), running: map[plan.PortMapping]publication{}}
}

// publication is one published port. Its connections end with it.
type publication struct {
	stop context.CancelFunc
	wait func()
}

// end returns when the port is free again.
func (p publication) end() {
	p.stop()
	p.wait()
}

// Keep publishes, until ctx ends, the mappings that are not published yet. First it ends all others, because their
// ports may be wanted for another node port. If one mapping cannot be published, none of the new ones is.
//
// The supervisor calls it at its start and for each reload. mu is held throughout, also while connections of ended
// mappings close. After a failure the ended mappings stay ended: whoever asked for the change restores the earlier
// configuration and asks again (changeFrom).
func (k *PortKeeper) Keep(ctx context.Context, mappings []plan.PortMapping) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for m, p := range k.running {
		if !slices.Contains(mappings, m) {
			p.end()
			delete(k.running, m)
		}
	}
	added := map[plan.PortMapping]publication{}
	for _, m := range mappings {
		if _, is := k.running[m]; is {
			continue
		}
		life, stop := context.WithCancel(ctx)
		wait, err := k.Publish(life, []plan.PortMapping{m})
		if err != nil {
			stop()
			for m, p := range added {
				p.end()
				delete(k.running, m)
			}
			return fmt.Errorf("publish node port %d: %w", m.NodePort, err)
		}
		added[m] = publication{stop, wait}
		k.running[m] = added[m]
	}
	return nil
}

// Wait returns when nothing is published any more, once the context of Keep has ended.
func (k *PortKeeper) Wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.running {
		p.end()
	}
}
