package localstorage

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// recentFor is how long a measurement is good enough to be shown; one that took long is so for rest times as long, as
// in Watcher.Run. Kubernetes measures volumes as often by default (volumeStatsAggPeriod).
const recentFor = time.Minute

// Recent shows what pods have on the node's disk to who may ask often. It is safe for concurrent use.
type Recent struct {
	each func(context.Context, []*corev1.Pod, func(*corev1.Pod, Usage)) error
	now  func() time.Time

	turn  chan struct{} // holds one token while somebody measures or reads what follows
	until time.Time
	known map[types.UID]Usage
}

// NewRecent measures by w.
func NewRecent(w *Watcher, now func() time.Time) *Recent {
	return &Recent{each: w.Each, now: now, turn: make(chan struct{}, 1)}
}

// Usage is what pods have on disk, measured within recentFor or now. Pods that began since then are left out. With an
// error, and until the pause after it is over, it is what was known before.
func (r *Recent) Usage(ctx context.Context, pods []*corev1.Pod) (map[types.UID]Usage, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	begun := r.now()
	if begun.Before(r.until) {
		return r.known, nil
	}
	known := make(map[types.UID]Usage, len(pods))
	err := r.each(ctx, pods, func(p *corev1.Pod, u Usage) { known[p.UID] = u })
	ended := r.now()
	pause := rest * ended.Sub(begun) // also after an error: clients that ask and leave must not keep the disk busy
	if err == nil {
		r.known, pause = known, max(recentFor, pause)
	}
	r.until = ended.Add(pause)
	return r.known, err
}
