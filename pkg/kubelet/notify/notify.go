// Package notify has the notification by which one loop of the kubelet makes another look again.
package notify

// Signal is a notification without content. It keeps one until it is received, and later ones join it: the receiver
// looks at everything, so once is enough. The owner receives from it as from a channel.
type Signal chan struct{}

// New returns a Signal that has not been notified.
func New() Signal { return make(Signal, 1) }

// Notify makes the next receive succeed, or the one that waits. It never blocks.
func (s Signal) Notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}
