package profile

import (
	"fmt"
	"slices"
	"sync"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// Weighted is a scoring plug-in with its weight.
type Weighted struct {
	framework.Score
	Weight int64
}

// Profile holds the plug-ins of one scheduler name, each list in the order of the calls.
//
// It is fixed after New, except for waiting and background: all goroutines read it without a lock.
type Profile struct {
	SchedulerName string
	Sort          framework.QueueSort
	preEnqueues   []framework.PreEnqueue
	PreFilters    []framework.PreFilter
	Filters       []framework.Filter
	PostFilters   []framework.PostFilter
	PreScores     []framework.PreScore
	Scores        []Weighted
	reserves      []framework.Reserve
	permits       []framework.Permit
	PreBinds      []framework.PreBind
	binds         []framework.Bind
	postBinds     []framework.PostBind
	// extenders are called after the plug-ins.
	extenders []framework.Extender
	// Fields are those that plug-ins declare, by plug-in name.
	Fields map[string]framework.Fields
	// Interests by plug-in name.
	Interests map[string][]clusterevent.Interest
	// reads returns, for each NodeLocal plug-in, the key of what it reads of a pod. slow are the plug-ins whose results
	// cannot be kept.
	reads      []func(*model.PodInfo) string
	tracking   map[string]framework.Tracking // by name
	slow       []framework.Plugin
	waiting    *waiting
	background sync.WaitGroup
}

// Go runs f beside the scheduling cycles, such as the evictions of a preemption. f must end soon after the context of
// its cycle has ended.
//
// Bindings are not started by it: the scheduler counts those itself.
func (p *Profile) Go(f func()) { p.background.Go(f) }

// Wait returns when every function that Go started has ended.
func (p *Profile) Wait() { p.background.Wait() }

// Enabled is a plug-in of a profile; Weight counts for scoring plug-ins, 0 means 1.
type Enabled struct {
	Plugin framework.Plugin
	Weight int64
	// Off has the extension points that the plug-in implements but is not called at.
	Off map[Point]bool
}

// New returns the profile of a scheduler name. It puts each plug-in into the extension points that it implements, in
// the given order. Exactly one plug-in must sort the queue, and at least one must bind. The extenders are called in the
// given order.
//
// It is called at the start, once for each profile of the configuration. An error is the configuration's.
func New(schedulerName string, plugins []Enabled, extenders ...framework.Extender) (*Profile, error) {
	p := &Profile{
		SchedulerName: schedulerName,
		Fields:        map[string]framework.Fields{},
		Interests:     map[string][]clusterevent.Interest{},
		tracking:      map[string]framework.Tracking{},
		waiting:       newWaiting(),
		extenders:     extenders,
	}
	for _, e := range plugins {
		if err := p.plug(e); err != nil {
			return nil, fmt.Errorf("profile %q: %w", schedulerName, err)
		}
	}
	if p.Sort == nil {
		return nil, fmt.Errorf("profile %q: no queue sort plugin is enabled", schedulerName)
	}
	if len(p.binds) == 0 {
		return nil, fmt.Errorf("profile %q: at least one bind plugin is needed", schedulerName)
	}
	return p, nil
}

// plug puts one plug-in into its lists. A plug-in that is switched off at a point still declares its interests and
// fields: its other points need them.
func (p *Profile) plug(e Enabled) error {
	pl := e.Plugin
	if s, ok := pl.(framework.QueueSort); ok && !e.Off[QueueSortPoint] {
		if p.Sort != nil {
			return fmt.Errorf("both %s and %s sort the queue, only one may", p.Sort.Name(), s.Name())
		}
		p.Sort = s
	}
	appendIf(&p.preEnqueues, e, PreEnqueuePoint)
	appendIf(&p.PreFilters, e, PreFilterPoint)
	appendIf(&p.Filters, e, FilterPoint)
	appendIf(&p.PostFilters, e, PostFilterPoint)
	appendIf(&p.PreScores, e, PreScorePoint)
	appendIf(&p.reserves, e, ReservePoint)
	appendIf(&p.permits, e, PermitPoint)
	appendIf(&p.PreBinds, e, PreBindPoint)
	appendIf(&p.binds, e, BindPoint)
	appendIf(&p.postBinds, e, PostBindPoint)
	if s, ok := pl.(framework.Score); ok && !e.Off[ScorePoint] {
		p.Scores = append(p.Scores, Weighted{Score: s, Weight: max(e.Weight, 1)})
	}
	if i, ok := pl.(framework.Interested); ok {
		p.Interests[pl.Name()] = i.EventsToRegister()
	}
	if r, ok := pl.(framework.FieldReader); ok {
		p.Fields[pl.Name()] = r.Fields()
	}
	p.declare(pl)
	return nil
}

func appendIf[T framework.Plugin](list *[]T, e Enabled, at Point) {
	if t, ok := e.Plugin.(T); ok && !e.Off[at] {
		*list = append(*list, t)
	}
}

// Filtering reports whether the named plug-in filters.
func (p *Profile) Filtering(name string) bool {
	return slices.ContainsFunc(p.Filters, func(f framework.Filter) bool { return f.Name() == name })
}

// Helps reports whether e may help a pod that the plug-ins named in failed turned down. An empty failed means that any
// event may help.
//
// The queue calls it under its lock, for each event of a pod's flight. The answer true costs a try, the answer false
// may cost a pod its chance; so whatever is not declared counts as helping.
func (p *Profile) Helps(pod *model.PodInfo, failed map[string]bool, e clusterevent.Event) bool {
	if len(failed) == 0 {
		return true
	}
	for name := range failed {
		interests, ok := p.Interests[name]
		if !ok {
			return true
		}
		for i := range interests {
			if interests[i].Helps(pod, e) {
				return true
			}
		}
	}
	return false
}
