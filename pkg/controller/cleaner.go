package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiclient"
)

// Cleaner is a controller that deletes objects when their time is over.
type Cleaner[T apiclient.Object] struct {
	cfg  CleanerConfig[T]
	now  func() time.Time
	loop *Loop[Key]
}

// CleanerConfig describes a Cleaner. Everything is required.
type CleanerConfig[T apiclient.Object] struct {
	// Name is the loop's.
	Name string
	// Workers is how many objects are looked at at once.
	Workers int
	Objects *Informer[T]
	Writes  *apiclient.Resource[T]
	// Over returns when an object's time is over; false: not by its present state.
	Over func(T) (at time.Time, ends bool)
}

// NewCleaner returns the controller; its cache fills when d.Informers run.
func NewCleaner[T apiclient.Object](d Deps, cfg CleanerConfig[T]) (*Cleaner[T], error) {
	c := &Cleaner[T]{cfg: cfg, now: d.Now}
	c.loop = NewLoop(LoopConfig{Name: cfg.Name, Workers: cfg.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, WatchKeys(c.loop, cfg.Objects)
}

// Run reconciles until ctx ends.
func (c *Cleaner[T]) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// Reconcile deletes an object whose time is over, or comes back when it will be. An object that was made again under
// the name since it was read stays.
func (c *Cleaner[T]) Reconcile(ctx context.Context, key Key) (Result, error) {
	obj, ok := c.cfg.Objects.Get(key)
	if !ok {
		return Result{}, nil
	}
	at, ends := c.cfg.Over(obj)
	if !ends {
		return Result{}, nil
	}
	if left := at.Sub(c.now()); left > 0 {
		return Result{RequeueAfter: left}, nil
	}
	if err := c.cfg.Writes.Delete(ctx, key.Namespace, key.Name, obj.GetUID()); err != nil &&
		!apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return Result{}, fmt.Errorf("delete %s: %w", key, err)
	}
	return Result{}, nil
}
