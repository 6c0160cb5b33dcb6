package cri

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ErrNoEvents: the runtime has no container events (containerd before 1.7).
var ErrNoEvents = errors.New("the container runtime has no container events")

// Events calls changed with the uid of each pod that had a container created, started, stopped or deleted, until ctx
// ends or the stream breaks. A runtime without events returns ErrNoEvents at once. connected is called with the first
// event, which proves that they come.
func (c *Client) Events(ctx context.Context, connected func(), changed func(types.UID)) error {
	stream, err := c.runtime.GetContainerEvents(ctx, &runtimeapi.GetEventsRequest{})
	for first := true; err == nil; first = false {
		var ev *runtimeapi.ContainerEventResponse
		if ev, err = stream.Recv(); err == nil {
			if first {
				connected()
			}
			if uid := ev.GetPodSandboxStatus().GetLabels()[labelPodUID]; uid != "" {
				changed(types.UID(uid))
			}
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status.Code(err) == codes.Unimplemented:
		return ErrNoEvents
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the container runtime ended the stream of container events")
	}
	return fmt.Errorf("read container events: %w", err)
}
