package cluster

import (
	"context"
	"slices"
	"sync"

	"bonsai/pkg/cluster/plan"
)

// portKeeper publishes the node ports that the cluster is to publish.
type portKeeper struct {
	*publisher

	mu      sync.Mutex // one change at a time
	running map[plan.PortMapping]publication
}

// publication is a published port. Its connections end with it.
type publication struct {
	stop context.CancelFunc
	wait func()
}

func (p publication) end() {
	p.stop()
	p.wait()
}

// keep publishes, until ctx ends, those of the mappings that are not published, and ends all others, first: their ports may be wanted for
// another node port. If one cannot be published, none of the new ones is.
func (k *portKeeper) keep(ctx context.Context, mappings []plan.PortMapping) error {
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
		wait, err := k.publish(life, []plan.PortMapping{m})
		if err != nil {
			stop()
			for m, p := range added {
				p.end()
				delete(k.running, m)
			}
			return err
		}
		added[m] = publication{stop, wait}
		k.running[m] = added[m]
	}
	return nil
}

// wait returns when nothing is published any more, once the context of keep has ended.
func (k *portKeeper) wait() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.running {
		p.end()
	}
}
