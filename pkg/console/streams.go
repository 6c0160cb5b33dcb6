package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"bonsai/pkg/safetext"
)

// Bounds of streams.
const (
	// maxStreams is how many pages may be open at once.
	maxStreams = 16
	// maxWatches is how many watches one page may have; each is a request to the API server.
	maxWatches = 64
)

// streams carries the watches of a page in one response, since browsers keep six connections to a server at most, and a
// watch would hold one of them for as long as the page is open.
//
// GET /console/stream answers with lines: at first the stream's name, then "N EVENT" for an event of watch N, and "N"
// when watch N has ended. POST /console/watch?stream=NAME&id=N&path=PATH begins a watch. All end with the stream.
type streams struct {
	*server
	// mu guards open. It is held for a look at the map, never while something is written.
	mu   sync.Mutex
	open map[string]*stream
}

// stream is one response that carries watches.
type stream struct {
	ctx context.Context
	// mu guards the response and watches. A browser that reads slowly holds it up, and with it the watches: the API
	// server then ends them.
	mu      sync.Mutex
	write   func(begin string, line []byte) error
	watches int
	// long has one slot, for the watch that holds a long line: a page that reads slowly holds up its own alone.
	long chan struct{}
}

// serve answers with a stream until the browser goes.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	st := &stream{ctx: ctx, long: make(chan struct{}, 1), write: func(begin string, line []byte) error {
		for _, part := range [][]byte{[]byte(begin), line, []byte("\n")} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return control.Flush()
	}}
	name := NewToken()
	s.mu.Lock()
	if len(s.open) >= maxStreams {
		s.mu.Unlock()
		http.Error(w, "Too many pages are open.", http.StatusTooManyRequests)
		return
	}
	s.open[name] = st
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.open, name)
		s.mu.Unlock()
		// Whoever writes now has finished before the response ends, and nobody writes after that.
		st.mu.Lock()
		st.write = func(string, []byte) error { return context.Canceled }
		st.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if st.send(name, nil) != nil {
		return
	}
	<-ctx.Done()
}

// send writes a line that begins with a text.
func (st *stream) send(begin string, line []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.write(begin, line)
}

// watch begins a watch on a stream. It answers as soon as the API server has.
func (s *streams) watch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	st := s.open[q.Get("stream")]
	s.mu.Unlock()
	if st == nil {
		http.Error(w, "This stream has ended.", http.StatusGone)
		return
	}
	id, err := strconv.ParseUint(q.Get("id"), 10, 32)
	if err != nil {
		http.Error(w, "id: not a number", http.StatusBadRequest)
		return
	}
	target, err := watchURL(q.Get("path"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !st.add() {
		http.Error(w, fmt.Sprintf("A page may have %d watches.", maxWatches), http.StatusTooManyRequests)
		return
	}
	response, err := s.get(st.ctx, target)
	if err != nil {
		st.remove()
		http.Error(w, "The API server does not answer: "+safetext.Message(err.Error()), http.StatusBadGateway)
		return
	}
	if response.StatusCode != http.StatusOK {
		st.remove()
		defer response.Body.Close()
		w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
		w.WriteHeader(response.StatusCode)
		// An error here is the browser's end, or the API server's: the status has been sent.
		_, _ = io.Copy(w, io.LimitReader(response.Body, maxBody))
		return
	}
	w.WriteHeader(http.StatusNoContent)
	go func() { // ends with the stream, whose context the request has
		defer st.remove()
		defer response.Body.Close()
		lines, number := newLineReader(response.Body, st.long), strconv.FormatUint(id, 10)
		send := func(line []byte) error { return st.send(number+" ", line) }
		for lines.next(st.ctx, send) == nil {
		}
		// An error here is the browser's end: there is nobody to tell.
		_ = st.send(number, nil)
	}()
}

func (st *stream) add() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.watches == maxWatches {
		return false
	}
	st.watches++
	return true
}

func (st *stream) remove() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.watches--
}

// watchURL returns the path and query of a watch. Others are refused: an endless answer that is no watch would be cut
// into lines.
func watchURL(path string) (*url.URL, error) {
	u, err := url.ParseRequestURI(path)
	if err != nil || u.Host != "" || !strings.HasPrefix(u.Path, "/api/") && !strings.HasPrefix(u.Path, "/apis/") ||
		strings.Contains(u.Path, "..") || u.Query().Get("watch") != "1" {
		return nil, fmt.Errorf("path: %q is no watch of the API", safetext.Text(path))
	}
	return u, nil
}

// get sends a GET to the API server.
func (s *server) get(ctx context.Context, target *url.URL) (*http.Response, error) {
	u := *s.Upstream
	u.Path, u.RawQuery = strings.TrimSuffix(u.Path, "/")+target.Path, target.RawQuery
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	return s.Transport.RoundTrip(r)
}
