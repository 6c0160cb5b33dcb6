package story

import (
	"cmp"
	"slices"
	"time"
)

// Change is one step in two windows of time.
type Change struct {
	Name string `json:"name"`
	// Then and Now have no Count where the step was not seen.
	Then Spread `json:"then"`
	Now  Spread `json:"now"`
}

// P50 is by how much the median grew, 0 if the step was in one window only.
func (c Change) P50() time.Duration {
	if c.Then.Count == 0 || c.Now.Count == 0 {
		return 0
	}
	return c.Now.P50 - c.Then.P50
}

// Compare joins two summaries by step. The whole startup comes first, then the steps whose median changed most.
func Compare(then, now Summary) []Change {
	changes := []Change{{Name: now.Total.Name, Then: then.Total, Now: now.Total}}
	for _, s := range now.Steps {
		changes = append(changes, Change{Name: s.Name, Then: find(then.Steps, s.Name), Now: s})
	}
	for _, s := range then.Steps {
		if find(now.Steps, s.Name).Count == 0 {
			changes = append(changes, Change{Name: s.Name, Then: s})
		}
	}
	slices.SortStableFunc(changes[1:], func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.P50().Abs(), a.P50().Abs()), cmp.Compare(b.Now.Share, a.Now.Share))
	})
	return changes
}

func find(all []Spread, name string) Spread {
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	return Spread{Name: name}
}
