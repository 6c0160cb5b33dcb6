package cluster

import (
	"slices"
	"testing"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestStepsBefore: a first start does not speak of a last run, and looks for what one left all the same.
func TestStepsBefore(t *testing.T) {
	t.Parallel()
	for _, joined := range []*plan.Joined{nil, {}} {
		c := plantest.Config(t)
		c.Joined = joined
		names := func() (all []string) {
			for _, step := range stepsBefore(c, "", &c) {
				all = append(all, step.name)
			}
			return all
		}
		const again, first = "Clean up after the last run", "Prepare the machine"
		if got := names(); slices.Contains(got, again) || !slices.Contains(got, first) {
			t.Errorf("first start: %q", got)
		}
		if err := datadir.Save(c); err != nil {
			t.Fatal(err)
		}
		if got := names(); !slices.Contains(got, again) || slices.Contains(got, first) {
			t.Errorf("second start: %q", got)
		}
	}
}
