package fairness

import (
	"context"
	"hash/maphash"
	"net/http"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"bonsai/pkg/apiserver/fairness/queueset"
	"bonsai/pkg/apiserver/request"
)

// Class is where a request belongs.
type Class struct{ schema *schema }

// Classify finds the schema of a request.
func (d *Dispatcher) Classify(user *request.User, info *request.Info) Class {
	return Class{d.now.Load().classify(user, info)}
}

// SetHeaders tells the client where its request belongs, by the UIDs of the objects. Their names are not for everybody.
func (c Class) SetHeaders(h http.Header) {
	if uid := c.schema.uid; uid != nil {
		h[flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID] = uid
	}
	if uid := c.schema.levelUID; uid != nil {
		h[flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID] = uid
	}
}

// Turn is a request that may be worked on, until End. Take and End run on the request's goroutine. started, in
// level.go, runs on the goroutine of the request that gave its seats back, and reads the turn under the level's lock.
type Turn struct {
	queueset.Request
	d *Dispatcher
	// class has the schema as it was at the arrival. A rebuild meanwhile does not move a request to another level.
	class Class
	// who and what are shown to those who look at requests.
	user *request.User
	info *request.Info
	// ready is closed when the turn has come, if the request had to wait.
	ready    chan struct{}
	mutating bool
	ended    atomic.Bool
}

// How long a request waits for its turn: a quarter of the time that it has, at most maxWait.
const (
	waitPart = 4
	maxWait  = time.Minute
)

// Take waits for the turn of a request. The caller ends the turn if it is granted; else there is none. A request that
// may not wait longer, or not at all, is to be refused (429). The set and the counts change together under the level's
// lock, so that the metrics never show a request twice or not at all. Most histograms are filled outside of it: they
// have their own locks.
func (d *Dispatcher) Take(ctx context.Context, c Class, user *request.User, info *request.Info, query string) (*Turn,
	bool) {
	w := d.work(c.schema.level, info, query)
	t := &Turn{d: d, class: c, user: user, info: info, mutating: w.mutating,
		Request: queueset.Request{Hash: d.hash(c.schema, c.schema.flow(user, info)), Width: w.width, Final: w.final,
			Extra: w.extra}}
	t.Owner = t
	l, s := c.schema.level, c.schema.stats
	now := d.since()
	l.mu.Lock()
	decision := l.set.Arrive(now, &t.Request)
	switch decision {
	case queueset.Run:
		s.begin(t.Width)
	case queueset.Wait:
		t.ready = make(chan struct{})
		s.queued(&t.Request)
	case queueset.QueueFull:
		s.rejected[queueFull]++
	case queueset.NoSeat:
		s.rejected[noSeat]++
	}
	l.mu.Unlock()
	s.width.Observe(float64(w.width))
	switch decision {
	case queueset.Run:
		s.waited(true, 0)
		d.begin(t)
		return t, true
	case queueset.Wait:
		if t.wait(ctx, now) {
			return t, true
		}
		return nil, false // not t: who ends what has not begun gives back seats that were never taken
	}
	s.waited(false, 0)
	return nil, false
}

// wait waits for a turn that has not come at once. A quarter leaves most of the deadline to the work itself: a request
// that got its turn at the last moment would only time out while it holds a seat. Leave decides the race between the
// timer and the turn. Under the level's lock a request either still waits, or started has closed ready.
func (t *Turn) wait(ctx context.Context, from time.Duration) bool {
	limit := t.d.cfg.RequestTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end)
	}
	timer := time.NewTimer(min(limit/waitPart, maxWait))
	defer timer.Stop()
	why := timeOut
	select {
	case <-t.ready:
		return t.granted(from)
	case <-timer.C:
	case <-ctx.Done():
		why = cancelled
	}
	l, s := t.class.schema.level, t.class.schema.stats
	l.mu.Lock()
	left := l.set.Leave(t.d.since(), &t.Request)
	if left {
		s.unqueued(t.Width)
		s.rejected[why]++
	}
	l.mu.Unlock()
	if !left { // the turn came just now
		return t.granted(from)
	}
	s.waited(false, t.d.since()-from)
	return false
}

// granted counts a request that had to wait. started has already moved it from waiting to executing, under the lock.
func (t *Turn) granted(from time.Duration) bool {
	t.class.schema.stats.waited(true, t.Started()-from)
	t.d.begin(t)
	return true
}

// End ends the turn. Its final seats are kept for a while beyond. Only the first call counts: a second Finish would
// give back seats that other requests hold by then.
func (t *Turn) End() {
	if !t.ended.CompareAndSwap(false, true) {
		return
	}
	t.d.end(t)
	l, s := t.class.schema.level, t.class.schema.stats
	now := t.d.since()
	l.mu.Lock()
	done := l.set.Finish(now, &t.Request)
	if done {
		s.end(t.Width)
	} else {
		s.seats += t.Final - t.Width
	}
	l.mu.Unlock()
	s.ran(t.info.Verb == "watch", now-t.Started())
	if !done {
		// No goroutine waits for it. Extra lasts toldIn, and longer once the watchers would need more than maxWidth
		// seats: see work.
		time.AfterFunc(t.Extra, t.release)
	}
}

func (t *Turn) release() {
	l, s := t.class.schema.level, t.class.schema.stats
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set.Release(t.d.since(), &t.Request)
	s.end(t.Final)
}

// hash is that of a flow. Which queues it leads to nobody outside can tell. The seed is random for each process:
// otherwise a client could choose names that share all queues with a victim's flow. The zero byte keeps the names
// "a"+"bc" and "ab"+"c" apart.
func (d *Dispatcher) hash(s *schema, flow string) uint64 {
	var h maphash.Hash
	h.SetSeed(d.seed)
	h.WriteString(s.name)
	h.WriteByte(0)
	h.WriteString(flow)
	return h.Sum64()
}
