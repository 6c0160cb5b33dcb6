package framework

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Weighted is a scoring plug-in with its weight.
type Weighted struct {
	Score
	Weight int64
}

// Profile is the plug-ins of one scheduler name, each list in the order of the calls.
type Profile struct {
	SchedulerName string
	Sort          QueueSort
	PreEnqueues   []PreEnqueue
	PreFilters    []PreFilter
	Filters       []Filter
	PostFilters   []PostFilter
	PreScores     []PreScore
	Scores        []Weighted
	Reserves      []Reserve
	Permits       []Permit
	PreBinds      []PreBind
	Binds         []Bind
	PostBinds     []PostBind
	// Extenders are asked after the plug-ins. They are set before the profile is used.
	Extenders []Extender
	// Interests by plug-in name.
	Interests map[string][]Interest
	// reads are what the NodeLocal plug-ins read of a pod; slow are those whose results cannot be kept.
	reads      []func(*PodInfo) string
	tracking   map[string]Tracking // by name
	slow       []Plugin
	waiting    *waiting
	background sync.WaitGroup
}

// Go runs what a plug-in has to do beside the scheduling cycles. f must end soon after the context of its cycle has ended.
func (p *Profile) Go(f func()) { p.background.Go(f) }

// Wait returns when everything that Go began has ended.
func (p *Profile) Wait() { p.background.Wait() }

// Enabled is a plug-in of a profile; Weight counts for scoring plug-ins, 0 means 1.
type Enabled struct {
	Plugin Plugin
	Weight int64
	// Off are extension points that the plug-in implements and is not called at.
	Off map[Point]bool
}

// NewProfile sorts the plug-ins into the extension points that they implement, in the given order, and checks that one sorts
// the queue and one binds.
func NewProfile(schedulerName string, plugins []Enabled) (*Profile, error) {
	p := &Profile{SchedulerName: schedulerName, Interests: map[string][]Interest{}, tracking: map[string]Tracking{}, waiting: newWaiting()}
	for _, e := range plugins {
		if err := p.plug(e); err != nil {
			return nil, fmt.Errorf("profile %q: %w", schedulerName, err)
		}
	}
	if p.Sort == nil {
		return nil, fmt.Errorf("profile %q: no queue sort plugin is enabled", schedulerName)
	}
	if len(p.Binds) == 0 {
		return nil, fmt.Errorf("profile %q: at least one bind plugin is needed", schedulerName)
	}
	return p, nil
}

func (p *Profile) plug(e Enabled) error {
	pl := e.Plugin
	if s, ok := pl.(QueueSort); ok && !e.Off[QueueSortPoint] {
		if p.Sort != nil {
			return fmt.Errorf("both %s and %s sort the queue, only one may", p.Sort.Name(), s.Name())
		}
		p.Sort = s
	}
	appendIf(&p.PreEnqueues, e, PreEnqueuePoint)
	appendIf(&p.PreFilters, e, PreFilterPoint)
	appendIf(&p.Filters, e, FilterPoint)
	appendIf(&p.PostFilters, e, PostFilterPoint)
	appendIf(&p.PreScores, e, PreScorePoint)
	appendIf(&p.Reserves, e, ReservePoint)
	appendIf(&p.Permits, e, PermitPoint)
	appendIf(&p.PreBinds, e, PreBindPoint)
	appendIf(&p.Binds, e, BindPoint)
	appendIf(&p.PostBinds, e, PostBindPoint)
	if s, ok := pl.(Score); ok && !e.Off[ScorePoint] {
		p.Scores = append(p.Scores, Weighted{Score: s, Weight: max(e.Weight, 1)})
	}
	if i, ok := pl.(Interested); ok {
		p.Interests[pl.Name()] = i.EventsToRegister()
	}
	p.declare(pl)
	return nil
}

// declare notes what the plug-in's results depend on.
func (p *Profile) declare(pl Plugin) {
	if local, ok := pl.(NodeLocal); ok {
		p.reads = append(p.reads, KeyOf(local.Reads))
		return
	}
	if t, ok := pl.(Tracking); ok {
		p.tracking[pl.Name()] = t
		return
	}
	switch pl.(type) {
	case PreFilter, Filter, PreScore, Score:
		p.slow = append(p.slow, pl)
	}
}

// Class returns a key of everything in the pod that the NodeLocal plug-ins read: pods of one class get the same verdicts and
// scores of them on every node. false says that a slow plug-in, or an extender, concerns the pod.
func (p *Profile) Class(pod *PodInfo) (string, bool) {
	for _, pl := range p.slow {
		if s, ok := pl.(Selective); !ok || s.Concerns(pod) {
			return "", false
		}
	}
	if len(p.extended(pod)) > 0 {
		return "", false
	}
	k := Key{b: make([]byte, 0, 256)}
	for _, reads := range p.reads {
		k.Str(reads(pod))
	}
	return k.String(), true
}

func appendIf[T Plugin](list *[]T, e Enabled, at Point) {
	if t, ok := e.Plugin.(T); ok && !e.Off[at] {
		*list = append(*list, t)
	}
}

// Alone returns the pod's class, and the state for RunFilter, where each node alone decides whether it fits: no slow plug-in
// concerns the pod, and no Tracking one refuses it a node, be nominated there or not. Otherwise false.
func (p *Profile) Alone(pod *PodInfo, s *Snapshot, nominated []*PodInfo) (class string, state *CycleState, ok bool) {
	if class, ok = p.Class(pod); !ok {
		return "", nil, false
	}
	state = NewCycleState()
	for _, pl := range p.slow { // none of them concerns the pod, or it had no class: they have not looked at it, and are not to refuse it
		state.SkipFilter(pl.Name())
	}
	for name, t := range p.tracking {
		if what := t.Track(pod, s, nominated); what.New != nil && !what.ScoresOnly && p.Filtering(name) {
			return "", nil, false
		}
		state.SkipFilter(name)
	}
	var local []PreFilter
	for _, pl := range p.PreFilters {
		if _, ok := pl.(NodeLocal); ok {
			local = append(local, pl)
		}
	}
	_, _, st := RunPreFilters(local, state, pod, s)
	return class, state, st.IsSuccess()
}

// Filtering tells whether the plug-in of that name filters.
func (p *Profile) Filtering(name string) bool {
	return slices.ContainsFunc(p.Filters, func(f Filter) bool { return f.Name() == name })
}

// RunPreEnqueue returns the first refusal.
func (p *Profile) RunPreEnqueue(pod *PodInfo) *Status {
	for _, pl := range p.PreEnqueues {
		if s := pl.PreEnqueue(pod); !s.IsSuccess() {
			return s.withPlugin(pl.Name())
		}
	}
	return nil
}

// RunPreFilter prepares the state for Filter. names is nil if every node is possible; restricted names the plug-ins that
// made names smaller.
func (p *Profile) RunPreFilter(state *CycleState, pod *PodInfo, s *Snapshot) (names map[string]bool, restricted []string, status *Status) {
	return RunPreFilters(p.PreFilters, state, pod, s)
}

// RunPreFilters does what Profile.RunPreFilter does, for some of the plug-ins.
func RunPreFilters(list []PreFilter, state *CycleState, pod *PodInfo, s *Snapshot) (names map[string]bool, restricted []string, status *Status) {
	for _, pl := range list {
		only, st := pl.PreFilter(state, pod, s)
		if st.IsSkip() {
			state.SkipFilter(pl.Name())
			continue
		}
		if !st.IsSuccess() {
			return nil, nil, st.withPlugin(pl.Name())
		}
		if only == nil {
			continue
		}
		restricted = append(restricted, pl.Name())
		names = intersect(names, only)
		if len(names) == 0 {
			msg := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v simultaneously", restricted)
			if len(restricted) == 1 {
				msg = fmt.Sprintf("node(s) didn't satisfy plugin %v", restricted[0])
			}
			return nil, restricted, NewStatus(UnschedulableAndUnresolvable, msg).withPlugin(pl.Name())
		}
	}
	return names, restricted, nil
}

func intersect(a, b map[string]bool) map[string]bool {
	if a == nil {
		return b
	}
	out := map[string]bool{}
	for k := range a {
		if b[k] {
			out[k] = true
		}
	}
	return out
}

// RunFilter returns the first refusal of pod by node.
func (p *Profile) RunFilter(state *CycleState, pod *PodInfo, node *NodeInfo) *Status {
	for _, pl := range p.Filters {
		if state.SkipsFilter(pl.Name()) {
			continue
		}
		if s := pl.Filter(state, pod, node); !s.IsSuccess() {
			return s.withPlugin(pl.Name())
		}
	}
	return nil
}

// AddPod tells the plug-ins' prepared state that added is on node.
func (p *Profile) AddPod(state *CycleState, pod, added *PodInfo, node *NodeInfo) {
	for _, pl := range p.PreFilters {
		if x, ok := pl.(PreFilterExtensions); ok && !state.SkipsFilter(pl.Name()) {
			x.AddPod(state, pod, added, node)
		}
	}
}

// RemovePod tells the plug-ins' prepared state that removed is no longer on node.
func (p *Profile) RemovePod(state *CycleState, pod, removed *PodInfo, node *NodeInfo) {
	for _, pl := range p.PreFilters {
		if x, ok := pl.(PreFilterExtensions); ok && !state.SkipsFilter(pl.Name()) {
			x.RemovePod(state, pod, removed, node)
		}
	}
}

// RunPostFilter asks the plug-ins for a way out until one finds it. The node is the one the pod is nominated to from now on;
// a plug-in without a way out may name the one that the pod still waits for. Without any way out all have their say.
func (p *Profile) RunPostFilter(ctx context.Context, state *CycleState, pod *PodInfo, d *Diagnosis) (string, *Status) {
	kept, refused := "", NewStatus(Unschedulable)
	for _, pl := range p.PostFilters {
		node, s := pl.PostFilter(ctx, state, pod, d)
		s = s.withPlugin(pl.Name())
		if s.IsSuccess() || !s.IsRejected() {
			return node, s
		}
		kept = cmp.Or(kept, node)
		refused.Code, refused.Plugin, refused.Reasons = s.Code, s.Plugin, append(refused.Reasons, s.Reasons...)
	}
	return kept, refused
}

// RunScores rates the nodes: the weighted sum of all plug-ins' normalized scores and the extenders', in the order of nodes.
func (p *Profile) RunScores(ctx context.Context, state *CycleState, pod *PodInfo, s *Snapshot, nodes []*NodeInfo) ([]int64, *Status) {
	for _, pl := range p.PreScores {
		switch st := pl.PreScore(state, pod, s, nodes); {
		case st.IsSkip():
			state.skipScore = append(state.skipScore, pl.Name())
		case !st.IsSuccess():
			return nil, st.withPlugin(pl.Name())
		}
	}
	total, scores := make([]int64, len(nodes)), make([]int64, len(nodes))
	for _, pl := range p.Scores {
		if slices.Contains(state.skipScore, pl.Name()) {
			continue
		}
		for i, n := range nodes {
			scores[i] = pl.Score.Score(state, pod, n)
		}
		if norm, ok := pl.Score.(Normalizer); ok {
			norm.NormalizeScore(state, pod, nodes, scores)
		}
		for i := range total {
			total[i] += pl.Weight * scores[i]
		}
	}
	for _, e := range p.extended(pod) {
		_ = e.ScoreNodes(ctx, pod, nodes, total) // without its scores those of the others decide
	}
	return total, nil
}

// RunReserve reserves; on a refusal the caller runs Unreserve.
func (p *Profile) RunReserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, pl := range p.Reserves {
		if s := pl.Reserve(ctx, state, pod, node); !s.IsSuccess() {
			return s.withPlugin(pl.Name())
		}
	}
	return nil
}

// RunUnreserve undoes RunReserve, in the opposite order.
func (p *Profile) RunUnreserve(ctx context.Context, state *CycleState, pod *PodInfo, node string) {
	for i := len(p.Reserves) - 1; i >= 0; i-- {
		p.Reserves[i].Unreserve(ctx, state, pod, node)
	}
}

// RunPreBind runs until the first failure.
func (p *Profile) RunPreBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, pl := range p.PreBinds {
		if s := pl.PreBind(ctx, state, pod, node); !s.IsSuccess() {
			return s.withPlugin(pl.Name())
		}
	}
	return nil
}

// Lingers tells whether RunPreBind may wait for others.
func (p *Profile) Lingers(state *CycleState, pod *PodInfo) bool {
	for _, pl := range p.PreBinds {
		if l, ok := pl.(Lingering); ok && l.Lingers(state, pod) {
			return true
		}
	}
	return false
}

// RunBind lets the extender bind that does so for the pod, else the first plug-in that does not Skip.
func (p *Profile) RunBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) *Status {
	for _, e := range p.extended(pod) {
		if e.Binds() {
			return AsStatus(e.Bind(ctx, pod, node)).withPlugin(ExtenderName)
		}
	}
	for _, pl := range p.Binds {
		if s := pl.Bind(ctx, state, pod, node); !s.IsSkip() {
			return s.withPlugin(pl.Name())
		}
	}
	return AsStatus(errors.New("every bind plugin skipped the pod"))
}

// RunPostBind tells everyone.
func (p *Profile) RunPostBind(ctx context.Context, state *CycleState, pod *PodInfo, node string) {
	for _, pl := range p.PostBinds {
		pl.PostBind(ctx, state, pod, node)
	}
}

// Helps tells whether e may help a pod that the named plug-ins turned down. With none named everything may.
func (p *Profile) Helps(pod *PodInfo, failed map[string]bool, e Event) bool {
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

// DefaultNormalize scales scores so that the largest becomes MaxNodeScore; with reverse the largest becomes 0.
func DefaultNormalize(reverse bool, scores []int64) {
	var most int64
	for _, s := range scores {
		most = max(most, s)
	}
	for i, s := range scores {
		if most > 0 {
			s = MaxNodeScore * s / most
		}
		if reverse {
			s = MaxNodeScore - s
		}
		scores[i] = s
	}
}
