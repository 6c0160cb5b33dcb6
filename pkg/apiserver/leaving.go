package apiserver

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// leaving is how the server sends its clients away at its end: watches one after the other instead of all at once, and
// new requests to another server while the earlier ones are answered.
type leaving struct {
	short   atomic.Int64 // requests under way that are neither watches nor streams
	refuses atomic.Bool  // new requests

	mu      sync.Mutex
	watches map[*watching]struct{}
}

// watching is an open watch.
type watching struct{ end context.CancelFunc }

// exempt are the paths that are answered to the end: those of health, and of metrics.
func exempt(path string) bool {
	switch path {
	case "/healthz", "/livez", "/readyz", "/metrics":
		return true
	}
	return false
}

// retryLater answers 429 to requests that come when the server is about to go, with SendRetryAfter. Their clients
// connect again, and reach another server. Without SendRetryAfter it adds no filter at all.
func (s *Server) retryLater(next http.HandlerFunc) http.HandlerFunc {
	if !s.SendRetryAfter {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if exempt(r.URL.Path) {
			next(w, r)
			return
		}
		long := rest.LongRunning(request.InfoFrom(r.Context()))
		if !long { // counted before refuses is read, so that none comes in after the last was counted
			s.leaving.short.Add(1)
			defer s.leaving.short.Add(-1)
		}
		if s.leaving.refuses.Load() {
			h := w.Header()
			h.Del("Cache-Control")
			h.Set("Connection", "close")
			h.Set("Retry-After", "5")
			http.Error(w, "The apiserver is shutting down, please try again later.", http.StatusTooManyRequests)
			return
		}
		next(w, r)
	}
}

// answerTheRest refuses new requests until those under way have been answered, or timeout has passed.
func (s *Server) answerTheRest(timeout time.Duration) {
	s.leaving.refuses.Store(true)
	end := time.NewTimer(timeout)
	defer end.Stop()
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	for s.leaving.short.Load() > 0 {
		select {
		case <-poll.C:
		case <-end.C:
			return
		}
	}
}

// followWatches knows the open watches, with WatchGrace. Without WatchGrace it adds no filter at all.
func (s *Server) followWatches(next http.HandlerFunc) http.HandlerFunc {
	if s.WatchGrace <= 0 {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if request.InfoFrom(r.Context()).Verb != "watch" {
			next(w, r)
			return
		}
		ctx, end := context.WithCancel(r.Context())
		defer end()
		open := &watching{end}
		s.leaving.mu.Lock()
		if s.leaving.watches == nil {
			s.leaving.watches = map[*watching]struct{}{}
		}
		s.leaving.watches[open] = struct{}{}
		s.leaving.mu.Unlock()
		defer func() {
			s.leaving.mu.Lock()
			delete(s.leaving.watches, open)
			s.leaving.mu.Unlock()
		}()
		next(w, r.WithContext(ctx))
	}
}

// endWatches ends the open watches one after the other over the whole of grace, so that their clients do not all begin
// again at another server in the same moment. It returns when the last has been told, or ctx ends.
func (s *Server) endWatches(ctx context.Context, grace time.Duration) {
	s.leaving.mu.Lock()
	open := make([]*watching, 0, len(s.leaving.watches))
	for w := range s.leaving.watches {
		open = append(open, w)
	}
	s.leaving.mu.Unlock()
	if len(open) == 0 {
		return
	}
	turns := time.NewTicker(max(grace/time.Duration(len(open)), time.Microsecond))
	defer turns.Stop()
	for _, w := range open {
		w.end()
		select {
		case <-turns.C:
		case <-ctx.Done():
			return
		}
	}
}
