package profile

import (
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/framework"
)

// handle joins the profile, which knows the plug-ins, and the queue, which knows the waiting pods.
type handle struct {
	*Profile
	framework.Activator
}

// Handle returns what the profile's PostFilter plug-ins are called with.
func (p *Profile) Handle(a framework.Activator) framework.Handle { return handle{p, a} }

// RejectWaiting refuses a pod that waits between Permit and binding; false says that it does not wait.
func (p *Profile) RejectWaiting(pod types.UID, plugin, reason string) bool {
	w := p.WaitingPod(pod)
	if w == nil {
		return false
	}
	w.Reject(plugin, reason)
	return true
}
