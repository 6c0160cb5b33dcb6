package shutdown

import (
	"errors"
	"sync/atomic"
)

// Reasons and messages of the pods that a shutdown ends or refuses, as Kubernetes has them.
const (
	reasonTerminated  = "Terminated"
	messageTerminated = "Pod was terminated in response to imminent node shutdown."
	ReasonRefused     = "NodeShutdown"
	messageRefused    = "Pod was rejected as the node is shutting down."
)

// errShuttingDown is why the node is not ready.
var errShuttingDown = errors.New("node is shutting down")

// State is whether the node is shutting down. The Manager writes it; the Node's status and the admission of pods read
// it. It exists apart from the Manager because that one needs pods that it can end. The zero value is a node that is
// not shutting down. Safe for concurrent use.
type State struct{ down atomic.Bool }

// Err returns why the node is not ready while it is shutting down, else nil.
func (s *State) Err() error {
	if s.down.Load() {
		return errShuttingDown
	}
	return nil
}

// Refuse returns why the node takes no pods while it is shutting down, else "".
func (s *State) Refuse() string {
	if s.down.Load() {
		return messageRefused
	}
	return ""
}
