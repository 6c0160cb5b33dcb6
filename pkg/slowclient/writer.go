// Package slowclient bounds how long a server waits for a client that does not take what is written to it, where the
// answer as a whole has no deadline: watches, logs, upgraded connections. A stream may be silent as long as it likes;
// only a piece that is under way counts. A client that does not take it in time loses the stream, and the connection
// unless others share it.
package slowclient

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"
)

// piece is how many bytes a client must take within the patience: a slow one that does read keeps its stream.
const piece = 64 << 10

// Writer is the answer of one stream.
type Writer struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration

	mu sync.Mutex
	// since is when the piece under way began; zero while none is. The timer cuts the stream under mu and only while a
	// piece is under way, so that it never touches the answer of a handler that has returned.
	since time.Time
	// timer is nil while it does not run, as for most watches most of the time. It is set once for all pieces of a
	// patience and looks then how old the piece under way is: to set and stop it for each piece would cost as much as
	// to write a small one.
	timer    *time.Timer
	hijacked bool
}

// Stream lifts the deadlines that the server has for whole requests from this one, and gives each piece patience
// instead. The caller calls End when the handler is done.
func Stream(w http.ResponseWriter, patience time.Duration) *Writer {
	s := &Writer{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
	// Only writers of tests have no deadlines.
	_ = s.control.SetReadDeadline(time.Time{})
	_ = s.control.SetWriteDeadline(time.Time{})
	return s
}

// End bounds what is left: the last bytes, which the server writes after the handler.
func (s *Writer) End() {
	s.mu.Lock()
	s.since = time.Time{}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	if !s.hijacked {
		_ = s.control.SetWriteDeadline(time.Now().Add(s.patience))
	}
}

// long ago: a deadline that ends a write at once.
var longAgo = time.Unix(1, 0)

func (s *Writer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.patience - time.Since(s.since); left > 0 && !s.since.IsZero() {
		s.timer.Reset(left)
		return
	}
	s.timer = nil
	if s.since.IsZero() {
		return
	}
	_ = s.control.SetWriteDeadline(longAgo)
}

func (s *Writer) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Now()
	if s.timer == nil {
		s.timer = time.AfterFunc(s.patience, s.expire)
	}
}

func (s *Writer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

// Write writes b in pieces, each with the whole patience.
func (s *Writer) Write(b []byte) (int, error) {
	return inPieces(b, func(p []byte) (int, error) {
		s.begin()
		defer s.end()
		return s.ResponseWriter.Write(p)
	})
}

// FlushError is for http.ResponseController.
func (s *Writer) FlushError() error {
	s.begin()
	defer s.end()
	return s.control.Flush()
}

// Flush implements http.Flusher.
func (s *Writer) Flush() { _ = s.FlushError() } // a client that left is noticed by the next write

// Unwrap is for http.ResponseController.
func (s *Writer) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Hijack implements http.Hijacker. The patience holds for what is written to the connection, too.
func (s *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := s.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	s.hijacked = true
	patient := Conn{Conn: c, Patience: s.patience}
	rw.Writer.Reset(patient) // nothing is buffered yet
	return patient, rw, nil
}

// Conn is a connection whose peer must take each piece of what is written within Patience.
type Conn struct {
	net.Conn
	Patience time.Duration
}

// Write writes b in pieces.
func (c Conn) Write(b []byte) (int, error) {
	return inPieces(b, func(p []byte) (int, error) {
		if err := c.SetWriteDeadline(time.Now().Add(c.Patience)); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	})
}

func inPieces(b []byte, write func([]byte) (int, error)) (int, error) {
	done := 0
	for {
		p := b[done:min(len(b), done+piece)]
		n, err := write(p)
		done += n
		if err != nil || done >= len(b) {
			return done, err
		}
	}
}
