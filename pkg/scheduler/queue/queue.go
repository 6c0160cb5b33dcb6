// Package queue holds the pods that want a node. A pod is in one place at a time:
//
//   - active: to be tried, by priority and then by age;
//   - back-off: failed lately and worth another try after 1 s, 2 s, 4 s … 10 s, or earlier when nothing is active; a
//     pod that failed for an error always waits out its time;
//   - unschedulable: failed, and nothing has happened since that could help;
//   - gated: held back by a PreEnqueue plug-in, not tried at all;
//   - in flight: popped, being scheduled or bound.
//
// Moved reports a change of the cluster. Pods move from unschedulable to back-off or active if a plug-in that turned
// them down says that the change may help. Changes during a pod's flight count as well: they are remembered until the
// pod lands. During a long flight only the latest changes are kept. A change that was dropped counts as help, so that
// such a pod is tried once too often and never once too few.
//
// The caller of Moved does not wait until thousands of pods have been examined: Moved only notes the change. Pop
// examines and moves pods before it chooses one, a portion at a time, so that the lock is never held for long.
//
// Who calls: handlers of watch events call Add, Update, Delete and Moved; the scheduling goroutine alone calls Pop; it
// and the goroutines of bindings call Requeue and Done. Upstream documents the same queues and events in KEP-4247
// (queueing hints) and KEP-5142 (early retries out of the back-off when nothing is active).
package queue

import (
	"container/list"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

// Config is what a Queue needs.
type Config struct {
	// Profile returns the profile that schedules the pod; pods without one never come here.
	Profile func(*model.PodInfo) *profile.Profile
	// Less orders the active pods.
	Less func(a, b *framework.QueuedPod) bool
	Now  func() time.Time
	// InitialBackoff doubles with each failure up to MaxBackoff. Defaults: 1 s, 10 s.
	InitialBackoff, MaxBackoff time.Duration
	// MaxUnschedulable is how long a pod stays unschedulable before it is tried again without any event. Default 5 min.
	MaxUnschedulable time.Duration
	// Incoming hears of each pod that comes into a queue ("active", "backoff", "unschedulable" or "gated") and of what
	// brought it there: the label of an event, or one of those below. It must be quick; nil hears nothing.
	Incoming func(queue, event string)
}

// What brings pods into a queue beside changes of the cluster, in upstream's words.
const (
	podAdd         = "UnscheduledPodAdd"
	podUpdate      = "PodUpdate"
	attemptFailure = "ScheduleAttemptFailure"
	backoffOver    = "BackoffComplete"
	timeout        = "UnschedulableTimeout"
	forced         = "ForceActivate"
)

// Queue is safe for concurrent use; one goroutine pops.
type Queue struct {
	cfg Config

	// mu guards all below but wake. Plug-ins are asked under it, so that no event comes between the answer and the
	// move; therefore in portions.
	mu sync.Mutex
	// items are all pods that are not in flight; each is in one of the heaps.
	items  map[types.UID]*item
	active *heap
	// backoff holds what failed for the state of the cluster, erring what failed for an error.
	backoff, erring *heap
	// unschedulable and gated begin with the pod that is there for longest.
	unschedulable, gated *heap
	watches              watches // of unschedulable
	flights              map[types.UID]*flight
	// flying has the flights by the positions that they began at: the first one tells which events are still needed.
	flying list.List
	log    eventLog
	// wake has room for one: Pop looks at everything when it is woken, so a second waking would tell it nothing.
	wake chan struct{}
}

// item is a pod in the queue.
type item struct {
	*framework.QueuedPod
	// until is when its back-off ends, failed when it failed last.
	until, failed time.Time
	err           bool // it failed for an error
	// in is the heap that has it, nil in flight; at is its place there.
	in          *heap
	at          int
	memberships []membership // in watches
}

// flight is a popped pod: what happened from position from on may help it.
type flight struct {
	it      *item
	from    int
	element *list.Element // in flying
	updated *model.PodInfo
	deleted bool
	again   bool // Retry was called
}

// window is how precisely the back-off of what failed for the state of the cluster is kept: it ends with the second,
// and of those that end together priority decides who is tried first, as upstream.
const window = time.Second

// portion is how many pods Pop moves, or asks for, without letting others have the lock: well below a millisecond's
// work.
const portion = 128

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
	if cfg.Incoming == nil {
		cfg.Incoming = func(string, string) {}
	}
	q := &Queue{cfg: cfg, items: map[types.UID]*item{}, flights: map[types.UID]*flight{}, wake: make(chan struct{}, 1)}
	q.active = newHeap(func(a, b *item) bool { return cfg.Less(a.QueuedPod, b.QueuedPod) })
	q.backoff = newHeap(func(a, b *item) bool {
		if !a.until.Equal(b.until) {
			return a.until.Before(b.until)
		}
		return cfg.Less(a.QueuedPod, b.QueuedPod)
	})
	q.erring = newHeap(func(a, b *item) bool { return a.until.Before(b.until) })
	longest := func(a, b *item) bool { return a.failed.Before(b.failed) }
	q.unschedulable, q.gated = newHeap(longest), newHeap(longest)
	return q
}

// Add takes in a pod that is new to the queue; a known one is updated.
//
// The handler of pods calls it for a pod without a node whose profile exists. A PreEnqueue plug-in may hold it back at
// once.
func (q *Queue) Add(p *model.PodInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.items[p.Pod.UID] != nil || q.flights[p.Pod.UID] != nil {
		q.update(p, clusterevent.Event{})
		return
	}
	now := q.cfg.Now()
	it := &item{QueuedPod: &framework.QueuedPod{PodInfo: p}}
	q.items[p.Pod.UID] = it
	q.activate(it, now, podAdd)
}

// activate puts it into the active queue as of the given time, or with the gated pods if PreEnqueue holds it back.
// event says why. q.mu is held, and the caller has taken the pod out of its former heap.
func (q *Queue) activate(it *item, at time.Time, event string) {
	if s := q.cfg.Profile(it.PodInfo).RunPreEnqueue(it.PodInfo); !s.IsSuccess() {
		it.Gated = s.Plugin
		it.Failed = map[string]bool{s.Plugin: true}
		it.failed = q.cfg.Now()
		q.gated.push(it)
		q.cfg.Incoming("gated", event)
		return
	}
	it.Gated = ""
	it.Added = at
	if it.FirstAdded.IsZero() {
		it.FirstAdded = at
	}
	q.active.push(it)
	q.cfg.Incoming("active", event)
	q.signal()
}

// park puts it with the pods that wait for an event.
func (q *Queue) park(it *item) {
	q.unschedulable.push(it)
	q.watches.add(q.cfg.Profile(it.PodInfo), it)
	if q.unschedulable.peek() == it {
		q.signal() // Pop must know when its time comes
	}
}

// take takes a pod that is not in flight out of its place.
func (q *Queue) take(it *item) {
	it.in.remove(it)
	q.watches.remove(it)
}

// signal wakes Pop. It never blocks: one waking is enough for any number of reasons.
func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// find returns a pod that is not in flight, in the place where it belongs: if an event has helped it, it is moved now.
//
// Events are only noted when they happen, so a pod may still be where the last event found it. Callers that judge a pod
// by its place settle it first.
func (q *Queue) find(uid types.UID) *item {
	it := q.items[uid]
	if it == nil {
		return nil
	}
	if at, event, ok := q.watches.helpedAt(it); ok {
		q.take(it)
		q.revive(it, at, event)
	}
	return it
}

// Update replaces a waiting pod. e says what of it changed, with Action 0 for nothing that a plug-in reads.
//
// A pod in flight is not touched: the decision goes on with the old state, and Requeue takes the new one. The change is
// in the log, so that it counts for that pod too.
func (q *Queue) Update(p *model.PodInfo, e clusterevent.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.update(p, e)
}

func (q *Queue) update(p *model.PodInfo, e clusterevent.Event) {
	if f := q.flights[p.Pod.UID]; f != nil {
		f.updated = p
		if e.Action != 0 {
			q.log.add(e)
		}
		return
	}
	it := q.find(p.Pod.UID)
	if it == nil {
		return
	}
	it.PodInfo = p
	switch {
	// In active or back-off the pod is tried anyway; only its place may have changed, by its priority.
	case it.in != q.unschedulable && it.in != q.gated:
		it.in.fix(it)
	case e.Action == 0:
	case q.cfg.Profile(p).Helps(p, it.Failed, e):
		q.take(it)
		q.revive(it, q.cfg.Now(), podUpdate)
	case it.in == q.unschedulable:
		q.take(it) // plug-ins may read other things of it now
		q.park(it)
	}
}

// revive moves a pod that may be schedulable since the given time to where its back-off allows. event says why.
//
// A gated pod does not wait out a back-off: the gate was all that it waited for.
func (q *Queue) revive(it *item, at time.Time, event string) {
	if it.Gated == "" && it.until.After(at) {
		if it.err {
			q.erring.push(it)
		} else {
			q.backoff.push(it)
		}
		q.cfg.Incoming("backoff", event)
		q.signal()
		return
	}
	q.activate(it, at, event)
}

// Retry has a waiting pod tried again when its back-off is over, whatever it waits for: what was done to help it has
// failed. One that is in flight waits out its back-off when it lands.
func (q *Queue) Retry(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.flights[uid]; f != nil {
		f.again = true
		return
	}
	if it := q.find(uid); it != nil && (it.in == q.unschedulable || it.in == q.gated) {
		q.take(it)
		it.err, it.Gated = true, "" // its gates are asked when its time comes
		q.revive(it, q.cfg.Now(), forced)
	}
}

// Ungate asks again the PreEnqueue plug-ins of a pod that one of them holds back.
func (q *Queue) Ungate(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.items[uid]; it != nil && it.in == q.gated {
		q.take(it)
		q.activate(it, q.cfg.Now(), forced)
	}
}

// Delete drops a pod.
//
// The handler of pods calls it when a pod is gone, is being deleted or has a node. A flight cannot be stopped; its
// result is dropped when it lands.
func (q *Queue) Delete(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if f := q.flights[uid]; f != nil {
		f.deleted = true
	}
	if it := q.items[uid]; it != nil {
		q.take(it)
		delete(q.items, uid)
	}
}

// Pop waits for the next pod to try; false says that ctx ended. The pod is in flight until Done or Requeue.
//
// The timer is for times that no event announces: the end of a back-off, and of the time in unschedulable. Everything
// else wakes it.
func (q *Queue) Pop(ctx context.Context) (*framework.QueuedPod, bool) {
	var timer *time.Timer
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	for ctx.Err() == nil {
		it, wait, again := q.next()
		if it != nil {
			return it.QueuedPod, true
		}
		if again {
			continue
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

// next returns the next active pod, or how long to wait for one at most (0: until something happens). again says that
// the lock was held for long enough and next is to be called again.
func (q *Queue) next() (it *item, wait time.Duration, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.cfg.Now()
	if !q.settle(now) {
		return nil, 0, true
	}
	// The back-off queue is not waited for: settle would have moved a pod of it into active.
	if q.active.len() == 0 {
		sooner := func(at time.Time) {
			if d := max(at.Sub(now), time.Millisecond); wait == 0 || d < wait {
				wait = d
			}
		}
		if it := q.erring.peek(); it != nil {
			sooner(it.until)
		}
		if it := q.unschedulable.peek(); it != nil {
			sooner(it.failed.Add(q.cfg.MaxUnschedulable))
		}
		return nil, wait, false
	}
	it = q.active.pop()
	delete(q.items, it.Pod.UID)
	it.Attempts++
	f := &flight{it: it, from: q.log.end()}
	f.element = q.flying.PushBack(f)
	q.flights[it.Pod.UID] = f
	return it, 0, false
}

// settle asks for the pods that wait for an event and moves those that one helped, then those whose time has come,
// then, when nothing is active, those in back-off. It returns false when that was enough work for once.
//
// The order is the pods' chance: first those that an event helped, at the time of that event; then times. Back-off pods
// come early only if nothing is active, so that an idle scheduler wastes no time on waiting (KEP-5142). Pods that
// failed for an error wait in erring, out of reach of that.
func (q *Queue) settle(now time.Time) bool {
	for work := 0; work < portion; work++ {
		it, asked, done := q.watches.work()
		work += asked
		switch {
		case it != nil:
			at, event, _ := q.watches.helpedAt(it)
			q.take(it)
			q.revive(it, at, event)
			continue
		case !done:
			continue
		}
		if it := q.due(now); it != nil {
			event := backoffOver
			if it.in == q.unschedulable {
				event = timeout
			}
			q.take(it)
			q.revive(it, now, event)
		} else if it := q.backoff.peek(); it != nil && q.active.len() == 0 {
			q.take(it)
			q.activate(it, now, backoffOver)
		} else {
			return true
		}
	}
	return false
}

// due returns a pod whose time has come, nil if there is none. What is due in unschedulable is tried without any event:
// the last resort if an event was missed.
func (q *Queue) due(now time.Time) *item {
	for _, h := range []*heap{q.backoff, q.erring} {
		if it := h.peek(); it != nil && !it.until.After(now) {
			return it
		}
	}
	if it := q.unschedulable.peek(); it != nil && now.Sub(it.failed) >= q.cfg.MaxUnschedulable {
		return it
	}
	return nil
}

// Done ends the flight of a pod that was bound or is gone.
func (q *Queue) Done(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.land(uid)
}

// land forgets the flight and the events that only it could still need.
//
// The first of the remaining flights is the oldest, because flights are listed as they began.
func (q *Queue) land(uid types.UID) {
	f := q.flights[uid]
	if f == nil {
		return
	}
	delete(q.flights, uid)
	q.flying.Remove(f.element)
	if first := q.flying.Front(); first == nil {
		q.log.clear()
	} else if q.log.size() > trimAbove {
		q.log.trim(first.Value.(*flight).from)
	}
}

// Requeue takes a popped pod back after a failure: failed names the plug-ins that turned it down, d says why. retry
// means that it failed for an error and not for the state of the cluster; such a pod is tried again after its back-off.
// false says that the pod was deleted meanwhile and is forgotten.
//
// Everything is decided under the lock: whether an event in the log helps, and where the pod goes. Otherwise an event
// in between would be in neither the log of the flight nor the watches of the queue, and the pod would miss it.
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
	retry = retry || f.again
	it.Failed, it.Diagnosis, it.failed = failed, d, now
	// The back-off runs from now, also for a pod that an event has helped already: it still waits out its time.
	it.until = now.Add(q.backoffOf(it.Attempts))
	if begun := it.until.Truncate(window); !retry && begun.Before(it.until) {
		it.until = begun.Add(window)
	}
	it.err = retry
	q.items[uid] = it
	hope := retry || q.log.forgot(f.from)
	profile := q.cfg.Profile(it.PodInfo)
	if !hope {
		q.log.since(f.from, func(e clusterevent.Event) bool {
			// A change of the pod itself is its own affair; that its own assumption was taken back helps others only.
			hope = (e.Kind == clusterevent.TargetPod) == about(e, uid) && profile.Helps(it.PodInfo, failed, e)
			return !hope
		})
	}
	q.land(uid)
	if hope {
		q.revive(it, now, attemptFailure)
	} else {
		q.cfg.Incoming("unschedulable", attemptFailure)
		q.park(it)
	}
	return true
}

func about(e clusterevent.Event, uid types.UID) bool {
	for _, side := range []any{e.Old, e.New} {
		if p, ok := side.(*model.PodInfo); ok && p != nil && p.Pod.UID == uid {
			return true
		}
	}
	return false
}

// backoffOf doubles with each attempt: 1, 2, 4, 8, 10 s with the defaults.
func (q *Queue) backoffOf(attempts int) time.Duration {
	d := q.cfg.InitialBackoff
	for i := 1; i < attempts && d < q.cfg.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, q.cfg.MaxBackoff)
}

// Moved reports an event that may help pods that failed.
//
// It costs one comparison for each interest of a plug-in, whatever the number of pods. Handlers of watch events call it
// for every change of the cluster, so it must be quick.
func (q *Queue) Moved(e clusterevent.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.flights) > 0 {
		q.log.add(e)
	}
	q.watches.moved(e, q.cfg.Now())
	if q.watches.any() {
		q.signal()
	}
}

// Counts are the numbers of pods by place.
type Counts struct{ Active, Backoff, Unschedulable, Gated, InFlight int }

// Counts returns the numbers of pods by place.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{Active: q.active.len(), Backoff: q.backoff.len() + q.erring.len(),
		Unschedulable: q.unschedulable.len(),
		Gated:         q.gated.len(), InFlight: len(q.flights)}
}

// Refusal names a plug-in of a profile that turned pods down.
type Refusal struct{ Plugin, Profile string }

// Refused returns, for each plug-in, how many of the pods that are not in flight it turned down at their last try, or
// holds back.
func (q *Queue) Refused() map[Refusal]int {
	out := map[Refusal]int{}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range q.items {
		for name := range it.Failed {
			out[Refusal{name, it.Pod.Spec.SchedulerName}]++
		}
	}
	return out
}

// Waiting calls yield with each pod that is not in flight, as a copy, until it returns false.
func (q *Queue) Waiting(yield func(framework.QueuedPod) bool) {
	q.mu.Lock()
	all := make([]framework.QueuedPod, 0, len(q.items))
	for _, it := range q.items {
		all = append(all, *it.QueuedPod)
	}
	q.mu.Unlock()
	for _, p := range all {
		if !yield(p) {
			return
		}
	}
}
