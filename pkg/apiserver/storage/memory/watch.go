package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"bonsai/pkg/apiserver/storage"
)

const (
	// batch is how many events Next gives at once at most; bookmarkEvery is how often a quiet watch that wants
	// bookmarks gets one.
	batch         = 500
	bookmarkEvery = time.Minute
)

var errStopped = errors.New("memory: watch stopped")

// watch reads the history from a revision on. Its fields belong to the goroutine that calls Next. RequestProgress and
// Stop touch only the storage and done.
type watch struct {
	s        *Storage
	prefix   string
	opts     storage.WatchOptions
	initial  []storage.Event
	after    int64 // changes up to here were seen
	told     int64 // the revision of the last event given
	progress int64 // RequestProgress calls of all watches that were there when this one last looked

	stop sync.Once
	done chan struct{}
}

// Watch implements storage.Interface.
func (s *Storage) Watch(ctx context.Context, prefix string, opts storage.WatchOptions) (storage.Watch, error) {
	w := &watch{s: s, prefix: prefix, opts: opts, after: opts.Revision, told: opts.Revision, done: make(chan struct{})}
	s.mu.Lock()
	w.progress = s.progress
	s.mu.Unlock()
	if opts.Revision != 0 && !opts.Initial {
		return w, nil
	}
	match := storage.NotOlderThan
	if opts.Revision == 0 {
		match = storage.Latest
	}
	l, err := s.List(ctx, prefix, storage.ListOptions{Match: match, Revision: opts.Revision, Filter: opts.Filter})
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", prefix, err)
	}
	for _, item := range l.Items {
		w.initial = append(w.initial, storage.Event{Type: storage.Added, Item: item, Initial: true})
	}
	if opts.Initial {
		w.initial = append(w.initial,
			storage.Event{Type: storage.Bookmark, Item: &storage.Item{Revision: l.Revision}, InitialEnd: true})
	}
	w.after, w.told = l.Revision, l.Revision
	return w, nil
}

// Next implements storage.Watch.
func (w *watch) Next(ctx context.Context) ([]storage.Event, error) {
	if n := min(batch, len(w.initial)); n > 0 {
		events := w.initial[:n]
		w.initial = w.initial[n:]
		return events, nil
	}
	bookmark := time.NewTimer(bookmarkEvery)
	defer bookmark.Stop()
	for due := false; ; {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("memory: watch %s: %w", w.prefix, err)
		}
		events, moved, err := w.read(due)
		if err != nil || len(events) > 0 {
			return events, err
		}
		select {
		case <-moved:
		case <-bookmark.C:
			due = w.opts.Bookmarks
		case <-ctx.Done():
		case <-w.done:
			return nil, errStopped
		}
	}
}

// read returns what has happened since the last read, and the channel that tells when to read again. Both come from
// under one lock: a change after it closes that channel. It passes over changes outside of the prefix, but counts them
// as seen.
func (w *watch) read(due bool) ([]storage.Event, chan struct{}, error) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.after < s.compacted {
		return nil, nil, fmt.Errorf("watch %s from revision %d: %w", w.prefix, w.after, storage.ErrExpired)
	}
	var events []storage.Event
	first := sort.Search(len(s.history), func(i int) bool { return s.history[i].revision > w.after })
	for _, c := range s.history[first:] {
		w.after = c.revision
		if e, ok := w.event(c); ok && strings.HasPrefix(c.key, w.prefix) {
			events = append(events, e)
			w.told = c.revision
		}
		if len(events) == batch {
			return events, s.moved, nil
		}
	}
	w.after = max(w.after, s.revision)
	asked := (w.opts.Raw || w.opts.Bookmarks) && w.progress != s.progress
	w.progress = s.progress
	if len(events) == 0 && (asked || w.after > w.told && (due || w.opts.Raw)) {
		w.told = w.after
		events = append(events, storage.Event{Type: storage.Bookmark, Item: &storage.Item{Revision: w.after}})
	}
	return slices.Clip(events), s.moved, nil
}

// event returns the change as the watch's filter sees it; false if it does not see it.
func (w *watch) event(c change) (storage.Event, bool) {
	filter := w.opts.Filter
	if w.opts.Raw {
		filter = nil
	}
	t := storage.Seen(filter, c.prev, c.cur)
	switch {
	case t == storage.Deleted && w.opts.Raw:
		return storage.Event{Type: t, Item: &storage.Item{Key: c.key, Revision: c.revision}}, true
	case t == storage.Deleted:
		return storage.Event{Type: t, Item: c.prev.At(c.revision)}, true
	}
	return storage.Event{Type: t, Item: c.cur}, t != ""
}

// RequestProgress implements storage.Progresser.
func (w *watch) RequestProgress(context.Context) error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.progress++
	w.s.wake()
	return nil
}

// Stop implements storage.Watch.
func (w *watch) Stop() { w.stop.Do(func() { close(w.done) }) }
