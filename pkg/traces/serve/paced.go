package serve

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// A client must take each piece of an answer within the patience, and the whole answer within answerTime: it holds its
// turn until then. Other callers cannot tell a client that does not read from one that reads slowly.
const (
	piece         = 64 << 10
	piecePatience = 5 * time.Second
	answerTime    = time.Minute
)

// errTurnLost is the error of a write after the turn was given to another caller.
var errTurnLost = errors.New("the turn was given to another caller")

// paced is an answer whose client must keep pace.
type paced struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	late     time.Time

	mu   sync.Mutex
	lost bool // the turn
}

func newPaced(w http.ResponseWriter, patience time.Duration) *paced {
	return &paced{ResponseWriter: w, control: http.NewResponseController(w), patience: patience,
		late: time.Now().Add(answerTime)}
}

// Write writes b in pieces.
func (p *paced) Write(b []byte) (done int, err error) {
	for done < len(b) && err == nil {
		if err = p.begin(); err == nil {
			var n int
			n, err = p.ResponseWriter.Write(b[done:min(len(b), done+piece)])
			done += n
		}
	}
	return done, err
}

// begin sets the time for a piece, and for what the server writes after the handler.
func (p *paced) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return errTurnLost
	}
	next := time.Now().Add(p.patience)
	if next.After(p.late) {
		next = p.late
	}
	_ = p.control.SetWriteDeadline(next) // only writers of tests have no deadlines
	return nil
}

// end ends the answer: a pending write fails, and there is no further one. Over HTTP/1 the handler still returns up to
// five seconds later, as crypto/tls tries to say goodbye to a client that takes nothing.
func (p *paced) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = true
	_ = p.control.SetWriteDeadline(time.Unix(1, 0))
}
