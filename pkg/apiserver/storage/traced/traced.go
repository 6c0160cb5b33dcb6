// Package traced records what requests ask of a storage. It stands before a storage only where spans are wanted, so
// that without them nothing is asked.
package traced

import (
	"context"
	"errors"

	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/trace"
)

// Storage is a storage.Interface whose calls are steps of their requests: "etcd.create" and so on. Calls that belong to
// no recorded request, such as those of caches, are passed on.
type Storage struct{ Backend }

// Backend is a storage as a cache needs it.
type Backend interface {
	storage.Interface
	UpdateFrom(ctx context.Context, hint *storage.Item, key string,
		change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error)
	DeleteFrom(ctx context.Context, hint *storage.Item, key string, check func(*storage.Item) error) (*storage.Item,
		error)
	Fingerprint(ctx context.Context, prefix string, revision int64) (storage.Fingerprint, error)
	Compacted() int64
}

var _ Backend = Storage{}

// start begins the span of a call. Keys are not in it: the span around it names the object.
func start(ctx context.Context, operation string) (context.Context, *trace.Span) {
	ctx, span := trace.Start(ctx, "etcd."+operation)
	if span != nil {
		span.Set(semconv.DBSystemNameKey.String("etcd"), semconv.DBOperationName(operation))
	}
	return ctx, span
}

func end(span *trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.Fail(class(err))
	}
	span.End()
}

// errOther stands for errors whose text may repeat what a client sent, such as those of a validation within an update.
var errOther = errors.New("failed")

// class is the error of package storage that an error is.
func class(err error) error {
	for _, known := range []error{storage.ErrNotFound, storage.ErrExists, storage.ErrTimeout, storage.ErrExpired,
		storage.ErrFuture, storage.ErrTooLarge, storage.ErrBadContinue, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return known
		}
	}
	return errOther
}

// Create implements storage.Interface.
func (s Storage) Create(ctx context.Context, key string, d storage.Draft) (*storage.Item, error) {
	ctx, span := start(ctx, "create")
	item, err := s.Backend.Create(ctx, key, d)
	end(span, err)
	return item, err
}

// Get implements storage.Interface.
func (s Storage) Get(ctx context.Context, key string, notOlderThan int64) (*storage.Item, error) {
	ctx, span := start(ctx, "get")
	item, err := s.Backend.Get(ctx, key, notOlderThan)
	end(span, err)
	return item, err
}

// List implements storage.Interface.
func (s Storage) List(ctx context.Context, prefix string, opts storage.ListOptions) (*storage.List, error) {
	ctx, span := start(ctx, "list")
	list, err := s.Backend.List(ctx, prefix, opts)
	end(span, err)
	return list, err
}

// Update implements storage.Interface.
func (s Storage) Update(ctx context.Context, key string,
	change func(current *storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	ctx, span := start(ctx, "update")
	item, err := s.Backend.Update(ctx, key, change)
	end(span, err)
	return item, err
}

// Delete implements storage.Interface.
func (s Storage) Delete(ctx context.Context, key string,
	check func(current *storage.Item) error) (*storage.Item, error) {
	ctx, span := start(ctx, "delete")
	item, err := s.Backend.Delete(ctx, key, check)
	end(span, err)
	return item, err
}

// Discard implements storage.Interface.
func (s Storage) Discard(ctx context.Context, key string, decodes func(*storage.Item) bool, dry bool) (int64, error) {
	ctx, span := start(ctx, "discard")
	revision, err := s.Backend.Discard(ctx, key, decodes, dry)
	end(span, err)
	return revision, err
}

// UpdateFrom implements Backend.
func (s Storage) UpdateFrom(ctx context.Context, hint *storage.Item, key string,
	change func(current *storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	ctx, span := start(ctx, "update")
	item, err := s.Backend.UpdateFrom(ctx, hint, key, change)
	end(span, err)
	return item, err
}

// DeleteFrom implements Backend.
func (s Storage) DeleteFrom(ctx context.Context, hint *storage.Item, key string,
	check func(current *storage.Item) error) (*storage.Item, error) {
	ctx, span := start(ctx, "delete")
	item, err := s.Backend.DeleteFrom(ctx, hint, key, check)
	end(span, err)
	return item, err
}
