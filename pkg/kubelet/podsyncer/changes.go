package podsyncer

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/notify"
)

// Changes carries what happens to pods, in the runtime or to their probes, to the step that ends them: the status stays
// fresh while containers use their grace period. It is made before the Syncer, because the probes that the Syncer
// starts notify it of their results. It is safe for concurrent use.
type Changes struct {
	mu sync.Mutex
	// pods has a signal for each pod that a worker has begun with.
	pods map[types.UID]notify.Signal
}

// NewChanges returns Changes of no pods.
func NewChanges() *Changes { return &Changes{pods: map[types.UID]notify.Signal{}} }

// Notify reports that something happened to a pod. It does not block.
func (c *Changes) Notify(uid types.UID) {
	c.mu.Lock()
	s := c.pods[uid] // nil for a pod that no worker has begun with: its Notify has no effect
	c.mu.Unlock()
	s.Notify()
}

// begin returns the signal of a pod that a worker begins with.
func (c *Changes) begin(uid types.UID) notify.Signal {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := notify.New()
	c.pods[uid] = s
	return s
}

func (c *Changes) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pods, uid)
}
