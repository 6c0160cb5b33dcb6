package export

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"bonsai/pkg/trace"
)

// method is OTLP's one method for traces.
const method = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// sender sends batches of a program's spans to a collector.
type sender struct {
	conn grpc.ClientConnInterface
	// resource and scope are the encodings of what comes before the spans.
	resource, scope []byte
}

func newSender(conn grpc.ClientConnInterface, p trace.Program) *sender {
	name := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), trace.Scope)
	return &sender{conn: conn, resource: p.Resource(),
		scope: protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), name)}
}

// Send sends a batch, again and again while the collector says that it may be sent again, until ctx ends. It returns
// how many of the spans the collector did not want.
func (s *sender) Send(ctx context.Context, b *batch) (rejected int, err error) {
	message := mem.BufferSlice{mem.SliceBuffer(s.head(b.bytes))}
	for _, piece := range b.pieces {
		message = append(message, mem.SliceBuffer(piece))
	}
	for wait := firstRetry; ; wait = min(2*wait, longestRetry) {
		var answer []byte
		err := s.conn.Invoke(ctx, method, message, &answer, grpc.ForceCodecV2(raw{}))
		if err == nil {
			return rejectedOf(answer), nil
		}
		pause, again := retry(err)
		if !again {
			return 0, err
		}
		if pause == 0 {
			pause = wait/2 + rand.N(wait) // many components lose one collector at the same moment
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return 0, fmt.Errorf("%w; the last answer: %w", ctx.Err(), err)
		}
	}
}

// head is the encoding of an ExportTraceServiceRequest of one ResourceSpans with one ScopeSpans, up to so many bytes of
// spans.
func (s *sender) head(spans int) []byte {
	const resourceSpans, scopeSpans = 1, 2
	inScope := len(s.scope) + spans
	inResource := len(s.resource) + 1 + protowire.SizeVarint(uint64(inScope)) + inScope
	b := make([]byte, 0, 128+len(s.resource)+len(s.scope))
	b = protowire.AppendVarint(protowire.AppendTag(b, resourceSpans, protowire.BytesType), uint64(inResource))
	b = append(b, s.resource...)
	b = protowire.AppendVarint(protowire.AppendTag(b, scopeSpans, protowire.BytesType), uint64(inScope))
	return append(b, s.scope...)
}

// retry reports whether a batch may be sent again after an error, and after which pause, if the collector says so
// (https://opentelemetry.io/docs/specs/otlp/#failures).
func retry(err error) (pause time.Duration, again bool) {
	s := status.Convert(err)
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			pause = max(0, info.GetRetryDelay().AsDuration())
			again = true
		}
	}
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		return pause, true
	case codes.ResourceExhausted:
		return pause, again
	}
	return 0, false
}

// rejectedOf reads partial_success.rejected_spans of an ExportTraceServiceResponse; of one that cannot be read, none.
func rejectedOf(answer []byte) int {
	const partialSuccess, rejectedSpans = 1, 1
	partial, _ := fieldOf(answer, partialSuccess)
	_, rejected := fieldOf(partial, rejectedSpans)
	return int(min(rejected, batchSpans))
}

// fieldOf returns the last value of a field of a message: its bytes, or its number.
func fieldOf(message []byte, wanted protowire.Number) (bytes []byte, value uint64) {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			break
		}
		message = message[tag:]
		n := protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			break
		}
		switch {
		case number != wanted:
		case kind == protowire.BytesType:
			bytes, _ = protowire.ConsumeBytes(message)
		case kind == protowire.VarintType:
			value, _ = protowire.ConsumeVarint(message)
		}
		message = message[n:]
	}
	return bytes, value
}

// raw hands messages through as they are encoded.
type raw struct{}

var _ encoding.CodecV2 = raw{}

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) { return v.(mem.BufferSlice), nil }

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (raw) Name() string { return "proto" }
