package apiserver

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/fairness"
	"bonsai/pkg/apiserver/inflight"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// limitPatience is how long a request waits for its turn if there is no priority and fairness. It is also how long one
// with a large body waits for its part of the memory for bodies.
const limitPatience = 5 * time.Second

// How many streams (watches, logs, upgraded connections) may be open at a time: those of all callers together, and
// those of one. They have no turn, as they last (only a watch has one, until it has begun), but each costs memory and a
// goroutine or two.
const (
	maxStreams     = 20000
	maxUserStreams = 4000
)

// limit lets a request wait for its turn. The turn ends with the first byte of the answer. What is left then is
// writing, and a client that reads slowly must not keep others waiting. For the same reason, the turn of a watch ends
// when the watch has begun.
func (s *Server) limit(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t, ok := s.take(w, r)
		switch {
		case !ok:
		case t == nil:
			next(w, r)
		default:
			defer t.over()
			next(t.writer(), r)
		}
	}
}

// take waits for the turn of a request, and returns nil and true for one that needs none. If it returns false, it has
// already answered the request.
func (s *Server) take(w http.ResponseWriter, r *http.Request) (*turn, bool) {
	info, user := request.InfoFrom(r.Context()), request.UserFrom(r.Context())
	var class fairness.Class
	if s.Fairness != nil {
		class = s.Fairness.Classify(user, info)
		class.SetHeaders(w.Header())
	}
	if isHealth(info) {
		return nil, true
	}
	// From here on t holds something, and each way out must end in over.
	t := &turn{ResponseWriter: w, lane: inflight.LaneOf(user, info), caller: inflight.CallerOf(user)}
	if rest.LongRunning(info) {
		t.stream = s.streams.Hold(t.lane, t.caller, ends(w))
		if !t.stream.Take(1) {
			countTerminated(s, r, http.StatusTooManyRequests)
			s.refuse(w, r, tooMany())
			return nil, false
		}
		// A watch that an aggregated API server answers begins when that server says so, which may be never: its turn
		// would be held as long.
		if s.Fairness == nil || info.Verb != "watch" || info.Stream ||
			s.Aggregated != nil && s.Aggregated.Serves(info) {
			t.none = true
			return t, true
		}
	}
	begun := time.Now()
	ok := s.seat(t, r, class, user, info)
	request.Wait(r.Context(), begun)
	if !ok {
		t.over()
		countTerminated(s, r, http.StatusTooManyRequests)
		refuseBusy(w, r)
		return nil, false
	}
	if rest.LongRunning(info) {
		t.watching = s.Fairness.Watching(info)
	}
	return t, true
}

// seat waits for the turn, and then for the memory that a large body takes while it is worked on. Until it has both,
// the body counts against the memory of waiting bodies, whose bound may also end the wait.
func (s *Server) seat(t *turn, r *http.Request, class fairness.Class, user *request.User,
	info *request.Info) (ok bool) {
	length, memory := rest.Received(r)
	ctx, done, ok := s.bodies.Wait(r.Context(), t.lane, t.caller, memory)
	defer done()
	if !ok {
		return false
	}
	if s.Fairness != nil {
		t.seat, ok = s.Fairness.Take(ctx, class, user, info, r.URL.RawQuery)
	} else {
		t.place, ok = s.limits.Acquire(ctx, t.lane, mutating(info))
	}
	if ok {
		t.body, ok = s.bodies.Take(ctx, t.lane, length)
	}
	return ok
}

// refuseBusy answers a request that gets no turn with 429, as Kubernetes does. The client may retry after 1s.
func refuseBusy(w http.ResponseWriter, r *http.Request) {
	closeUnread(w, r)
	w.Header().Set("Retry-After", "1")
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}

// isHealth reports whether a request asks for the server's health or version. These need no turn: a probe that waited
// in a flood would time out, and a server that works would count as failed.
func isHealth(info *request.Info) bool {
	if info.IsResource {
		return false
	}
	switch first, _, _ := strings.Cut(strings.TrimPrefix(info.Path, "/"), "/"); first {
	case "healthz", "livez", "readyz", "version":
		return true
	}
	return false
}

// A verb that it does not know counts as mutating.
func mutating(info *request.Info) bool {
	switch info.Verb {
	case "get", "list", "head", "options":
		return false
	}
	return true
}

// turn is what a request holds while it is worked on. It is also the writer that gives the turn back when the answer
// begins.
type turn struct {
	http.ResponseWriter
	// none is set for a stream that has no turn to end with its first byte. It needs its own writer, as it may take the
	// connection over.
	none  bool
	seat  *fairness.Turn
	place inflight.Turn
	body  inflight.Body
	// end may be called from several goroutines, and only the first call counts.
	ended atomic.Bool

	lane     inflight.Lane
	caller   string
	stream   *inflight.Holding // of a stream
	watching func()            // of a watch
}

func (t *turn) writer() http.ResponseWriter {
	if t.none {
		return t.ResponseWriter
	}
	return t
}

// end gives back the seat and the memory of the body. It may be called more than once.
func (t *turn) end() {
	if !t.ended.CompareAndSwap(false, true) {
		return
	}
	t.body.Give()
	t.place.End()
	if t.seat != nil {
		t.seat.End()
		t.seat = nil
	}
}

// over gives back everything that is still held: when the handler has returned, or when the request gets no turn.
func (t *turn) over() {
	t.end()
	t.stream.Give()
	if t.watching != nil {
		t.watching()
	}
}

// WriteHeader implements http.ResponseWriter.
func (t *turn) WriteHeader(code int) {
	if code >= http.StatusOK {
		t.end()
	}
	t.ResponseWriter.WriteHeader(code)
}

func (t *turn) Write(b []byte) (int, error) {
	t.end()
	return t.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (t *turn) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// ends returns a function that ends a request which reads or writes at its client's pace. It sets deadlines in the
// past, so that the pending read or write fails; the request's context ends with that.
func ends(w http.ResponseWriter) func() {
	control := http.NewResponseController(w)
	return func() { // only writers of tests have no deadlines
		_ = control.SetReadDeadline(longAgo)
		_ = control.SetWriteDeadline(longAgo)
	}
}

// slowAnswer is the age from which an answer that is still being written gives way to another one of its caller.
const slowAnswer = time.Second

// How many bytes the answers that are being built and written may hold for themselves alone: those of all callers
// together, and those of one.
const (
	maxAnswers     = 512 << 20
	maxUserAnswers = 128 << 20
)

// BoundAnswers returns a rest.Config.Hold. The bound is on the bytes that belong to one answer alone; shared encodings
// of objects do not count. An answer that does not fit is refused with 429 before it is built.
func BoundAnswers() func(w http.ResponseWriter, r *http.Request, bytes int) (release func(), err error) {
	answers := inflight.NewShares(maxAnswers, maxUserAnswers, slowAnswer)
	return func(w http.ResponseWriter, r *http.Request, bytes int) (func(), error) {
		user := request.UserFrom(r.Context())
		if user == nil {
			return nil, apierrors.NewUnauthorized("Unauthorized")
		}
		held := answers.Hold(inflight.LaneOf(user, request.InfoFrom(r.Context())), inflight.CallerOf(user),
			ends(w))
		if !held.Take(int64(bytes)) {
			return nil, tooMany()
		}
		return held.Give, nil
	}
}
