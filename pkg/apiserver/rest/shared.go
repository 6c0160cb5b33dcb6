package rest

import (
	"sync/atomic"

	"bonsai/pkg/apiserver/storage"
)

// shared is what the watchers of one representation see of an item. As long as there is more than one of them, it is
// made once for all and kept with the item while its change is among the latest.
type shared struct {
	form     storage.Form
	watchers atomic.Int32
}

// join counts one more watcher until leave is called.
func (s *shared) join() (leave func()) {
	s.watchers.Add(1)
	return func() { s.watchers.Add(-1) }
}

// of returns what encode makes of the event's item. Initial events are not kept: every watch has its own.
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
