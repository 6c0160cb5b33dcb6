package etcd

import (
	"bytes"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/mem"
)

// TestCodec: on the wire is what etcd's own library writes, of every size that buffers are kept apart by; it comes back
// in whatever pieces.
func TestCodec(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 200, 1 << 10, 5 << 10, 40 << 10, 2 << 20} {
		put := &pb.PutRequest{Key: []byte("k"), Value: bytes.Repeat([]byte("v"), size)}
		want, err := put.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // also into a buffer that was used
			data, err := codec{}.Marshal(put)
			if err != nil || !bytes.Equal(data.Materialize(), want) {
				t.Fatalf("%d bytes: %d bytes, %v", size, data.Len(), err)
			}
			var back pb.PutRequest
			if err := (codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(want[:2]), mem.SliceBuffer(want[2:])},
				&back); err != nil || !bytes.Equal(back.Value, put.Value) {
				t.Errorf("%d bytes came back as %d, %v", size, len(back.Value), err)
			}
			data.Free()
		}
	}
	if _, err := (codec{}).Marshal("text"); err == nil {
		t.Error("text was encoded")
	}
	if err := (codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer("\xff")}, &pb.PutRequest{}); err == nil {
		t.Error("a broken message was decoded")
	}
}
