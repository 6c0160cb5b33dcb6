package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// WritableLayers are the bytes that containers have written beside their volumes, by container id, as the runtime measured them
// last. Containers that were not measured yet are left out.
func (c *Client) WritableLayers(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the containers' statistics: %w", err)
	}
	out := make(map[string]uint64, len(r.Stats))
	for _, s := range r.Stats {
		if used := s.GetWritableLayer().GetUsedBytes(); used != nil {
			out[s.GetAttributes().GetId()] = used.GetValue()
		}
	}
	return out, nil
}
