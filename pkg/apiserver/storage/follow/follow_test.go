package follow

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// script is a Source that plays one list of events per watch; after the last it ends the test's context.
type script struct {
	watches [][]storage.Event
	done    context.CancelFunc
}

func (s *script) Watch(context.Context, string, storage.WatchOptions) (storage.Watch, error) {
	if len(s.watches) == 0 {
		s.done()
		return nil, errors.New("the end")
	}
	events := s.watches[0]
	s.watches = s.watches[1:]
	return &play{events: events}, nil
}

type play struct{ events []storage.Event }

func (p *play) Next(context.Context) ([]storage.Event, error) {
	if len(p.events) == 0 {
		return nil, storage.ErrExpired
	}
	e := p.events[:1]
	p.events = p.events[1:]
	return e, nil
}

func (p *play) Stop() {}

type store map[string]string

func (s store) Put(key string, obj runtime.Object) { s[key] = obj.(*corev1.ConfigMap).Name }
func (s store) Delete(key string)                  { delete(s, key) }

func TestFollow(t *testing.T) {
	t.Parallel()
	event := func(typ storage.EventType, key, value string) storage.Event {
		return storage.Event{Type: typ, Item: storage.NewItem(key, []byte(value), 0, storage.Facts{})}
	}
	end := storage.Event{Type: storage.Bookmark, Item: &storage.Item{}, InitialEnd: true}
	ctx, cancel := context.WithCancel(context.Background())
	src := &script{done: cancel, watches: [][]storage.Event{
		{event(storage.Added, "a", "1"), event(storage.Added, "b", "1"), end, event(storage.Modified, "a", "2"),
			event(storage.Added, "c", "1"), event(storage.Deleted, "b", "")},
		{event(storage.Added, "a", "3")}, // breaks before the end: c is not forgotten
		{event(storage.Added, "a", "4"), event(storage.Added, "d", "bad"), event(storage.Added, "e", "1"), end},
	}}
	got := store{}
	decode := func(b []byte) (runtime.Object, error) {
		if string(b) == "bad" {
			return nil, errors.New("bad")
		}
		cm := &corev1.ConfigMap{}
		cm.Name = string(b)
		return cm, nil
	}
	f := New(Resource{Source: src, Decode: decode}, got, slog.New(slog.DiscardHandler))
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
	<-f.Synced()
	if want := (store{"a": "4", "e": "1"}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
