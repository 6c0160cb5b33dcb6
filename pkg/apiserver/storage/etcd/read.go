package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"bonsai/pkg/apiserver/storage"
)

const (
	// chunk is how many keys one range request brings at most, so that no answer is huge.
	chunk = 2000
	// revisionKey is read for the revision alone: it never exists.
	revisionKey = "\x00bonsai"
	// pollEvery is the pace of waiting for a revision that other API servers have seen and this etcd member has not.
	pollEvery = 50 * time.Millisecond
)

// rangeOf sends one range request. It never asks for a serializable read, so etcd answers with a state that has every
// write acknowledged before the request. All tries together last Config.Timeout at most.
func (s *Store) rangeOf(ctx context.Context, operation string, req *pb.RangeRequest) (resp *pb.RangeResponse,
	err error) {
	err = s.read(ctx, operation, string(req.Key), func(ctx context.Context) error {
		resp, err = s.kv.Range(ctx, req, s.call...)
		return err
	})
	return resp, err
}

// Revision implements storage.Interface: a read of nothing, whose answer's header has the revision of the whole store.
// The watch cache calls it for consistent reads, shared by all callers that wait at the time (watchcache.readIndex).
func (s *Store) Revision(ctx context.Context) (int64, error) {
	resp, err := s.rangeOf(ctx, "revision", &pb.RangeRequest{Key: []byte(revisionKey), CountOnly: true})
	if err != nil {
		return 0, err
	}
	s.notePresent(resp.Header.Revision)
	return resp.Header.Revision, nil
}

// await waits until etcd has reached revision, at most storage.FutureWait. It asks again and again, as etcd has no
// request that waits. A request under way at the deadline still runs to its own limit, so await may last that much
// longer.
func (s *Store) await(ctx context.Context, revision int64) error {
	if revision == 0 {
		return nil
	}
	deadline := time.NewTimer(storage.FutureWait)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		current, err := s.Revision(ctx)
		if err != nil || current >= revision {
			return err
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			return &storage.FutureError{Asked: revision, Current: current}
		case <-ctx.Done():
			return fmt.Errorf("etcd: wait for revision %d: %w", revision, ctx.Err())
		}
	}
}

// Get implements storage.Interface.
func (s *Store) Get(ctx context.Context, key string, notOlderThan int64) (*storage.Item, error) {
	item, _, err := s.get(ctx, key, notOlderThan)
	return item, err
}

// get is Get that also reports whether the value is stale.
func (s *Store) get(ctx context.Context, key string, notOlderThan int64) (item *storage.Item, stale bool, err error) {
	resp, err := s.rangeOf(ctx, "get", &pb.RangeRequest{Key: s.path(key)})
	if err != nil {
		return nil, false, err
	}
	// The answer is from before notOlderThan, so it is dropped. After the wait, any answer is new enough.
	if resp.Header.Revision < notOlderThan {
		if err := s.await(ctx, notOlderThan); err != nil {
			return nil, false, err
		}
		return s.get(ctx, key, 0)
	}
	if len(resp.Kvs) == 0 {
		return nil, false, fmt.Errorf("get %s: %w", key, storage.ErrNotFound)
	}
	return s.item(ctx, resp.Kvs[0])
}

// List implements storage.Interface. It reads a long list in chunks. All of them are of one revision: that of the first
// answer, unless the options fix one. If etcd compacts that revision before the last chunk, the list ends in ErrExpired
// and the client begins again.
//
// A limit up to chunk without a filter is etcd's to apply, and etcd counts what remains. A larger one goes to etcd as
// the size of the first answer; storage.Page then counts what remains by reading it. With a filter, etcd cannot know
// which keys count, so storage.Page takes as many chunks as the page needs.
func (s *Store) List(ctx context.Context, prefix string, opts storage.ListOptions) (*storage.List, error) {
	start, opts, err := opts.From(prefix)
	if err != nil {
		return nil, err
	}
	req := &pb.RangeRequest{Key: s.path(start), RangeEnd: after(s.path(prefix)), Limit: chunk}
	if opts.Match == storage.Exact {
		req.Revision = opts.Revision
	}
	if opts.Filter == nil && opts.Limit > 0 {
		req.Limit = opts.Limit
	}
	resp, err := s.rangeOf(ctx, "list", req)
	// The revision is ahead of etcd: etcd refuses an exact one, and answers another with an older state. Both wait for
	// it once, and ask once more.
	if opts.Match != storage.Latest &&
		(errors.Is(err, rpctypes.ErrFutureRev) || err == nil && resp.Header.Revision < opts.Revision) {
		if err = s.await(ctx, opts.Revision); err == nil {
			resp, err = s.rangeOf(ctx, "list", req)
		}
	}
	if err != nil {
		return nil, err
	}
	// The chunks that follow must be of the same state as this one.
	if req.Revision == 0 {
		req.Revision = resp.Header.Revision
	}
	if opts.Filter == nil && opts.Limit > 0 && opts.Limit <= chunk {
		return s.page(ctx, resp, req.Revision, opts.Raw)
	}
	pages := &pages{store: s, raw: opts.Raw, req: req, resp: resp}
	l := storage.Page(pages.items(ctx), req.Revision, opts)
	return l, pages.err
}

// listed makes an Item of a list. Without raw, one value that cannot be read fails the whole list. The watch
// cache lists raw and reads the facts itself, so that such a value fails only the reads that meet it.
func (s *Store) listed(ctx context.Context, kv *mvccpb.KeyValue, raw bool) (*storage.Item, error) {
	if raw {
		return s.rawListed(ctx, kv), nil
	}
	item, _, err := s.item(ctx, kv)
	return item, err
}

// page makes a List of one answer: etcd has cut it and counted the rest.
func (s *Store) page(ctx context.Context, resp *pb.RangeResponse, revision int64, raw bool) (*storage.List, error) {
	l := &storage.List{Revision: revision, Items: make([]*storage.Item, 0, len(resp.Kvs))}
	var corrupted storage.Corrupted
	for _, kv := range resp.Kvs {
		item, err := s.listed(ctx, kv, raw)
		if err != nil {
			if corrupted.Add(err) {
				continue
			}
			return nil, corrupted.Err(err)
		}
		l.Items = append(l.Items, item)
	}
	if err := corrupted.Err(nil); err != nil {
		return nil, err
	}
	if resp.More && len(l.Items) > 0 {
		l.Remaining = resp.Count - int64(len(l.Items))
		l.Continue = storage.ContinueToken(l.Items[len(l.Items)-1].Key, revision)
	}
	return l, nil
}

// pages reads a range answer by answer, on the goroutine of the List that made it. At most one answer is in memory
// beside the items taken from it. err is set when items ended early: storage.Page cannot see that, so List looks at err
// afterwards.
type pages struct {
	store *Store
	raw   bool
	req   *pb.RangeRequest
	resp  *pb.RangeResponse // the answer being read
	err   error
}

func (p *pages) items(ctx context.Context) iter.Seq[*storage.Item] {
	return func(yield func(*storage.Item) bool) {
		var corrupted storage.Corrupted
		defer func() { p.err = corrupted.Err(p.err) }()
		for {
			for _, kv := range p.resp.Kvs {
				item, err := p.store.listed(ctx, kv, p.raw)
				if err != nil {
					if corrupted.Add(err) {
						continue
					}
					p.err = err
					return
				}
				if !yield(item) {
					return
				}
			}
			if !p.next(ctx) {
				return
			}
		}
	}
}

// next fetches the answer that follows, at the same revision. It begins at the smallest key after the last one seen,
// which is that key and a zero byte.
func (p *pages) next(ctx context.Context) bool {
	if !p.resp.More || len(p.resp.Kvs) == 0 {
		return false
	}
	p.req.Key = append(p.resp.Kvs[len(p.resp.Kvs)-1].Key, 0)
	p.req.Limit = chunk
	p.resp, p.err = p.store.rangeOf(ctx, "list", p.req)
	return p.err == nil
}

// Fingerprint sums up the keys under prefix as of revision, without reading values. ErrExpired. The watch cache calls
// it for each cached resource every Config.CheckInterval, to compare its tree with etcd.
func (s *Store) Fingerprint(ctx context.Context, prefix string, revision int64) (storage.Fingerprint, error) {
	var f storage.Fingerprint
	req := &pb.RangeRequest{Key: s.path(prefix), RangeEnd: after(s.path(prefix)), Limit: chunk, KeysOnly: true,
		Revision: revision}
	for {
		resp, err := s.rangeOf(ctx, "fingerprint", req)
		if err != nil {
			return f, err
		}
		for _, kv := range resp.Kvs {
			f.Add(s.key(kv.Key), kv.ModRevision)
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return f, nil
		}
		req.Key = append(resp.Kvs[len(resp.Kvs)-1].Key, 0)
	}
}
