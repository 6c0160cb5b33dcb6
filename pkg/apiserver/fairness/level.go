package fairness

import (
	"math"
	"sync"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"bonsai/pkg/apiserver/fairness/queueset"
	"bonsai/pkg/apiserver/fairness/seats"
)

// level is a priority level. It outlives its configuration by the requests that it has.
type level struct {
	name   string
	exempt bool

	// What follows is changed by the dispatcher alone, under its lock.
	limits seats.Limits
	shares seats.Shares
	smooth float64
	target float64
	demand queueset.Demand
	lent   int // of an exempt level: the seats that the others do not have for it
	// leaving tells that it is not configured any more.
	leaving bool

	// Each step of a request takes mu for a moment, and nothing waits while it holds it. Whoever also needs the
	// dispatcher's lock takes that first.
	mu  sync.Mutex // guards set and the counts of all stats
	set *queueset.Set
	// stats by the names of schemas.
	stats map[string]*stats
}

// newLevel returns a level without requests. An exempt level has a limit that is never reached, so that its requests
// pass through the same code and counts. A limited level starts without a seat; adjust gives it some before rebuild
// releases the dispatcher's lock.
func newLevel(name string, exempt bool, now time.Duration) *level {
	l := &level{name: name, exempt: exempt, stats: map[string]*stats{}}
	limit := 0
	if exempt {
		limit = math.MaxInt32
	}
	l.set = queueset.New(queueset.Config{}, limit, now, started)
	return l
}

// started wakes a request that had to wait. It is called under the level's lock. The set calls it only for a request
// that Take has seen wait, so ready is never nil, and Run is not counted twice.
func started(r *queueset.Request) {
	t := r.Owner.(*Turn)
	t.class.schema.stats.unqueued(t.Width)
	t.class.schema.stats.begin(t.Width)
	close(t.ready)
}

// configured is what a configuration says of a level's seats and queues.
func configured(spec *flowcontrolv1.PriorityLevelConfigurationSpec) (seats.Shares, queueset.Config) {
	value := func(p *int32, otherwise int) int {
		if p == nil {
			return otherwise
		}
		return int(*p)
	}
	if e := spec.Exempt; spec.Type == flowcontrolv1.PriorityLevelEnablementExempt {
		if e == nil {
			return seats.Shares{Borrowing: -1}, queueset.Config{}
		}
		return seats.Shares{Nominal: value(e.NominalConcurrencyShares, 0), Lendable: value(e.LendablePercent, 0),
			Borrowing: -1}, queueset.Config{}
	}
	l := spec.Limited
	if l == nil {
		return seats.Shares{}, queueset.Config{}
	}
	s := seats.Shares{Nominal: value(l.NominalConcurrencyShares, 30), Lendable: value(l.LendablePercent, 0),
		Borrowing: value(l.BorrowingLimitPercent, -1)}
	q := l.LimitResponse.Queuing
	if l.LimitResponse.Type != flowcontrolv1.LimitResponseTypeQueue || q == nil {
		return s, queueset.Config{}
	}
	// Validation has seen to all of it. What was stored without it must do no harm here.
	queues := max(1, int(q.Queues))
	return s, queueset.Config{Queues: queues, HandSize: max(1, min(int(q.HandSize), queues, queueset.MaxHand)),
		QueueLength: max(1, int(q.QueueLengthLimit))}
}

// statsOf are those of a schema's requests in this level.
func (l *level) statsOf(schema string) *stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats[schema]
	if s == nil {
		s = newStats(schema, l.name)
		l.stats[schema] = s
	}
	return s
}

// idle tells that it has no requests.
func (l *level) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.set.Waiting()+l.set.Executing() == 0
}
