package aggregator

import (
	"context"
	"sync"
	"time"
)

const (
	// goodFor is how long a document of another server is served before that server is asked for it again.
	goodFor = time.Minute
	// fetchTimeout is how long a server has for a document, and firstWait how long who asks for the first time waits
	// for that.
	fetchTimeout = 10 * time.Second
	firstWait    = 2 * time.Second
)

// later is a document of another server, fetched in the background when a client wants it. Later clients get the last
// one until the next arrives, so that a server that has become slow delays nobody.
type later struct {
	mu      sync.Mutex
	body    []byte        // the last good one, empty if the server has none; nil if that is not known
	asked   time.Time     // when the last answer came, good or bad
	running chan struct{} // closed when the answer comes; nil if none is waited for
}

// get returns the last document, empty if the server has none, nil if that is not known. ctx is who wants it, life is
// that of the server, now the time.
func (l *later) get(ctx, life context.Context, now func() time.Time,
	fetch func(context.Context) ([]byte, error)) []byte {
	l.mu.Lock()
	body, first, running := l.body, l.asked.IsZero(), l.running
	if running == nil && (first || now().Sub(l.asked) >= goodFor) {
		running = make(chan struct{})
		l.running = running
		go l.fetch(life, now, fetch, running)
	}
	l.mu.Unlock()
	if !first {
		return body
	}
	wait := time.NewTimer(firstWait)
	defer wait.Stop()
	select {
	case <-running:
	case <-wait.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.body
}

// fetch asks once. It ends with the server's life at the latest.
func (l *later) fetch(life context.Context, now func() time.Time, fetch func(context.Context) ([]byte, error),
	done chan struct{}) {
	ctx, cancel := context.WithTimeout(life, fetchTimeout)
	defer cancel()
	body, err := fetch(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.body = body
	}
	l.asked, l.running = now(), nil
	close(done)
}
