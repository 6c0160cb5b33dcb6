package serviceip

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/storage"
)

// suspects are ports that were taken by no service, and since when. A port is taken before its service is stored, so it
// must be one for leakAge before it is given back.
type suspects map[int]time.Time

// leaked finds what is to be given back of taken, and when there may be more, zero for never. It is pure except s,
// which it brings up to date.
func (s suspects) leaked(taken, held *numbers, now time.Time) (leaks []int, again time.Time) {
	for n := range taken.size {
		if !taken.has(n) || held.has(n) {
			delete(s, n)
			continue
		}
		since, known := s[n]
		if !known {
			s[n], since = now, now
		}
		switch old := since.Add(leakAge); {
		case !now.Before(old):
			leaks = append(leaks, n)
		case again.IsZero() || old.Before(again):
			again = old
		}
	}
	return leaks, again
}

// errMoved: somebody took or gave back ports meanwhile.
var errMoved = errors.New("node ports were taken or given back meanwhile")

// repair takes the ports that services have and nobody has taken, and gives back what has leaked. It returns what it
// gave back, and when there may be more to do, zero for never.
func (p *nodePorts) repair(ctx context.Context, now time.Time) (leaks []int, again time.Time, err error) {
	item, err := p.storage.Get(ctx, nodePortsKey, 0)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, time.Time{}, p.begin(ctx)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	// The services come after the ports: if the ports are still the same when they are written, the service of one that
	// is taken is stored.
	services, err := p.services(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	taken, err := p.decode(item.Value())
	if err != nil {
		return nil, time.Time{}, err
	}
	held := p.held(services)
	leaks, again = p.suspects.leaked(taken, held, now)
	taken.used.Or(taken.used, held.used)
	for i, n := range leaks {
		taken.free(n)
		leaks[i] = p.first + n
	}
	_, err = p.storage.Update(ctx, nodePortsKey, func(current *storage.Item) (storage.Draft, error) {
		if current.Revision != item.Revision {
			return storage.Draft{}, errMoved
		}
		return p.draft(taken)
	})
	if errors.Is(err, errMoved) {
		return nil, now.Add(retryAfter), nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("repairing node ports: %w", err)
	}
	return leaks, again, nil
}

// shared are the node ports that several services have, which only who runs the cluster can mend.
func (p *nodePorts) shared(services []*corev1.Service) (conflicts []string) {
	owner := map[int]string{}
	for _, svc := range services {
		name := svc.Namespace + "/" + svc.Name
		for _, port := range holdingsOf(svc).ports {
			if other, ok := owner[port]; ok {
				conflicts = append(conflicts, fmt.Sprintf("%d of %s, and of %s", port, name, other))
				continue
			}
			owner[port] = name
		}
	}
	return conflicts
}
