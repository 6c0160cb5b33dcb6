package receiver

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// nodeRate is how many bytes a node may send in a second, unpacked, after nodeBurst of them at once, which is what
	// some hundred pods need to start.
	nodeRate  = 1 << 20
	nodeBurst = 2 * MaxMessage
	// maxNodes is how many nodes may send within some seconds.
	maxNodes = 1024
	// noRoom is how long a node waits that is one too many.
	noRoom = 10 * time.Second
)

// Nodes bounds what each node sends. One is for all Receivers of a process, so that a node has no more by having
// several ways to send. It is safe for concurrent use.
type Nodes struct {
	mu sync.Mutex
	of map[string]*sending
}

// sending is what a node does: its bytes, and the messages of it that are read now.
type sending struct {
	limit    *rate.Limiter
	messages int
}

// NewNodes returns bounds for nodes that have sent nothing yet.
func NewNodes() *Nodes { return &Nodes{of: map[string]*sending{}} }

// tooFastError says after which time a node may send what it wants to send.
type tooFastError struct{ wait time.Duration }

// Error implements error.
func (e *tooFastError) Error() string {
	return fmt.Sprintf("the node sends more than it may: come again after %s", e.wait.Round(time.Millisecond))
}

// wait returns 0 if a node may send so many bytes now, which are then counted, and else how long it is to wait. The
// control plane, which is "", may always.
func (n *Nodes) wait(node string, bytes int) time.Duration {
	if node == "" {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.find(node)
	if s == nil {
		return noRoom
	}
	turn := s.limit.ReserveN(time.Now(), bytes)
	wait := turn.Delay()
	if wait > 0 {
		turn.Cancel()
	}
	return wait
}

// enter reports whether one more message of a node may be read, until leave.
func (n *Nodes) enter(node string) bool {
	if node == "" {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.find(node)
	if s == nil || s.messages >= nodeRequests {
		return false
	}
	s.messages++
	return true
}

func (n *Nodes) leave(node string) {
	if node == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[node].messages--
}

// find returns a node's, nil if there are too many. Those that have nothing under way are forgotten then: they are as
// new.
func (n *Nodes) find(node string) *sending {
	if s := n.of[node]; s != nil {
		return s
	}
	if len(n.of) >= maxNodes {
		for name, s := range n.of {
			if s.messages == 0 && s.limit.Tokens() >= nodeBurst {
				delete(n.of, name)
			}
		}
	}
	if len(n.of) >= maxNodes {
		return nil
	}
	s := &sending{limit: rate.NewLimiter(nodeRate, nodeBurst)}
	n.of[node] = s
	return s
}
