package cluster

import (
	"context"
	"io"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/preflight"
	"bonsai/pkg/cluster/start"
)

// PrintCheck compares this machine with what the cluster needs, prints all findings, and reports whether nothing is
// missing.
func PrintCheck(ctx context.Context, c plan.Config, out io.Writer) (ready bool, err error) {
	found, err := start.Findings(ctx, c)
	if err != nil {
		return false, err
	}
	return preflight.Errors(found) == nil, preflight.PrintTable(out, found)
}
