// Package storage says what the API server needs of a place that keeps its objects: eight operations on encoded
// objects under ordered keys. This file is the specification; storagetest checks it on every implementation
// (etcd, memory, and the watch cache that decorates either).
//
// # Keys
//
// A key is "/registry/<resource>/<namespace>/<name>" (no namespace for cluster-scoped kinds), Kubernetes' own layout.
// A prefix ends in "/". Keys order bytewise; so do pages of a list.
//
// # Bytes first
//
// Storage never decodes an object. A value is the protobuf encoding in Kubernetes' "k8s\0" envelope, or for custom
// resources a line of JSON, without metadata.resourceVersion; the version is the Revision beside it. What selectors
// need is kept beside the bytes as Facts.
package storage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that callers tell apart with errors.Is. Everything else is a fault of the storage (HTTP 500 or 504).
var (
	// ErrNotFound: the key holds nothing (HTTP 404).
	ErrNotFound = errors.New("storage: key not found")
	// ErrTimeout: the storage did not answer in time; a write may have happened (HTTP 504).
	ErrTimeout = errors.New("storage: no answer in time")
	// ErrExists: Create found the key taken (HTTP 409 AlreadyExists).
	ErrExists = errors.New("storage: key exists")
	// ErrExpired: the asked revision is compacted or has left the window of events (HTTP 410 Expired).
	ErrExpired = errors.New("storage: revision is too old")
	// ErrFuture: the asked revision was not reached within the wait of 3 s (HTTP 504 "Too large resource version").
	ErrFuture = errors.New("storage: revision is in the future")
	// ErrTooLarge: the value is more than the storage takes in one request (HTTP 413).
	ErrTooLarge = errors.New("storage: value is too large")
	// ErrBadContinue: a continue token that this storage did not make, or made for another prefix (HTTP 400).
	ErrBadContinue = errors.New("storage: continue token is not valid")
)

// Draft is a value to be written.
type Draft struct {
	// Value is the encoded object. The storage keeps the slice: the caller must not change it afterwards.
	Value []byte
	// Facts, if the writer knows them, save decoding Value when its event comes back.
	Facts *Facts
	// TTL, if not 0, lets the key vanish after about this long (events: one hour). Granularity: see storage/etcd.
	TTL time.Duration
}

// Interface keeps encoded objects. All methods are safe for concurrent use, and return ctx.Err() (wrapped) when ctx
// ends. Items are shared and read-only, except for the encodings that Item itself guards.
type Interface interface {
	// Create stores d under key if the key is free. ErrExists otherwise.
	Create(ctx context.Context, key string, d Draft) (*Item, error)

	// Get returns the newest item (linearizable: it sees every write that was acknowledged before the call), or with
	// notOlderThan > 0 one from any time after that revision, which may be cheaper. ErrNotFound, ErrFuture.
	Get(ctx context.Context, key string, notOlderThan int64) (*Item, error)

	// List returns the items under prefix in key order, as of one revision. ErrExpired, ErrFuture, ErrBadContinue.
	List(ctx context.Context, prefix string, opts ListOptions) (*List, error)

	// Update replaces the value under key by what change makes of the current item, again and again until no other
	// writer came between; change must be free of side effects. An error of change ends Update and is returned as it
	// is. A draft whose Value equals the current one writes nothing and returns the current item. ErrNotFound.
	// The first call of change may see a cached item. If it fails or changes nothing on one, Update asks again with the
	// newest item, unless that is the one that change has seen.
	Update(ctx context.Context, key string, change func(current *Item) (Draft, error)) (*Item, error)

	// Delete removes the key if check(current) returns nil, and returns the item as it last was with Revision set to
	// that of the deletion. check is called like Update's change. ErrNotFound, or check's error as it is.
	Delete(ctx context.Context, key string, check func(current *Item) error) (*Item, error)

	// Discard removes the key whose value cannot be read, and returns the revision of the deletion. decodes says of a
	// value that the storage can open and read the facts of whether it is an object all the same: if so, ErrReadable.
	// ErrNotFound. With dry it removes nothing, and returns 0.
	Discard(ctx context.Context, key string, decodes func(*Item) bool, dry bool) (int64, error)

	// Watch gives the changes under prefix after opts.Revision, in order and without gap. ErrExpired, which Watch or
	// the first Next returns.
	Watch(ctx context.Context, prefix string, opts WatchOptions) (Watch, error)

	// Revision returns the newest revision of the whole storage, linearizably.
	Revision(ctx context.Context) (int64, error)
}

// Match says how List reads ListOptions.Revision (metav1.ListOptions.resourceVersionMatch).
type Match int

const (
	// NotOlderThan: any snapshot at Revision or later; with Revision 0 whatever is at hand. With Latest set it is
	// ignored.
	NotOlderThan Match = iota
	// Exact: the snapshot at Revision. ErrExpired when it is gone.
	Exact
	// Latest: the newest snapshot, linearizably (an unset resourceVersion).
	Latest
)

// ListOptions says which items and as of when.
type ListOptions struct {
	Match    Match
	Revision int64
	// Limit is the most items of a page; 0: no limit.
	Limit int64
	// Continue is List.Continue of the page before; it fixes the revision, so Match and Revision must be zero values.
	Continue string
	// Filter keeps the items it returns true for; nil keeps all. It gives the same answer for the same item. It may
	// take long: no lock is held while it is asked, and one goroutine asks it.
	Filter func(*Item) bool
	// Raw is what a cache asks of the storage behind it: Items may have no Facts, so that one that cannot be read does
	// not fail the list of all. Filter must be nil.
	Raw bool
}

// List is one page.
type List struct {
	Items    []*Item
	Revision int64
	// Continue is empty on the last page. Remaining is how many items follow this page, if known without a Filter; else
	// -1.
	Continue  string
	Remaining int64
}

// EventType is the kind of a change, in the words of the watch protocol.
type EventType string

// The event types. A Bookmark's Item has only a Revision.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
)

// Event is one change as its watcher sees it. For Deleted, Item is the last state with the Revision of the change.
type Event struct {
	Type EventType
	Item *Item
	// InitialEnd marks the Bookmark that ends the initial events of WatchOptions.Initial.
	InitialEnd bool
	// Initial marks an Added that is no change but an item of the snapshot that a watch begins with: other watchers
	// have no use for what is made of it.
	Initial bool
}

// WatchOptions says which changes.
type WatchOptions struct {
	// Revision: changes after this one. 0: start with an Added event for every item of the newest snapshot
	// (linearizably), in key order, then go on.
	Revision int64
	// Initial asks for the Added events of Revision 0 at a revision not older than Revision (sendInitialEvents),
	// followed by a Bookmark that carries InitialEnd and the snapshot's revision. With Revision 0 the snapshot is the
	// newest.
	Initial bool
	// AtHand lets the snapshot of Revision 0 be any that the storage has (resourceVersion=0), which needs no answer of
	// anybody.
	AtHand bool
	// Filter keeps the items it returns true for. A change from matching to not matching is seen as Deleted (with the
	// item as it was, at the new revision), and the other way round as Added. nil keeps all. It is asked as that of a
	// list.
	Filter func(*Item) bool
	// Bookmarks asks for a Bookmark when the watcher's revision has moved without an event (about once a minute).
	Bookmarks bool
	// Raw is what a cache asks of the storage behind it: Items have no Facts, a Deleted item has only Key and Revision,
	// every change of the revision that becomes known gives a Bookmark, and Filter is not used. Revision must not be 0.
	Raw bool
}

// Watch is a reader of one stream of changes. It has no buffer of its own that could fill: a reader that falls out of
// the storage's window of events gets ErrExpired.
type Watch interface {
	// Next blocks until there is at least one event and returns all that are at hand, at most about a thousand. The
	// slice is valid until the next call. It is called by one goroutine. After an error, that of ctx too, the watch is
	// over.
	Next(ctx context.Context) ([]Event, error)
	// Stop frees what the watch holds. It may be called more than once.
	Stop()
}

// Progresser is what a watch with Raw or Bookmarks may do besides: RequestProgress asks for a Bookmark once all changes
// up to the storage's newest revision have been delivered. It does not wait for it. Safe to call beside Next.
type Progresser interface {
	RequestProgress(ctx context.Context) error
}

// FutureError is the ErrFuture that says how far the storage is.
type FutureError struct{ Asked, Current int64 }

// Error is in the words that Kubernetes' clients know.
func (e *FutureError) Error() string {
	return fmt.Sprintf("Too large resource version: %d, current: %d", e.Asked, e.Current)
}

// Is makes errors.Is(err, ErrFuture) true.
func (e *FutureError) Is(target error) bool { return target == ErrFuture }

// FutureWait is how long reads wait for a revision that is not reached yet.
const FutureWait = 3 * time.Second
