package rest

import (
	"context"
	"fmt"

	"golang.org/x/sync/singleflight"

	"bonsai/pkg/apiserver/storage"
)

// cachedRepresentation is a representation that a webhook makes, which is expensive: what it made of a stored item is
// kept with that (storage.Item.AddVariant), for all gets, lists and watches, and whoever asks for several items has
// those that are missing made at once. So clients pay once for an object, and while the webhook is out of reach they
// have what it made before.
type cachedRepresentation struct {
	// make makes the representation of all items, or of none.
	make func(context.Context, []*storage.Item) ([]*storage.Item, error)
	kept storage.Form
	// calls lets those who ask for the same at the same time, as the watchers of a change do, share one call.
	calls singleflight.Group
}

// has reports whether the representation of an item is there.
func (f *cachedRepresentation) has(stored *storage.Item) bool { return stored.Variant(&f.kept) != nil }

func (f *cachedRepresentation) item(ctx context.Context, stored *storage.Item) (*storage.Item, error) {
	out, err := f.page(ctx, []*storage.Item{stored})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func (f *cachedRepresentation) page(ctx context.Context, stored []*storage.Item) ([]*storage.Item, error) {
	out := make([]*storage.Item, len(stored))
	var missing []*storage.Item
	var at []int
	for n, i := range stored {
		if out[n] = i.Variant(&f.kept); out[n] == nil {
			missing, at = append(missing, i), append(at, n)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	made, err := f.ask(ctx, missing)
	if err != nil {
		return nil, err
	}
	for _, n := range at {
		out[n] = made[stored[n]]
	}
	return out, nil
}

// ask makes what is missing, or waits for somebody who does. Who stops waiting does not stop the others.
func (f *cachedRepresentation) ask(ctx context.Context,
	missing []*storage.Item) (map[*storage.Item]*storage.Item, error) {
	first, last := missing[0], missing[len(missing)-1]
	// The key names the range, not each item in it: two calls with the same ends mostly ask for the same items. The
	// check below finds those that do not. The call outlives the request that began it, because others may wait for it.
	flight := f.calls.DoChan(
		fmt.Sprintf("%d from %s %d to %s %d", len(missing), first.Key, first.Revision, last.Key, last.Revision),
		func() (any, error) {
			return f.makeAndKeep(context.WithoutCancel(ctx), missing)
		})
	select {
	case r := <-flight:
		if r.Err != nil {
			return nil, r.Err
		}
		made := r.Val.(map[*storage.Item]*storage.Item)
		for _, i := range missing {
			if made[i] == nil { // the other call was for others in between, or for other copies of the same
				return f.makeAndKeep(ctx, missing)
			}
		}
		return made, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (f *cachedRepresentation) makeAndKeep(ctx context.Context,
	missing []*storage.Item) (map[*storage.Item]*storage.Item, error) {
	made, err := f.make(ctx, missing)
	if err != nil {
		return nil, err
	}
	out := make(map[*storage.Item]*storage.Item, len(missing))
	for n, i := range missing {
		out[i] = i.AddVariant(&f.kept, made[n])
	}
	return out, nil
}
