package fairness

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/flowcontrol"
	"bonsai/pkg/apiserver/fairness/seats"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/follow"
)

// Config is what a Dispatcher is made of.
type Config struct {
	// Seats is how many the server has in all; at least 1.
	Seats int
	// RequestTimeout is the time of requests that have no deadline of their own.
	RequestTimeout time.Duration
	// Schemas and Levels are where the FlowSchemas and PriorityLevelConfigurations are.
	Schemas, Levels follow.Resource
	// Store is that of FlowSchemas, into whose status the condition Dangling is written.
	Store registry.Store
	// Count returns about how many objects of a resource there are. If Count is nil, lists are taken to be short.
	Count func(group, resource string) int
	Log   *slog.Logger
}

// Dispatcher gives requests their turns. The lock order is d.mu, then a level's mu. Take and End use the level's lock
// alone, so a rebuild of the configuration does not stop requests of other levels. Requests read now without a lock: a
// classifier never changes after it is stored.
type Dispatcher struct {
	cfg   Config
	start time.Time
	seed  maphash.Seed
	now   atomic.Pointer[classifier]

	watchers watchers
	// running counts requests that have their turn: reading ones and mutating ones.
	running [2]atomic.Int64

	followed []*follow.Follower
	dirty    chan struct{} // something has changed that the classifier was made of

	mu      sync.Mutex // guards what follows
	schemas map[string]*flowcontrolv1.FlowSchema
	configs map[string]*flowcontrolv1.PriorityLevelConfiguration
	levels  map[string]*level // those that are configured, and those that still have requests
	fair    float64
}

// New returns a Dispatcher that has the mandatory and suggested objects until Run has read those that are stored.
// Requests that come before Run are classified by that configuration.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Seats < 1 {
		return nil, errors.New("priority and fairness: the server needs a seat at least")
	}
	d := &Dispatcher{cfg: cfg, start: time.Now(), seed: maphash.MakeSeed(), watchers: watchers{many: map[watched]int{}},
		dirty:   make(chan struct{}, 1),
		schemas: map[string]*flowcontrolv1.FlowSchema{},
		configs: map[string]*flowcontrolv1.PriorityLevelConfiguration{}, levels: map[string]*level{}}
	d.followed = []*follow.Follower{
		follow.New(cfg.Schemas, objects[*flowcontrolv1.FlowSchema]{d, d.schemas}, cfg.Log),
		follow.New(cfg.Levels, objects[*flowcontrolv1.PriorityLevelConfiguration]{d, d.configs}, cfg.Log),
	}
	d.rebuild()
	return d, nil
}

// since is the time as queue sets have it.
func (d *Dispatcher) since() time.Duration { return time.Since(d.start) }

// objects keeps those of a kind by their names.
type objects[T runtime.Object] struct {
	d  *Dispatcher
	by map[string]T
}

// Put implements follow.Handler.
func (o objects[T]) Put(key string, obj runtime.Object) {
	if t, ok := obj.(T); ok {
		o.d.mu.Lock()
		o.by[key] = t
		o.d.mu.Unlock()
		o.d.changed()
	}
}

// Delete implements follow.Handler.
func (o objects[T]) Delete(key string) {
	o.d.mu.Lock()
	delete(o.by, key)
	o.d.mu.Unlock()
	o.d.changed()
}

// changed wakes the loop of Run. The channel holds one message, which stands for any number of changes: rebuild reads
// the whole configuration. A follower that lists hundreds of objects never blocks here.
func (d *Dispatcher) changed() {
	select {
	case d.dirty <- struct{}{}:
	default:
	}
}

// adjustEvery is how often levels lend and give back.
const adjustEvery = 10 * time.Second

// Run follows the configuration and adjusts the levels' seats until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range d.followed {
		g.Go(func() error { return f.Run(ctx) })
		g.Go(func() error { // what is known by now may be all there is
			select {
			case <-f.Synced():
				d.changed()
			case <-ctx.Done():
			}
			return nil
		})
	}
	g.Go(func() error {
		tick := time.NewTicker(adjustEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				d.mu.Lock()
				d.adjust()
				d.mu.Unlock()
			case <-d.dirty:
				d.rebuild()
				tick.Reset(adjustEvery)
			}
			d.writeDangling(ctx)
		}
	})
	return g.Wait()
}

// Synced reports whether the stored configuration is known.
func (d *Dispatcher) Synced() bool {
	return !slices.ContainsFunc(d.followed, func(f *follow.Follower) bool { return !f.HasSynced() })
}

// configured returns the configuration to work by. It is the stored objects and, where they are missing, the mandatory
// ones; before the stored ones are known, the mandatory and the suggested ones. The caller holds d.mu.
func (d *Dispatcher) configured() (levels map[string]*flowcontrolv1.PriorityLevelConfiguration,
	schemas map[string]*flowcontrolv1.FlowSchema) {
	levels, schemas = map[string]*flowcontrolv1.PriorityLevelConfiguration{}, map[string]*flowcontrolv1.FlowSchema{}
	ls, fs := flowcontrol.MandatoryLevels(), flowcontrol.MandatorySchemas()
	known := d.Synced()
	if !known {
		ls, fs = append(ls, flowcontrol.SuggestedLevels()...), append(fs, flowcontrol.SuggestedSchemas()...)
	}
	for i := range ls {
		levels[ls[i].Name] = &ls[i]
	}
	for i := range fs {
		schemas[fs[i].Name] = &fs[i]
	}
	if known {
		for _, l := range d.configs {
			levels[l.Name] = l
		}
		for _, f := range d.schemas {
			schemas[f.Name] = f
		}
	}
	return levels, schemas
}

// rebuild makes a classifier of the configuration as it is now. It takes d.mu. New calls it once, and then the loop of
// Run for each message in dirty. A level whose configuration is deleted keeps its seats and queues while it has
// requests; no schema leads to it any more, because find skips it. Its removal waits for the next rebuild after it is
// idle.
func (d *Dispatcher) rebuild() {
	d.mu.Lock()
	defer d.mu.Unlock()
	configs, schemas := d.configured()
	now := d.since()
	for name, l := range d.levels {
		// A level that changes its nature is another one (only the one called "exempt" is, so it does not happen).
		if c := configs[name]; c == nil {
			l.leaving = true
		}
		if l.leaving && l.idle() {
			delete(d.levels, name)
		}
	}
	for name, c := range configs {
		l := d.levels[name]
		if l == nil {
			l = newLevel(name, c.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt, now)
			d.levels[name] = l
		}
		l.leaving = false
		shares, queues := configured(&c.Spec)
		l.shares = shares
		l.mu.Lock()
		l.set.Configure(now, queues)
		l.mu.Unlock()
	}
	d.adjust()
	compiled := map[string]*schema{}
	find := func(f *flowcontrolv1.FlowSchema) *schema {
		l := d.levels[f.Spec.PriorityLevelConfiguration.Name]
		if l == nil || l.leaving {
			return nil
		}
		s := &schema{name: f.Name, uid: header(string(f.UID)), levelUID: header(string(configs[l.name].UID)), level: l,
			stats: l.statsOf(f.Name)}
		if m := f.Spec.DistinguisherMethod; m != nil {
			s.method = m.Type
		}
		compiled[f.Name] = s
		return s
	}
	rest := find(schemas[flowcontrolv1.FlowSchemaNameCatchAll])
	d.now.Store(compile(slices.Collect(maps.Values(schemas)), find, rest))
	d.forget(compiled)
}

// forget drops the stats of schemas that are no more, once nothing of theirs is under way. The caller holds d.mu. Turns
// keep a pointer to their stats. If stats were dropped while such a turn is under way, its End would count in an object
// that no metric shows.
func (d *Dispatcher) forget(compiled map[string]*schema) {
	for _, l := range d.levels {
		l.mu.Lock()
		for name, s := range l.stats {
			if c := compiled[name]; (c == nil || c.level != l) && s.executing+s.waiting == 0 {
				delete(l.stats, name)
			}
		}
		l.mu.Unlock()
	}
}

func header(uid string) []string {
	if uid == "" {
		return nil
	}
	return []string{uid}
}

// adjust gives each level its seats for the next period, by what was asked for in the last. The caller holds d.mu.
// Levels are sorted by name, so that the outcome does not depend on the order of a map. A level that is leaving takes
// no part: it keeps the limit that it last had until it is idle.
func (d *Dispatcher) adjust() {
	now := d.since()
	var levels []*level
	for _, name := range slices.Sorted(maps.Keys(d.levels)) {
		if l := d.levels[name]; !l.leaving {
			levels = append(levels, l)
		}
	}
	shares := make([]seats.Shares, len(levels))
	for i, l := range levels {
		shares[i] = l.shares
	}
	demands := make([]seats.Demand, len(levels))
	for i, limits := range seats.Divide(d.cfg.Seats, shares) {
		l := levels[i]
		fresh := l.limits == seats.Limits{} && limits.Nominal > 0
		l.limits = limits
		l.mu.Lock()
		l.demand = l.set.Demand(now)
		l.mu.Unlock()
		l.smooth = seats.Smooth(l.smooth, l.demand.Average, l.demand.StDev)
		if fresh { // nothing is known of it yet
			l.smooth = float64(limits.Nominal+limits.Min) / 2
			l.demand.High = int(l.smooth)
		}
		demands[i] = seats.Demand{Limits: limits, High: l.demand.High, Smooth: l.smooth, Exempt: l.exempt}
	}
	given, fair := seats.Adjust(d.cfg.Seats, demands)
	d.fair = fair
	for i, l := range levels {
		l.target = given[i].Target
		if !l.exempt {
			l.mu.Lock()
			l.set.SetLimit(now, given[i].Current)
			l.mu.Unlock()
		} else {
			l.lent = given[i].Current
		}
	}
}

// InFlight is how many requests have their turn now. It does not count final seats: end runs before they are given
// back.
func (d *Dispatcher) InFlight(mutating bool) int { return int(d.running[kind(mutating)].Load()) }

func (d *Dispatcher) begin(t *Turn) { d.running[kind(t.mutating)].Add(1) }
func (d *Dispatcher) end(t *Turn)   { d.running[kind(t.mutating)].Add(-1) }

func kind(mutating bool) int {
	if mutating {
		return 1
	}
	return 0
}
