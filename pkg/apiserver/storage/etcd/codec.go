package etcd

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// message is what all of etcd's messages can do.
type message interface {
	Size() int
	MarshalToSizedBuffer(b []byte) (int, error)
	Unmarshal(b []byte) error
}

// codec is an encoding.CodecV2 for etcd's messages. gRPC's own takes them for messages of an older protobuf library: it
// has each encoded into memory of its own and copies that, which for a write is its whole object once more.
type codec struct{}

// Name implements encoding.CodecV2: on the wire there is no difference.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(message)
	if !ok {
		return nil, fmt.Errorf("etcd: %T is no message", v)
	}
	pool, size := mem.DefaultBufferPool(), m.Size()
	b := pool.Get(size)
	if _, err := m.MarshalToSizedBuffer((*b)[:size]); err != nil {
		pool.Put(b)
		return nil, fmt.Errorf("etcd: encode %T: %w", v, err)
	}
	return mem.BufferSlice{mem.NewBuffer(b, pool)}, nil
}

// Unmarshal implements encoding.CodecV2. v is a new message.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(message)
	if !ok {
		return fmt.Errorf("etcd: %T is no message", v)
	}
	b := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer b.Free()
	return m.Unmarshal(b.ReadOnlyData())
}
