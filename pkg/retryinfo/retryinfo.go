// Package retryinfo makes the answer by which a gRPC server, as OTLP describes it, has a client come again later.
package retryinfo

import (
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Error is an error of a call that is refused because the client sends too much: RESOURCE_EXHAUSTED with RetryInfo.
func Error(text string, wait time.Duration) error {
	s := status.New(codes.ResourceExhausted, text)
	if said, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}); err == nil {
		s = said
	}
	return s.Err()
}
