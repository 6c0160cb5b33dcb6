package steps

import (
	"context"
	"time"

	"bonsai/pkg/cluster/host"
)

// lookEvery is how often a start looks at the cluster's processes.
const lookEvery = 500 * time.Millisecond

// look calls at, until it reports that there is nothing more to look for or ctx ends. Each look costs several processes
// some of the processor that a slow machine needs for the start itself, so a long start looks less often (host.Poll).
func look(ctx context.Context, at func() (over bool)) {
	_ = host.Poll(ctx, lookEvery, func() (bool, error) { return at(), nil }) // the end of ctx
}
