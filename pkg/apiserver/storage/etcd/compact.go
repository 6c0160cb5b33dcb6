package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// compactKey is the key, outside of all prefixes, whose version the API servers of one etcd use to agree on who
// compacts. Its value is the revision to compact to next, in decimal. Kubernetes' own name.
const compactKey = "compact_rev_key"

// RunCompactor compacts etcd's history every interval until ctx ends: a revision stays readable for one to two
// intervals. Of several API servers, the first in each interval does it. kube-apiserver runs it on one goroutine
// (--etcd-compaction-interval).
//
// A failed round keeps what is known of the key. If it failed after it had written the key, the next round finds a
// newer version and only learns the present one, so the compaction comes one interval later.
func (s *Store) RunCompactor(ctx context.Context, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var version, revision int64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		v, r, err := s.compactRound(ctx, version, revision)
		if err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("etcd compaction failed, trying again", "interval", interval, "err", err)
			}
			continue
		}
		// Every server that compacts goes by the same interval: what was the present a round ago is past now. In an
		// etcd that was restored since, it is not there.
		if revision <= r {
			s.noteCompacted(revision)
		}
		version, revision = v, r
	}
}

// compactRound notes the present revision for the next round if the key's version is still what it was a round ago, and
// then compacts to revision, the one noted a round ago. It returns the key's version and the revision now. The first
// round of a process knows no version, so it only wins if the key does not exist, and it never compacts.
func (s *Store) compactRound(ctx context.Context, version, revision int64) (int64, int64, error) {
	now, err := s.Revision(ctx)
	if err != nil {
		return 0, 0, err
	}
	key := []byte(compactKey)
	req := &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: key, Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL,
			TargetUnion: &pb.Compare_Version{Version: version}}},
		Success: []*pb.RequestOp{
			{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: key, Value: strconv.AppendInt(nil, now, 10)}}}},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	}
	var resp *pb.TxnResponse
	if err = s.do(ctx, "compact", compactKey, func(ctx context.Context) error {
		resp, err = s.kv.Txn(ctx, req, s.call...)
		return err
	}); err != nil {
		return 0, 0, err
	}
	if !resp.Succeeded { // another server was first, or this one has just started
		if kv := found(resp); kv != nil {
			return kv.Version, resp.Header.Revision, nil
		}
		return 0, resp.Header.Revision, nil
	}
	if revision == 0 {
		return version + 1, resp.Header.Revision, nil
	}
	return version + 1, resp.Header.Revision, s.Compact(ctx, revision)
}

// Compact drops etcd's history up to revision. That it is dropped already is no error: another API server was faster.
// etcd refuses reads before revision from then on, and frees the space in its file later.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	err := s.do(ctx, "compact", strconv.FormatInt(revision, 10), func(ctx context.Context) error {
		_, err := s.kv.Compact(ctx, &pb.CompactionRequest{Revision: revision}, s.call...)
		if errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("compact to revision %d: %w", revision, err)
	}
	s.noteCompacted(revision)
	return nil
}

// Compacted is the oldest revision that can still be read, as far as this Store knows without asking etcd; 0: all can.
func (s *Store) Compacted() int64 { return s.compacted.Load() }

// notePresent forgets what is compacted if that is not in an etcd at this revision: it was restored from a backup, and
// nothing is known about its history.
func (s *Store) notePresent(revision int64) {
	if known := s.compacted.Load(); revision < known {
		s.compacted.CompareAndSwap(known, 0)
	}
}

// noteCompacted raises what Compacted returns, never lowers it: RunCompactor and other callers of Compact may note in
// any order.
func (s *Store) noteCompacted(revision int64) {
	for {
		known := s.compacted.Load()
		if revision <= known || s.compacted.CompareAndSwap(known, revision) {
			return
		}
	}
}
