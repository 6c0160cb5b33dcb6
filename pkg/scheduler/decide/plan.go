package decide

import (
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/profile"
)

// plan sorts a profile's plug-ins by how their answers can be kept; slow ones are in none of its lists.
type plan struct {
	preFilters []framework.PreFilter
	filters    []framework.Filter
	preScores  []framework.PreScore
	scores     []profile.Weighted
	tracking   []tracking
	// late are the node-local filters that come after a tracking one: what a tracker refuses counts before them.
	late map[string]bool
}

type tracking struct {
	framework.Tracking
	name   string
	weight int64
	// filters reports whether it filters, and does not only score.
	filters bool
}

func newPlan(p *profile.Profile) *plan {
	pl := &plan{late: map[string]bool{}}
	add := func(plugin framework.Plugin, local func()) {
		if _, ok := plugin.(framework.NodeLocal); ok {
			local()
			return
		}
		t, ok := plugin.(framework.Tracking)
		if !ok {
			return
		}
		for _, known := range pl.tracking {
			if known.name == plugin.Name() {
				return
			}
		}
		pl.tracking = append(pl.tracking,
			tracking{t, plugin.Name(), weightOf(p, plugin.Name()), p.Filtering(plugin.Name())})
	}
	for _, f := range p.PreFilters {
		add(f, func() { pl.preFilters = append(pl.preFilters, f) })
	}
	pl.tracking = nil // in the order of the filters
	for _, f := range p.Filters {
		add(f, func() {
			pl.filters = append(pl.filters, f)
			if len(pl.tracking) > 0 {
				pl.late[f.Name()] = true
			}
		})
	}
	for _, f := range p.PreScores {
		add(f, func() { pl.preScores = append(pl.preScores, f) })
	}
	for _, f := range p.Scores {
		add(f.Score, func() { pl.scores = append(pl.scores, f) })
	}
	return pl
}

// weightOf is the weight of the plug-in's score, 0 if it does not score.
func weightOf(p *profile.Profile, name string) int64 {
	for _, s := range p.Scores {
		if s.Name() == name {
			return s.Weight
		}
	}
	return 0
}
