// Package split keeps the objects of some resources in storages of their own. Each storage counts its revisions by
// itself: a revision of one says nothing about another, as a resourceVersion says nothing about another resource.
package split

import (
	"context"
	"strings"

	"bonsai/pkg/apiserver/storage"
)

// Storage is a storage.Interface over several of type S.
type Storage[S storage.Interface] struct {
	rest  S
	parts map[string]S
}

// New returns a storage that keeps the keys below the prefixes in parts there, and all others in rest. A prefix is that
// of a whole resource and ends in "/": lists and watches never reach over two storages.
func New[S storage.Interface](rest S, parts map[string]S) *Storage[S] {
	return &Storage[S]{rest, parts}
}

// Of returns the storage of a key, or of a prefix that ends in "/".
func (s *Storage[S]) Of(key string) S {
	if len(s.parts) == 0 {
		return s.rest
	}
	for n := strings.LastIndexByte(key, '/') + 1; n > 0; n = strings.LastIndexByte(key[:n-1], '/') + 1 {
		if part, ok := s.parts[key[:n]]; ok {
			return part
		}
	}
	return s.rest
}

// Create implements storage.Interface.
func (s *Storage[S]) Create(ctx context.Context, key string, d storage.Draft) (*storage.Item, error) {
	return s.Of(key).Create(ctx, key, d)
}

// Get implements storage.Interface.
func (s *Storage[S]) Get(ctx context.Context, key string, notOlderThan int64) (*storage.Item, error) {
	return s.Of(key).Get(ctx, key, notOlderThan)
}

// List implements storage.Interface. A continue token belongs to the prefix, and so to its storage.
func (s *Storage[S]) List(ctx context.Context, prefix string, opts storage.ListOptions) (*storage.List, error) {
	return s.Of(prefix).List(ctx, prefix, opts)
}

// Update implements storage.Interface.
func (s *Storage[S]) Update(ctx context.Context, key string,
	change func(current *storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	return s.Of(key).Update(ctx, key, change)
}

// Delete implements storage.Interface.
func (s *Storage[S]) Delete(ctx context.Context, key string,
	check func(current *storage.Item) error) (*storage.Item, error) {
	return s.Of(key).Delete(ctx, key, check)
}

// Discard implements storage.Interface.
func (s *Storage[S]) Discard(ctx context.Context, key string, decodes func(*storage.Item) bool, dry bool) (int64,
	error) {
	return s.Of(key).Discard(ctx, key, decodes, dry)
}

// Watch implements storage.Interface.
func (s *Storage[S]) Watch(ctx context.Context, prefix string, opts storage.WatchOptions) (storage.Watch, error) {
	return s.Of(prefix).Watch(ctx, prefix, opts)
}

// Revision implements storage.Interface for the storage of all that has none of its own. Nothing of the server compares
// it with the revisions of objects.
func (s *Storage[S]) Revision(ctx context.Context) (int64, error) { return s.rest.Revision(ctx) }
