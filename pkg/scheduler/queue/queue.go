// Package queue holds the pods that want a node. A pod is in one place at a time:
//
//   - active: to be tried, by priority and then by age;
//   - back-off: failed lately and worth another try after 1 s, 2 s, 4 s … 10 s, or earlier when nothing is active; what failed
//     for an error waits out its time;
//   - unschedulable: failed, and nothing has happened since that could help;
//   - gated: held back by a PreEnqueue plug-in, not tried at all;
//   - in flight: popped, being scheduled or bound.
//
// Moved reports a change of the cluster; pods move from unschedulable to back-off or active when a plug-in that turned them
// down hopes for something from it. Changes during a pod's flight count as well: they are remembered until the pod lands.
package queue

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/framework"
)

// Config is what a Queue needs.
type Config struct {
	// Profile returns the profile that schedules the pod; pods without one never come here.
	Profile func(*framework.PodInfo) *framework.Profile
	// Less orders the active pods.
	Less func(a, b *framework.QueuedPod) bool
	Now  func() time.Time
	// InitialBackoff doubles with each failure up to MaxBackoff. Defaults: 1 s, 10 s.
	InitialBackoff, MaxBackoff time.Duration
	// MaxUnschedulable is how long a pod stays unschedulable before it is tried again without any event. Default 5 min.
	MaxUnschedulable time.Duration
}

// Queue is safe for concurrent use; one goroutine pops.
type Queue struct {
	cfg Config

	mu     sync.Mutex
	active *heap
	// backoff holds what failed for the state of the cluster, erring what failed for an error.
	backoff, erring *heap
	unschedulable   map[types.UID]*item
	watches         watches // of unschedulable but for the gated
	flights         map[types.UID]*flight
	log             eventLog
	wake            chan struct{}
	nextSweep       time.Time
}

// item is a pod in the queue; until is when its back-off ends, failed when it failed last.
type item struct {
	*framework.QueuedPod
	until, failed time.Time
	err           bool    // it failed for an error
	places        []place // in watches
}

// flight is a popped pod: what happened from position from on may help it.
type flight struct {
	it      *item
	from    int
	updated *framework.PodInfo
	deleted bool
	again   bool // Activate was called
}

// window is how precisely the pods in back-off are ordered by time: within it priority decides who is tried early, as upstream.
const window = time.Second

const sweepEvery = 30 * time.Second

// New returns an empty queue.
func New(cfg Config) *Queue {
	if cfg.InitialBackoff == 0 {
		cfg.InitialBackoff = time.Second
	}
	if cfg.MaxBackoff == 0 {
		cfg.MaxBackoff = 10 * time.Second
	}
	if cfg.MaxUnschedulable == 0 {
		cfg.MaxUnschedulable = 5 * time.Minute
	}
	q := &Queue{cfg: cfg, unschedulable: map[types.UID]*item{}, flights: map[types.UID]*flight{}, wake: make(chan struct{}, 1)}
	q.active = newHeap(func(a, b *item) bool { return cfg.Less(a.QueuedPod, b.QueuedPod) })
	q.backoff = newHeap(func(a, b *item) bool {
		if x, y := a.until.Truncate(window), b.until.Truncate(window); !x.Equal(y) {
			return x.Before(y)
		}
		return cfg.Less(a.QueuedPod, b.QueuedPod)
	})
	q.erring = newHeap(func(a, b *item) bool { return a.until.Before(b.until) })
	return q
}

// Add takes in a pod that is new to the queue; a known one is updated.
func (q *Queue) Add(p *framework.PodInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.find(p.Pod.UID) != nil || q.flights[p.Pod.UID] != nil {
		q.update(p, framework.Event{})
		return
	}
	now := q.cfg.Now()
	q.activate(&item{QueuedPod: &framework.QueuedPod{PodInfo: p, Added: now, FirstAdded: now}})
}

// activate puts it into the active queue, or with the unschedulable pods if PreEnqueue holds it back.
func (q *Queue) activate(it *item) {
	if s := q.cfg.Profile(it.PodInfo).RunPreEnqueue(it.PodInfo); !s.IsSuccess() {
		it.Gated = s.Plugin
		it.Failed = map[string]bool{s.Plugin: true}
		it.failed = q.cfg.Now()
		q.park(it)
		return
	}
	it.Gated = ""
	it.Added = q.cfg.Now()
	q.active.push(it)
	q.signal()
}

func (q *Queue) park(it *item) {
	if len(q.unschedulable) == 0 {
		q.nextSweep = q.cfg.Now().Add(sweepEvery)
		q.signal()
	}
	q.unschedulable[it.Pod.UID] = it
	if it.Gated == "" {
		q.watches.add(q.cfg.Profile(it.PodInfo), it)
	}
}

// unpark takes it out of the unschedulable pods.
func (q *Queue) unpark(it *item) {
	q.watches.remove(it)
	delete(q.unschedulable, it.Pod.UID)
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) find(uid types.UID) *item {
	if it := q.active.get(uid); it != nil {
		return it
	}
	if it := q.backoff.get(uid); it != nil {
		return it
	}
	if it := q.erring.get(uid); it != nil {
		return it
	}
	return q.unschedulable[uid]
}

// Update replaces a waiting pod. e says what of it changed, with Action 0 for nothing that a plug-in reads.
func (q *Queue) Update(p *framework.PodInfo, e framework.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.update(p, e)
}

func (q *Queue) update(p *framework.PodInfo, e framework.Event) {
	uid := p.Pod.UID
	if f := q.flights[uid]; f != nil {
		f.updated = p
		if e.Action != 0 {
			q.log.add(e)
		}
		return
	}
	it := q.find(uid)
	if it == nil {
		return
	}
	it.PodInfo = p
	q.active.fix(uid)
	q.backoff.fix(uid)
	if q.unschedulable[uid] == nil || e.Action == 0 {
		return
	}
	q.unpark(it)
	if q.cfg.Profile(p).Helps(p, it.Failed, e) {
		q.revive(it)
	} else {
		q.park(it)
	}
}

// revive moves a pod that may be schedulable now to where its back-off allows.
func (q *Queue) revive(it *item) {
	if it.Gated == "" && it.until.After(q.cfg.Now()) {
		if it.err {
			q.erring.push(it)
		} else {
			q.backoff.push(it)
		}
		q.signal()
		return
	}
	q.activate(it)
}

// Activate has a waiting pod tried at once, whatever it waits for but its gates. One that is in flight is tried again when it
// lands.
func (q *Queue) Activate(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.flights[uid]; f != nil {
		f.again = true
		return
	}
	if it := q.find(uid); it != nil && q.active.get(uid) == nil {
		q.remove(uid)
		q.activate(it)
	}
}

// Ungate asks again the PreEnqueue plug-ins of a pod that one of them holds back.
func (q *Queue) Ungate(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.unschedulable[uid]; it != nil && it.Gated != "" {
		q.remove(uid)
		q.activate(it)
	}
}

// Delete drops a pod.
func (q *Queue) Delete(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.flights[uid]; f != nil {
		f.deleted = true
	}
	q.remove(uid)
}

// remove takes a pod that is not in flight out of its place.
func (q *Queue) remove(uid types.UID) {
	q.active.remove(uid)
	q.backoff.remove(uid)
	q.erring.remove(uid)
	if it := q.unschedulable[uid]; it != nil {
		q.unpark(it)
	}
}

// Pop waits for the next pod to try; false says that ctx ended. The pod is in flight until Done or Requeue.
func (q *Queue) Pop(ctx context.Context) (*framework.QueuedPod, bool) {
	var timer *time.Timer
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for ctx.Err() == nil {
		it, wait := q.next()
		if it != nil {
			return it.QueuedPod, true
		}
		var tick <-chan time.Time
		if wait > 0 {
			if timer != nil {
				timer.Stop()
			}
			timer = time.NewTimer(wait)
			tick = timer.C
		}
		select {
		case <-ctx.Done():
		case <-q.wake:
		case <-tick:
		}
	}
	return nil, false
}

// next returns the next active pod, or how long to wait for one at most (0: until something happens).
func (q *Queue) next() (*item, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.cfg.Now()
	q.flush(now)
	for q.active.len() == 0 && q.backoff.len() > 0 {
		q.activate(q.backoff.pop())
	}
	if q.active.len() == 0 {
		var wait time.Duration
		if it := q.erring.peek(); it != nil {
			wait = max(it.until.Sub(now), time.Millisecond)
		}
		if len(q.unschedulable) > 0 {
			if sweep := max(q.nextSweep.Sub(now), time.Millisecond); wait == 0 || sweep < wait {
				wait = sweep
			}
		}
		return nil, wait
	}
	it := q.active.pop()
	it.Attempts++
	q.flights[it.Pod.UID] = &flight{it: it, from: q.log.end()}
	return it, 0
}

// flush moves pods whose time has come.
func (q *Queue) flush(now time.Time) {
	for _, h := range []*heap{q.backoff, q.erring} {
		for it := h.peek(); it != nil && !it.until.After(now); it = h.peek() {
			q.activate(h.pop())
		}
	}
	if len(q.unschedulable) == 0 || now.Before(q.nextSweep) {
		return
	}
	q.nextSweep = now.Add(sweepEvery)
	for _, it := range q.unschedulable {
		if it.Gated == "" && now.Sub(it.failed) >= q.cfg.MaxUnschedulable {
			q.unpark(it)
			q.revive(it)
		}
	}
}

// Done ends the flight of a pod that was bound or is gone.
func (q *Queue) Done(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.land(uid)
}

// land forgets the flight and the events that only it could still need.
func (q *Queue) land(uid types.UID) *flight {
	f := q.flights[uid]
	delete(q.flights, uid)
	if len(q.flights) == 0 {
		q.log.clear()
	} else if f != nil && q.log.size() > trimAbove {
		first := q.log.end()
		for _, other := range q.flights {
			first = min(first, other.from)
		}
		q.log.trim(first)
	}
	return f
}

// Requeue takes a popped pod back after a failure: failed names the plug-ins that turned it down, d says why. retry means
// that it failed for an error and not for the state of the cluster; such a pod is tried again after its back-off. false says
// that the pod was deleted meanwhile and is forgotten.
func (q *Queue) Requeue(p *framework.QueuedPod, failed map[string]bool, d *framework.Diagnosis, retry bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	uid := p.Pod.UID
	f := q.flights[uid]
	if f == nil || f.deleted {
		q.land(uid)
		return false
	}
	it := f.it
	if f.updated != nil {
		it.PodInfo = f.updated
	}
	now := q.cfg.Now()
	it.Failed, it.Diagnosis, it.failed = failed, d, now
	it.until = now.Add(q.backoffOf(it.Attempts))
	it.err = retry
	hope := retry || f.again
	profile := q.cfg.Profile(it.PodInfo)
	q.log.since(f.from, func(e framework.Event) bool {
		// A change of the pod itself is its own affair; that its own assumption was taken back helps others only.
		hope = hope || (e.Kind == framework.TargetPod) == about(e, uid) && profile.Helps(it.PodInfo, failed, e)
		return !hope
	})
	q.land(uid)
	if hope {
		q.revive(it)
	} else {
		q.park(it)
	}
	return true
}

func about(e framework.Event, uid types.UID) bool {
	for _, side := range []any{e.Old, e.New} {
		if p, ok := side.(*framework.PodInfo); ok && p != nil && p.Pod.UID == uid {
			return true
		}
	}
	return false
}

func (q *Queue) backoffOf(attempts int) time.Duration {
	d := q.cfg.InitialBackoff
	for i := 1; i < attempts && d < q.cfg.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, q.cfg.MaxBackoff)
}

// Moved tells that something happened which may help pods that failed.
func (q *Queue) Moved(e framework.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.flights) > 0 {
		q.log.add(e)
	}
	for _, it := range q.watches.helped(e) {
		q.unpark(it)
		q.revive(it)
	}
}

// Counts are the numbers of pods by place.
type Counts struct{ Active, Backoff, Unschedulable, Gated, InFlight int }

// Counts tells how many pods are where.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := Counts{Active: q.active.len(), Backoff: q.backoff.len() + q.erring.len(), InFlight: len(q.flights)}
	for _, it := range q.unschedulable {
		if it.Gated != "" {
			c.Gated++
		} else {
			c.Unschedulable++
		}
	}
	return c
}

// Waiting calls yield with each pod that is not in flight, as a copy, until it returns false.
func (q *Queue) Waiting(yield func(framework.QueuedPod) bool) {
	q.mu.Lock()
	var all []framework.QueuedPod
	for _, h := range []*heap{q.active, q.backoff, q.erring} {
		for _, it := range h.items {
			all = append(all, *it.QueuedPod)
		}
	}
	for _, it := range q.unschedulable {
		all = append(all, *it.QueuedPod)
	}
	q.mu.Unlock()
	for _, p := range all {
		if !yield(p) {
			return
		}
	}
}
