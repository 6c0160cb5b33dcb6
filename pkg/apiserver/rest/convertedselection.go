package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/singleflight"

	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/storage"
)

// convertedFacts are what objects are selected by in a version that a webhook makes of them. A call of the webhook is dear, so what it
// said of an object is kept with the stored item, for all lists and watchers, as long as anybody asks for it; lists, and watches that
// begin with what there is, ask for many at once.
type convertedFacts struct {
	full  *form
	names []string // of the fields
	kept  storage.Form
	calls singleflight.Group // one for an item, however many watchers are to hear of it
}

// selectedBy is what is kept of an object.
type selectedBy struct {
	Labels map[string]string `json:"l,omitempty"`
	Fields map[string]string `json:"f,omitempty"`
}

func newConvertedFacts(rt *catalog.Route, full *form) *convertedFacts {
	names := append(slices.Collect(maps.Keys(rt.Version.FieldNames)), "metadata.name", "metadata.namespace")
	slices.Sort(names)
	return &convertedFacts{full: full, names: names}
}

// of returns an item with the facts of the version instead of the stored ones.
func (c *convertedFacts) of(ctx context.Context, i *storage.Item) (*storage.Item, error) {
	b, err := i.Encoded(&c.kept, storage.WhileAsked, func(i *storage.Item) (storage.Bytes, error) { return c.ask(ctx, i) })
	if err != nil {
		return nil, err
	}
	var s selectedBy
	if err := json.Unmarshal(b.Flat(), &s); err != nil {
		return nil, fmt.Errorf("read what is kept of %s: %w", i.Key, err)
	}
	return &storage.Item{Key: i.Key, Revision: i.Revision, Facts: storage.NewFacts(&c.names, s.Labels, s.Fields)}, nil
}

// ask converts one item. Who stops waiting does not stop the others that wait for the same.
func (c *convertedFacts) ask(ctx context.Context, i *storage.Item) (storage.Bytes, error) {
	made := c.calls.DoChan(fmt.Sprintf("%s %d", i.Key, i.Revision), func() (any, error) {
		served, err := c.full.of(context.WithoutCancel(ctx), i)
		if err != nil {
			return nil, err
		}
		return c.text(served)
	})
	select {
	case r := <-made:
		if r.Err != nil {
			return storage.Bytes{}, r.Err
		}
		return r.Val.(storage.Bytes), nil
	case <-ctx.Done():
		return storage.Bytes{}, ctx.Err()
	}
}

// text is what is kept of a converted item.
func (c *convertedFacts) text(served *storage.Item) (storage.Bytes, error) {
	m, err := c.full.codec.Metadata(served)
	if err != nil {
		return storage.Bytes{}, err
	}
	s := selectedBy{Labels: m.Labels, Fields: map[string]string{}}
	for _, name := range c.names {
		s.Fields[name] = served.Facts.Fields().Get(name)
	}
	b, err := json.Marshal(s)
	return storage.Whole(b), err
}

// errNotKept tells that of an item nothing is kept yet.
var errNotKept = errors.New("nothing is kept")

// convert asks at once for all items of which nothing is kept.
func (c *convertedFacts) convert(ctx context.Context, items []*storage.Item) error {
	var missing []*storage.Item
	for _, i := range items {
		if _, err := i.Encoded(&c.kept, storage.WhileAsked, func(*storage.Item) (storage.Bytes, error) { return storage.Bytes{}, errNotKept }); err != nil {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	served, err := c.full.ofAll(ctx, missing)
	if err != nil {
		return err
	}
	for n, i := range missing {
		if _, err := i.Encoded(&c.kept, storage.WhileAsked, func(*storage.Item) (storage.Bytes, error) { return c.text(served[n]) }); err != nil {
			return err
		}
	}
	return nil
}
