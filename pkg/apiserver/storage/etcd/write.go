package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"bonsai/pkg/apiserver/storage"
)

// txn runs op if key's newest change is modRevision (0: the key is free, as etcd has it), else reads key: the loser of
// a race then knows the newest value without another request. Create needs no value, only that there is one.
//
// It is not tried again when the connection breaks: the write may have happened, and a second try would see it as
// somebody else's. The caller gets the error (storage.ErrTimeout after Config.Timeout).
func (s *Store) txn(ctx context.Context, operation string, key []byte, modRevision int64,
	op *pb.RequestOp) (resp *pb.TxnResponse, err error) {
	req := &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: modRevision}}},
		Success: []*pb.RequestOp{op},
	}
	if modRevision != 0 {
		req.Failure = []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}}
	}
	err = s.do(ctx, operation, string(key), func(ctx context.Context) error {
		resp, err = s.kv.Txn(ctx, req, s.call...)
		return err
	})
	return resp, err
}

// put writes d under key if it is still at modRevision. item is nil if it is not; then now is what is there.
//
// The facts come first: a value whose facts cannot be read is not stored. A lease may have ended in etcd while this
// process still gave it out. etcd then refuses the put and writes nothing, so put repeats it once with a new lease.
func (s *Store) put(ctx context.Context, operation, key string, modRevision int64, d storage.Draft) (item *storage.Item,
	now *mvccpb.KeyValue, err error) {
	facts, err := s.cfg.Facts.Of(key, d)
	if err != nil {
		return nil, nil, err
	}
	path := s.path(key)
	stored, err := s.seal(ctx, key, path, d.Value)
	if err != nil {
		return nil, nil, err
	}
	resp, err := s.putOnce(ctx, operation, path, modRevision, stored, d.TTL)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.leases.drop(d.TTL)
		resp, err = s.putOnce(ctx, operation, path, modRevision, stored, d.TTL)
	}
	if err != nil {
		return nil, nil, err
	}
	if !resp.Succeeded {
		return nil, found(resp), nil
	}
	return storage.NewItem(key, d.Value, resp.Header.Revision, facts), nil, nil
}

// putOnce is one try of put, with a lease if the draft has a TTL. The lease has a time limit of its own. If the put
// then fails, the lease only counts one key too many.
func (s *Store) putOnce(ctx context.Context, operation string, path []byte, modRevision int64, stored []byte,
	ttl time.Duration) (*pb.TxnResponse, error) {
	put := &pb.PutRequest{Key: path, Value: stored}
	if ttl > 0 {
		err := s.do(ctx, "lease", string(path), func(ctx context.Context) (err error) {
			put.Lease, err = s.leases.take(ctx, ttl, time.Now())
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return s.txn(ctx, operation, path, modRevision, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
}

// found is what a failed transaction read under its key; nil for nothing.
func found(resp *pb.TxnResponse) *mvccpb.KeyValue {
	if len(resp.Responses) == 0 {
		return nil
	}
	if r := resp.Responses[0].GetResponseRange(); r != nil && len(r.Kvs) > 0 {
		return r.Kvs[0]
	}
	return nil
}

// Create implements storage.Interface.
func (s *Store) Create(ctx context.Context, key string, d storage.Draft) (*storage.Item, error) {
	item, _, err := s.put(ctx, "create", key, 0, d)
	if err == nil && item == nil {
		err = fmt.Errorf("create %s: %w", key, storage.ErrExists)
	}
	return item, err
}

// Update implements storage.Interface.
func (s *Store) Update(ctx context.Context, key string,
	change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	return s.UpdateFrom(ctx, nil, key, change)
}

// UpdateFrom is Update that shows change the item hint first, which may be old; nil: the newest. The watch cache gives
// its own item as the hint, which saves a read of etcd for most updates. change runs on the caller's goroutine.
func (s *Store) UpdateFrom(ctx context.Context, hint *storage.Item, key string,
	change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	var written *storage.Item
	err := s.converge(ctx, hint, key, func(current *storage.Item, as standing) (*mvccpb.KeyValue, bool, error) {
		d, err := change(current)
		if err != nil {
			return nil, false, err
		}
		// Nothing to write, unless etcd has the value by an old key. On a hint that counts only once the hint has
		// proved to be the newest.
		if as != stale && bytes.Equal(d.Value, current.Value()) {
			written = current
			return nil, as != hinted, nil
		}
		item, now, err := s.put(ctx, "update", key, current.Revision, d)
		if err != nil {
			return nil, true, err
		}
		written = item
		return now, item != nil, nil
	})
	if err != nil {
		return nil, err
	}
	return written, nil
}

// Delete implements storage.Interface.
func (s *Store) Delete(ctx context.Context, key string, check func(*storage.Item) error) (*storage.Item, error) {
	return s.DeleteFrom(ctx, nil, key, check)
}

// DeleteFrom is Delete that shows check the item hint first, which may be old; nil: the newest.
func (s *Store) DeleteFrom(ctx context.Context, hint *storage.Item, key string,
	check func(*storage.Item) error) (*storage.Item, error) {
	path := s.path(key)
	remove := &pb.RequestOp{
		Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: path}}}
	var deleted *storage.Item
	err := s.converge(ctx, hint, key, func(current *storage.Item, _ standing) (*mvccpb.KeyValue, bool, error) {
		if err := check(current); err != nil {
			return nil, false, err
		}
		resp, err := s.txn(ctx, "delete", path, current.Revision, remove)
		if err != nil {
			return nil, true, err
		}
		if !resp.Succeeded {
			return found(resp), false, nil
		}
		deleted = current.At(resp.Header.Revision)
		return nil, true, nil
	})
	if err != nil {
		return nil, err
	}
	return deleted, nil
}

// Discard implements storage.Interface.
func (s *Store) Discard(ctx context.Context, key string, decodes func(*storage.Item) bool, dry bool) (int64, error) {
	path := s.path(key)
	resp, err := s.rangeOf(ctx, "get", &pb.RangeRequest{Key: path})
	if err != nil {
		return 0, err
	}
	if len(resp.Kvs) == 0 {
		return 0, fmt.Errorf("discard %s: %w", key, storage.ErrNotFound)
	}
	remove := &pb.RequestOp{
		Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: path}}}
	for now := resp.Kvs[0]; now != nil; {
		item, _, err := s.item(ctx, now)
		var corrupt *storage.CorruptError
		switch {
		case err == nil && decodes(item):
			return 0, fmt.Errorf("discard %s: %w", key, storage.ErrReadable)
		case err != nil && !errors.As(err, &corrupt):
			return 0, err
		case dry:
			return 0, nil
		}
		done, err := s.txn(ctx, "delete", path, now.ModRevision, remove)
		if err != nil {
			return 0, err
		}
		if done.Succeeded {
			return done.Header.Revision, nil
		}
		now = found(done)
	}
	return 0, fmt.Errorf("discard %s: %w", key, storage.ErrNotFound)
}

// standing is what converge knows of the item that a try gets.
type standing int

const (
	hinted standing = iota // from the caller's hint: there may be a newer one
	fresh                  // from etcd
	stale                  // from etcd, where an old key keeps it: it must be written again, even if nothing changes
)

// converge runs try on the hint, if there is one, and then on newer items, until it is done. Not done means that the
// caller saw an old item: now is the newest if the try learnt it, nil if it must be read. What a try on the hint ends
// with, an error or nothing to write, counts if the hint proves to be the newest: a try may call webhooks, and is not
// made twice for one item. A stale one is the exception: then nothing to write is not the end.
//
// Rounds have no bound of their own: each lost round means that another writer succeeded. ctx ends them, as every round
// sends a request.
func (s *Store) converge(ctx context.Context, hint *storage.Item, key string,
	try func(current *storage.Item, as standing) (now *mvccpb.KeyValue, done bool, err error)) error {
	current, as := hint, hinted
	if current == nil {
		var err error
		if current, as, err = s.newest(ctx, key, nil); err != nil {
			return err
		}
	}
	for {
		now, done, err := try(current, as)
		if done || err != nil && as != hinted {
			return err
		}
		newest, its, readErr := s.newest(ctx, key, now)
		if readErr != nil {
			return readErr
		}
		if as == hinted && newest.Revision == current.Revision && (err != nil || its != stale) {
			return err
		}
		current, as = newest, its
	}
}

// newest is the item of now, or the one under key if now is nil: either nobody has read it yet, or the transaction
// found the key gone. In that case it ends the write with ErrNotFound.
func (s *Store) newest(ctx context.Context, key string, now *mvccpb.KeyValue) (item *storage.Item, as standing,
	err error) {
	var old bool
	if now != nil {
		item, old, err = s.item(ctx, now)
	} else {
		item, old, err = s.get(ctx, key, 0)
	}
	if old {
		return item, stale, err
	}
	return item, fresh, err
}
