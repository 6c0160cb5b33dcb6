package etcd

import (
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"bonsai/pkg/apiserver/storage"
)

// TestCompactedBefore: etcd sends a change without what was before if that was compacted while the change waited for a
// slow reader. The watch expires then: else a deletion would be none, and a change to what does not match would be
// unseen.
func TestCompactedBefore(t *testing.T) {
	t.Parallel()
	key, value := []byte("/registry/things/a"), []byte("v")
	for name, ev := range map[string]*mvccpb.Event{
		"deletion": {Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: key, ModRevision: 8}},
		"change":   {Kv: &mvccpb.KeyValue{Key: key, Value: value, CreateRevision: 5, ModRevision: 8}},
	} {
		stream := &fakeStream{answers: make(chan *pb.WatchResponse, 2)}
		w := &watch{s: &Store{cfg: Config{Prefix: defaultPrefix}}, prefix: "/registry/things/", stream: stream,
			cancel: func() {}}
		created := &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: key, Value: value, CreateRevision: 7, ModRevision: 7}}
		stream.answers <- &pb.WatchResponse{Events: []*mvccpb.Event{created}}
		if events, err := w.Next(t.Context()); err != nil || len(events) != 1 || events[0].Type != storage.Added {
			t.Errorf("%s: what was created comes as %v, %v", name, events, err)
		}
		stream.answers <- &pb.WatchResponse{Events: []*mvccpb.Event{ev}}
		stream.answers <- &pb.WatchResponse{Events: []*mvccpb.Event{created}}
		if events, err := w.Next(t.Context()); !errors.Is(err, storage.ErrExpired) {
			t.Errorf("%s: %v, %v", name, events, err)
		}
	}
}
