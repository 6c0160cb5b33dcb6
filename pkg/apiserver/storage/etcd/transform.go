package etcd

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"bonsai/pkg/apiserver/storage"
)

// transformer returns how values under key are changed; nil: they are not.
func (s *Store) transformer(key string) storage.Transformer {
	if s.cfg.Transform == nil {
		return nil
	}
	return s.cfg.Transform(key)
}

// seal returns what etcd keeps of value.
func (s *Store) seal(ctx context.Context, key string, path, value []byte) ([]byte, error) {
	t := s.transformer(key)
	if t == nil {
		return value, nil
	}
	stored, err := t.Seal(ctx, path, value)
	if err != nil {
		return nil, s.transformFailed(ctx, key, path, err)
	}
	return stored, nil
}

// open returns the value of what etcd keeps, and whether it is stale (storage.Transformer).
func (s *Store) open(ctx context.Context, key string, path, stored []byte) (value []byte, stale bool, err error) {
	t := s.transformer(key)
	if t == nil {
		return stored, false, nil
	}
	if value, stale, err = t.Open(ctx, path, stored); err != nil {
		return nil, false, corrupt(ctx, key, &storage.CorruptError{Key: string(path), Err: err})
	}
	return value, stale, nil
}

// corrupt is the error of a value that cannot be read. The end of the caller's ctx comes first: it explains the rest.
func corrupt(ctx context.Context, key string, err *storage.CorruptError) error {
	if ended := ctx.Err(); ended != nil {
		return storage.At("etcd: read", key, ended)
	}
	return storage.At("etcd: read", key, err)
}

// transformFailed is the error of a value that could not be sealed. The end of the caller's ctx comes first:
// it explains the rest.
func (s *Store) transformFailed(ctx context.Context, key string, path []byte, err error) error {
	if ended := ctx.Err(); ended != nil {
		return storage.At("etcd: transform", key, ended)
	}
	return storage.At("etcd: transform", key, &storage.TransformError{Key: string(path), Err: err})
}

// item makes an Item of what etcd returned, and reports whether its value is stale. The Item keeps etcd's slice, so a
// value that is not transformed is not copied on its way.
func (s *Store) item(ctx context.Context, kv *mvccpb.KeyValue) (item *storage.Item, stale bool, err error) {
	key := s.key(kv.Key)
	value, stale, err := s.open(ctx, key, kv.Key, kv.Value)
	if err != nil {
		return nil, false, err
	}
	facts, err := s.cfg.Facts.Of(key, storage.Draft{Value: value})
	if err != nil {
		return nil, false, corrupt(ctx, key, storage.Unreadable(string(kv.Key), value, kv.ModRevision, err))
	}
	return storage.NewItem(key, value, kv.ModRevision, facts), stale, nil
}

// raw is item without the facts, for which nothing is read. A value that cannot be opened stays sealed, and so does one
// that only another process could open: a raw watch brings the changes of everything, and must not wait for one.
func (s *Store) raw(ctx context.Context, kv *mvccpb.KeyValue) *storage.Item {
	key := s.key(kv.Key)
	t := s.transformer(key)
	if t == nil || len(kv.Value) == 0 { // a deletion has no value
		return storage.NewItem(key, kv.Value, kv.ModRevision, storage.Facts{})
	}
	if t.AtHand(kv.Value) {
		if value, _, err := t.Open(ctx, kv.Key, kv.Value); err == nil {
			return storage.NewItem(key, value, kv.ModRevision, storage.Facts{})
		}
	}
	return storage.NewSealed(key, kv.Value, kv.ModRevision)
}

// rawListed is raw for a list, which may wait.
func (s *Store) rawListed(ctx context.Context, kv *mvccpb.KeyValue) *storage.Item {
	item := s.raw(ctx, kv)
	if item.Sealed() {
		if opened, err := s.Open(ctx, item); err == nil {
			return opened
		}
	}
	return item
}

// Open returns a sealed item opened, which may take as long as a request. It still has no facts.
func (s *Store) Open(ctx context.Context, item *storage.Item) (*storage.Item, error) {
	value, _, err := s.open(ctx, item.Key, s.path(item.Key), item.Value())
	if err != nil {
		return nil, err
	}
	return storage.NewItem(item.Key, value, item.Revision, storage.Facts{}), nil
}
