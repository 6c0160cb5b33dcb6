package rest

import (
	"sync/atomic"

	"bonsai/pkg/apiserver/storage"
)

// shared is the encoding of an item that all watchers of one representation use. While there are two watchers or more,
// it is made once and kept with the item, as long as its change is among the latest. With a single watcher, keeping it
// would only cost memory.
type shared struct {
	form     storage.Form
	watchers atomic.Int32
}

// join counts one more watcher until leave is called.
func (s *shared) join() (leave func()) {
	s.watchers.Add(1)
	return func() { s.watchers.Add(-1) }
}

// of returns encode's result for the event's item. Initial events are not kept: every watch gets its own, at a time of
// its own. Watchers call it at the same time. Two may both encode, and then use the same bytes (storage.Item.Encoded).
func (s *shared) of(e *storage.Event, encode func(*storage.Item) ([]byte, error)) ([]byte, error) {
	if e.Initial || s.watchers.Load() < 2 {
		return encode(e.Item)
	}
	doc, err := e.Item.Encoded(&s.form, storage.WhileRecent, func(item *storage.Item) (storage.Bytes, error) {
		b, err := encode(item)
		return storage.Whole(b), err
	})
	return doc.Flat(), err
}
