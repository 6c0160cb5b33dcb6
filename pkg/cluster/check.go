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
	found = append(found, contradictions(c)...)
	return preflight.Errors(found) == nil, preflight.PrintTable(out, found)
}

// contradictions returns a finding for everything for which Up refuses c, whatever the machine is like.
func contradictions(c plan.Config) []preflight.Finding {
	if c.Joined != nil { // it is as the cluster on another machine says, and Up takes it as it is
		return nil
	}
	err := c.Validate()
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return preflight.Refused("cluster", all.Unwrap()...)
	}
	return preflight.Refused("cluster", err)
}
