package etcd

import (
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"bonsai/pkg/apiserver/storage"
)

// fakeStream is etcd's side of a watch: what it answers, and what it was asked.
type fakeStream struct {
	grpc.ClientStream
	answers chan *pb.WatchResponse
	asked   []*pb.WatchRequest
}

func (f *fakeStream) Send(r *pb.WatchRequest) error {
	f.asked = append(f.asked, r)
	if r.GetProgressRequest() != nil {
		f.answers <- &pb.WatchResponse{WatchId: -1, Header: &pb.ResponseHeader{Revision: 9}}
	}
	return nil
}

func (f *fakeStream) Recv() (*pb.WatchResponse, error) { return <-f.answers, nil }

// TestProgressAfterCreation: etcd is asked for progress only once it has said that the watch is there. It answers a
// request before that at once, but holds the watch's events back, so that the answer would tell of changes not
// delivered yet.
func TestProgressAfterCreation(t *testing.T) {
	t.Parallel()
	stream := &fakeStream{answers: make(chan *pb.WatchResponse, 2)}
	w := &watch{stream: stream, opts: storage.WatchOptions{Raw: true}, cancel: func() {}}
	if err := w.RequestProgress(t.Context()); err != nil || len(stream.asked) != 0 {
		t.Fatalf("asked %v, %v before the watch was there", stream.asked, err)
	}
	stream.answers <- &pb.WatchResponse{Created: true, Header: &pb.ResponseHeader{Revision: 7}}
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 1 || events[0].Type != storage.Bookmark || events[0].Item.Revision != 9 {
		t.Fatalf("%v, %v, want the progress to 9", events, err)
	}
	if err := w.RequestProgress(t.Context()); err != nil || len(stream.asked) != 2 {
		t.Fatalf("asked %v, %v, want a second request at once", stream.asked, err)
	}
}
