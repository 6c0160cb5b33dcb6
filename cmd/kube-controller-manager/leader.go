package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"k8s.io/apimachinery/pkg/util/uuid"

	"bonsai/pkg/controller"
	"bonsai/pkg/leader"
)

// lead calls work once this process holds the Lease, and returns when work did. Losing the Lease is an error.
func lead(ctx context.Context, o electOptions, c *controller.Client, log *slog.Logger, work func(context.Context) error) error {
	if !o.enabled {
		return work(ctx)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this candidate for leadership: %w", err)
	}
	return leader.Run(ctx, leader.Config{
		Leases: controller.Leases(c), Namespace: o.namespace, Name: o.name, Identity: host + "_" + string(uuid.NewUUID()),
		Lease: o.lease, Renew: o.renew, Retry: o.retry, Log: log,
	}, work)
}
