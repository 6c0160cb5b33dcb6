package node

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// TestKeeperEndsNodesTogether: a reload waits for as long as one node may take to end, so no node may wait for another.
func TestKeeperEndsNodesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(supervise.New(t.Context(), slog.New(slog.DiscardHandler)), "", cgroup.Groups{}, nil)
		var stopped sync.WaitGroup
		stopped.Add(2)
		for number := range 2 {
			k.running[number] = &kept{stop: stopped.Done, done: make(chan struct{})}
			go func(ended chan struct{}) {
				stopped.Wait()
				close(ended)
			}(k.running[number].done)
		}
		if err := k.Keep(t.Context(), plan.Config{}); err != nil || len(k.running) != 0 {
			t.Errorf("error %v, still kept: %v", err, k.running)
		}
	})
}
