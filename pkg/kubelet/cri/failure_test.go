package cri

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A container's status and events have the runtime's text alone, as in "Error: failed to create containerd task: ...".
func TestMessage(t *testing.T) {
	t.Parallel()
	const text = "failed to create containerd task: exec: no such file"
	for name, err := range map[string]error{"of the runtime": status.Error(codes.Unknown, text),
		"of our own": errors.New(text)} {
		if got := Message(err); got != text {
			t.Errorf("%s: %q, want %q", name, got, text)
		}
	}
}
