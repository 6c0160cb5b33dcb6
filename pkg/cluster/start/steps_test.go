package start

import (
	"testing"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestCleanUp: a first start does not speak of a last run, and looks for what one left all the same.
func TestCleanUp(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if got := cleanUp(c).Name; got != "Prepare the machine" {
		t.Errorf("first start: %q", got)
	}
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	if got := cleanUp(c).Name; got != "Clean up after the last run" {
		t.Errorf("second start: %q", got)
	}
}
