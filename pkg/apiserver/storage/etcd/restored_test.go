package etcd

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// restorable is an etcd whose revision may go back, as by the restore of a backup. Another API server always compacts
// first.
type restorable struct {
	pb.KVClient
	revision, version atomic.Int64
}

func (r *restorable) Range(context.Context, *pb.RangeRequest, ...grpc.CallOption) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: r.revision.Load()}}, nil
}

func (r *restorable) Txn(context.Context, *pb.TxnRequest, ...grpc.CallOption) (*pb.TxnResponse, error) {
	found := &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{{Version: r.version.Add(1)}}}
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: r.revision.Load()},
		Responses: []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}}}}, nil
}

// TestRestoredIsNotCompacted: what was compacted before a backup was restored says nothing about the restored history:
// else each second page of a list would have expired until etcd is at the earlier revision again, for weeks.
func TestRestoredIsNotCompacted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kv := &restorable{}
		s := &Store{kv: kv, cfg: Config{Timeout: time.Second, Log: slog.New(slog.DiscardHandler)}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = s.RunCompactor(ctx, time.Minute) }()
		compacted := func(revision, want int64) {
			t.Helper()
			kv.revision.Store(revision)
			if _, err := s.Revision(ctx); err != nil {
				t.Fatal(err)
			}
			if got := s.Compacted(); got > revision {
				t.Errorf("compacted to %d at revision %d", got, revision)
			}
			for range 2 {
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := s.Compacted(); got > revision {
					t.Errorf("compacted to %d at revision %d", got, revision)
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if got := s.Compacted(); got != want {
				t.Errorf("compacted to %d at revision %d, want %d", got, revision, want)
			}
		}
		compacted(1000, 1000)
		compacted(100, 100)
		compacted(120, 120)
	})
}
