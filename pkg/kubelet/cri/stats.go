package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// WritableLayers returns what containers have written outside their volumes, by container id, at the runtime's last
// measurement. Containers that were not measured yet are left out.
func (c *Client) WritableLayers(ctx context.Context) (map[string]runtime.DiskUse, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.ListContainerStats(ctx, &runtimeapi.ListContainerStatsRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask for the containers' statistics: %w", err)
	}
	out := make(map[string]runtime.DiskUse, len(r.Stats))
	for _, s := range r.Stats {
		if layer := s.GetWritableLayer(); layer.GetUsedBytes() != nil {
			out[s.GetAttributes().GetId()] = runtime.DiskUse{Bytes: int64(layer.GetUsedBytes().GetValue()),
				Inodes: int64(layer.GetInodesUsed().GetValue())}
		}
	}
	return out, nil
}
