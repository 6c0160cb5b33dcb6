package attachdetach

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// hold is the node that a volume is about to be attached to. It stands in for the attachment until that is in the
// cache.
type hold struct {
	id   int // no two are alike
	node string
	// asked means that the request that makes the attachment has ended; until is when it cannot be carried out any
	// more, if its answer did not say whether it was.
	asked bool
	until time.Time
}

// holds are those of volumes, by name: workers at two nodes must not both take a volume that may be at one.
//
// A hold is needed because the cache of attachments lags behind the requests: in that time a second node would find the
// volume free. It ends when the attachment is seen, when the server refused it, or when the server has no such
// attachment.
type holds struct {
	mu   sync.Mutex
	of   map[string]hold
	last int
}

// take gives a volume's hold to a node. The caller holds mu, since it found the volume free.
func (h *holds) take(volume, node string) {
	h.last++
	h.of[volume] = hold{id: h.last, node: node}
}

const (
	// unanswered is how long the server may still carry out a request whose answer was lost: the time it gives
	// requests.
	unanswered = time.Minute
	// holdCheck is how soon a node that waits for a hold to end looks again.
	holdCheck = time.Second
)

// asked notes how the request that makes the attachment ended. One that the server refused has made nothing; for every
// other the hold stays until the attachment is seen, or the server says that there is none.
func (h *holds) asked(volume, node string, err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is, ok := h.of[volume]
	if !ok || is.node != node { // seen meanwhile
		return
	}
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
		is.asked = true
	case refused(err):
		delete(h.of, volume)
		return
	default:
		is.asked, is.until = true, now.Add(unanswered)
	}
	h.of[volume] = is
}

// refused reports whether the server says that it has done nothing: an answer of 4xx.
//
// A 5xx or a broken connection says nothing: the request may have been carried out.
func refused(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Code >= 400 && status.Status().Code < 500
}

// due returns the hold that another node has on a volume, and whether the server can be asked about its attachment.
func (h *holds) due(volume, node string, now time.Time) (hold, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.of[volume]
	if is.node == node {
		return hold{}, false
	}
	return is, is.asked && !now.Before(is.until)
}

// missed ends a hold whose attachment is not there; not one that its node took again meanwhile.
func (h *holds) missed(volume string, is hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[volume] == is {
		delete(h.of, volume)
	}
}

// end ends a node's hold: its attachment is in the cache.
func (h *holds) end(volume, node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[volume].node == node {
		delete(h.of, volume)
	}
}
