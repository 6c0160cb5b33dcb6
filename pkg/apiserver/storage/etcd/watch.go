package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bonsai/pkg/apiserver/storage"
)

// bookmarkEvery is how often a quiet watch asks etcd how far it is.
const bookmarkEvery = time.Minute

var errStopped = errors.New("etcd: watch stopped")

// watch is one watch stream to etcd. No goroutine reads ahead: Next receives on its caller's goroutine, so a slow
// reader holds back the stream by gRPC's flow control, and nothing
// but gRPC's window piles up in this process.
//
// initial, told and batch belong to the goroutine that calls Next. RequestProgress and Stop may come from others.
type watch struct {
	s       *Store
	prefix  string
	opts    storage.WatchOptions
	initial []storage.Event
	told    int64 // revision of the last event given
	batch   []storage.Event

	ctx    context.Context // of the stream
	cancel context.CancelFunc
	stream pb.Watch_WatchClient

	// gRPC allows one Send beside one Recv, but not two Sends: the bookmark timer of Next and RequestProgress may send
	// at the same time.
	send    sync.Mutex // guards stream.Send and the following
	created bool       // etcd has said that the watch is there
	asked   bool       // for progress, before that
}

// Watch implements storage.Interface. Its stream ends with Stop, with a Next whose ctx ends, or with the Store. ctx
// bounds only the opening: the stream outlives this call.
//
// Initial items are listed before the stream opens, and the stream begins at the revision after the list's. So no
// change is lost or seen twice between the two, and all initial items are in memory until Next has given them.
func (s *Store) Watch(ctx context.Context, prefix string, opts storage.WatchOptions) (storage.Watch, error) {
	w := &watch{s: s, prefix: prefix, opts: opts, told: opts.Revision}
	if opts.Revision == 0 || opts.Initial {
		if err := w.list(ctx); err != nil {
			return nil, storage.At("watch", prefix, err)
		}
	}
	// Without the leader, a member of etcd would keep the stream open and send nothing. Requiring it ends the stream,
	// and the reader opens another one.
	w.ctx, w.cancel = context.WithCancel(clientv3.WithRequireLeader(s.ctx))
	stop := context.AfterFunc(ctx, w.cancel)
	defer stop()
	if err := w.open(); err != nil {
		w.cancel()
		return nil, translate(ctx, "etcd: watch", prefix, err)
	}
	return w, nil
}

// list prepares the initial events.
func (w *watch) list(ctx context.Context) error {
	opts := storage.ListOptions{Match: storage.NotOlderThan, Revision: w.opts.Revision, Filter: w.opts.Filter}
	l, err := w.s.List(ctx, w.prefix, opts)
	if err != nil {
		return err
	}
	for _, item := range l.Items {
		w.initial = append(w.initial, storage.Event{Type: storage.Added, Item: item, Initial: true})
	}
	if w.opts.Initial {
		w.initial = append(w.initial,
			storage.Event{Type: storage.Bookmark, Item: &storage.Item{Revision: l.Revision}, InitialEnd: true})
	}
	w.told = l.Revision
	return nil
}

// open sends the only request to create that the stream gets. A raw watch asks for no previous values: each would cost
// etcd a read and double the bytes, and the watch cache has the previous items itself.
func (w *watch) open() (err error) {
	if w.stream, err = w.s.watch.Watch(w.ctx, w.s.call...); err != nil {
		return err
	}
	path := w.s.path(w.prefix)
	return w.stream.Send(&pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
			Key: path, RangeEnd: after(path), StartRevision: w.told + 1, PrevKv: !w.opts.Raw,
		}}})
}

// RequestProgress implements storage.Progresser. Before etcd has said that the watch is there it only takes note: until
// then etcd holds the watch's events back, but would not hold back the answer to this.
func (w *watch) RequestProgress(context.Context) error {
	w.send.Lock()
	defer w.send.Unlock()
	if !w.created {
		w.asked = true
		return nil
	}
	return w.sendProgress()
}

// begin notes that etcd has said that the watch is there, and sends the request that waited for it.
func (w *watch) begin() error {
	w.send.Lock()
	defer w.send.Unlock()
	w.created = true
	if !w.asked {
		return nil
	}
	return w.sendProgress()
}

func (w *watch) sendProgress() error {
	if err := w.stream.Send(
		&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{
			ProgressRequest: &pb.WatchProgressRequest{}}}); err != nil {
		return storage.At("etcd: request progress of the watch of", w.prefix, err)
	}
	return nil
}

// Next implements storage.Watch. Responses that leave no event, because the filter takes none or etcd only confirms the
// watch, do not return. If the stream fails or etcd ends it, Next cancels it. After an event that cannot be read the
// stream stays open until Stop.
func (w *watch) Next(ctx context.Context) ([]storage.Event, error) {
	const most = 500
	if n := min(most, len(w.initial)); n > 0 {
		events := w.initial[:n]
		w.initial = w.initial[n:]
		return events, nil
	}
	// Recv has no context of its own: only the end of the stream ends its wait.
	stop := context.AfterFunc(ctx, w.cancel)
	defer stop()
	if w.opts.Bookmarks && !w.opts.Raw {
		// A failed send shows in Recv.
		ask := time.AfterFunc(bookmarkEvery, func() { _ = w.RequestProgress(ctx) })
		defer ask.Stop()
	}
	for {
		resp, err := w.stream.Recv()
		if err != nil {
			w.cancel()
			// The stream was ended from this side, by Stop or Close. gRPC would call that a cancelled request.
			if ctx.Err() == nil && w.ctx.Err() != nil {
				err = errStopped
			}
			return nil, translate(ctx, "etcd: watch", w.prefix, err)
		}
		if resp.Canceled {
			w.cancel()
			return nil, w.canceled(resp)
		}
		if resp.Created {
			if err := w.begin(); err != nil {
				w.cancel()
				return nil, err
			}
			continue
		}
		events, err := w.events(resp)
		if err != nil || len(events) > 0 {
			return events, err
		}
	}
}

// canceled is the error of a watch that etcd has ended. A compacted start means ErrExpired: the reader must list again.
func (w *watch) canceled(resp *pb.WatchResponse) error {
	if resp.CompactRevision != 0 {
		return fmt.Errorf("etcd: watch %s from revision %d, compacted to %d: %w", w.prefix, w.told,
			resp.CompactRevision, storage.ErrExpired)
	}
	return storage.At("etcd: watch", w.prefix, errors.New("cancelled: "+resp.CancelReason))
}

// events translates one response into w.batch, which the next call uses again. A response without events tells the
// progress: the watch has all changes up to the header's revision. A raw watch passes each progress on, as the watch
// cache waits for it; others get a bookmark only if that does not take them back.
func (w *watch) events(resp *pb.WatchResponse) ([]storage.Event, error) {
	w.batch = w.batch[:0]
	if len(resp.Events) == 0 {
		if w.opts.Raw || w.opts.Bookmarks && resp.Header.Revision >= w.told {
			w.told = max(w.told, resp.Header.Revision)
			w.batch = append(w.batch,
				storage.Event{Type: storage.Bookmark, Item: &storage.Item{Revision: resp.Header.Revision}})
		}
		return w.batch, nil
	}
	for _, ev := range resp.Events {
		e, err := w.event(ev)
		if err != nil {
			return nil, err
		}
		if e.Type != "" {
			w.batch = append(w.batch, e)
			w.told = e.Item.Revision
		}
	}
	return w.batch, nil
}

// event translates one change as the watch's filter sees it. Its Type is "" if the filter takes neither the old value
// nor the new one.
func (w *watch) event(ev *mvccpb.Event) (storage.Event, error) {
	if w.opts.Raw {
		return w.raw(ev), nil
	}
	var prev, cur *storage.Item
	var err error
	if ev.PrevKv == nil && !creates(ev) {
		// etcd reads the previous value when it sends a change. For a slow reader that may be after compaction. Without
		// the previous value, nobody can decide whether a selecting watcher sees ADDED, MODIFIED or DELETED.
		return storage.Event{}, fmt.Errorf("etcd: watch %s: what was before revision %d is compacted: %w", w.prefix,
			ev.Kv.ModRevision, storage.ErrExpired)
	}
	if ev.PrevKv != nil {
		if prev, _, err = w.s.item(w.ctx, ev.PrevKv); err != nil {
			return storage.Event{}, err
		}
	}
	if ev.Type == mvccpb.PUT {
		if cur, _, err = w.s.item(w.ctx, ev.Kv); err != nil {
			return storage.Event{}, err
		}
	}
	t := storage.Seen(w.opts.Filter, prev, cur)
	if t == storage.Deleted {
		cur = prev.At(ev.Kv.ModRevision)
	}
	return storage.Event{Type: t, Item: cur}, nil
}

// creates reports whether a change puts a key that was free: such a key was created at the revision of the change.
func creates(ev *mvccpb.Event) bool {
	return ev.Type == mvccpb.PUT && ev.Kv.CreateRevision == ev.Kv.ModRevision
}

// raw translates one change without a look at the values, except that they are opened where that takes no wait. A
// deletion has only its key and revision.
func (w *watch) raw(ev *mvccpb.Event) storage.Event {
	e := storage.Event{Type: storage.Modified, Item: w.s.raw(w.ctx, ev.Kv)}
	switch {
	case ev.Type == mvccpb.DELETE:
		e.Type = storage.Deleted
	case creates(ev):
		e.Type = storage.Added
	}
	return e
}

// Stop implements storage.Watch.
func (w *watch) Stop() { w.cancel() }
