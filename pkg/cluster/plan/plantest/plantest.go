// Package plantest makes the configurations that tests share.
package plantest

import (
	"testing"

	"bonsai/pkg/cluster/plan"
)

// Config returns a cluster of two nodes whose data is in a directory of the test's own.
func Config(t *testing.T) plan.Config {
	t.Helper()
	c, err := plan.Default(t.TempDir(), t.TempDir()).WithNodes(2)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
