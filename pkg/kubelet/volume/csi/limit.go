package csi

import (
	"context"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// refresh asks a driver again how many volumes the node can have, and tells the API server.
// The rule: https://kubernetes.io/docs/concepts/storage/storage-limits/#dynamic-volume-limits.
func (d *Drivers) refresh(ctx context.Context, name string) error {
	n, err := d.get(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := n.info(ctx)
	if err == nil {
		err = d.announcer.Limit(ctx, name, info.MaxVolumes)
	}
	if err != nil {
		return fmt.Errorf("refresh how many volumes of the CSI driver %s the node can have: %w", name, err)
	}
	return nil
}

// follow refreshes a driver's limit as often as its CSIDriver says, until ctx ends.
func (d *Drivers) follow(ctx context.Context, name string) {
	periodically(ctx, d.objects.WatchCSIDriver(name), func() {
		if err := d.refresh(ctx, name); err != nil && ctx.Err() == nil {
			d.log.Warn("what a CSI driver says of the node is not known anew", "driver", name, "err", err)
		}
	})
}

// periodically does something as often as a CSIDriver, which may come, change and go, says in
// nodeAllocatableUpdatePeriodSeconds, until ctx ends. It returns only after its informer has ended. The channel holds
// the newest period: put takes an older one out first, so the informer never waits for do. do and the timer run in this
// goroutine, and the next period begins when do has returned.
func periodically(ctx context.Context, object cache.ListerWatcher, do func()) {
	periods := make(chan time.Duration, 1) // the newest one; 0: never
	put := func(p time.Duration) {
		select {
		case <-periods:
		default:
		}
		periods <- p
	}
	take := func(obj any) {
		p := time.Duration(0)
		if o, ok := obj.(*storagev1.CSIDriver); ok && o.Spec.NodeAllocatableUpdatePeriodSeconds != nil {
			p = time.Duration(*o.Spec.NodeAllocatableUpdatePeriodSeconds) * time.Second
		}
		put(p)
	}
	_, informer := cache.NewInformerWithOptions(
		cache.InformerOptions{ListerWatcher: object, ObjectType: &storagev1.CSIDriver{},
			Handler: cache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, obj any) {
				take(obj)
			}, DeleteFunc: func(any) { put(0) }}})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		informer.RunWithContext(ctx)
	}()
	defer func() { <-watched }()
	var period time.Duration
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-periods:
			if p == period {
				continue
			}
			period = p
		case <-due:
			do()
		}
		if due = nil; period > 0 {
			due = time.After(period)
		}
	}
}
