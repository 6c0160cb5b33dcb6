package rest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// serveWatch streams changes until its time is over, the client leaves, the server stops, or the resource is removed.
// Events that are available together are written together, and an event is encoded once for all watchers.
//
// Most of a watch's life is waiting for the next event. Everything on the stack, and everything that x refers to, stays
// for that long. So functions that return do what only the beginning needs, and the query is dropped.
//
// All of it runs on the request's goroutine, the only one that writes the answer. Two timers (AfterFunc) run end on
// goroutines of their own; end touches only over and the storage's watch, whose Stop may be called from anywhere.
func serveWatch(x *exchange) error {
	s, err := newStream(x)
	if err != nil {
		return err
	}
	x.query = nil
	// Counted before the first event, so that two watches that begin together share from their first change.
	if s.shared != nil {
		defer s.shared.join()()
	}
	w, err := s.open()
	if err != nil {
		return s.refused(err)
	}
	defer w.Stop()
	// A context with a timeout would cost each watch a kilobyte for as long as it lasts.
	end := func() {
		// Before Stop: run looks at over once Next has failed, and would else report an error to the client.
		s.over.Store(true)
		w.Stop()
	}
	defer time.AfterFunc(time.Until(s.until), end).Stop()
	defer context.AfterFunc(x.res.Context(), end)()
	return s.run(w)
}

// newStream reads the options of a watch and makes its stream, before anything is written: each error here is an answer
// of its own, with a status code.
func newStream(x *exchange) (*stream, error) {
	a, err := x.negotiate(forStream)
	if err != nil {
		return nil, err
	}
	opts, err := listOptions(x.query)
	if err != nil {
		return nil, err
	}
	chosen, err := x.choose(opts, watchedName(x))
	if err != nil {
		return nil, err
	}
	// An object that cannot be converted must reach run, which then ends the watch with the reason. Filtered out, it
	// would be a change that the client never sees.
	chosen.passes = true
	in, err := storageWatch(opts, chosen.filter)
	if err != nil {
		return nil, err
	}
	if in.Initial {
		x.ready(chosen)
	}
	// The client wants only changes from now on, so "now" needs a revision.
	if send := opts.SendInitialEvents; send != nil && !*send && in.Revision == 0 {
		if in.Revision, err = newestRevision(x); err != nil {
			return nil, err
		}
	}
	// The client's wish counts even if it is shorter or longer than the server's own choice.
	timeout := x.watchTimeout()
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		timeout = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	s := &stream{exchange: x, accepted: a, chosen: chosen, repr: x.representation(a), from: in,
		until: time.Now().Add(timeout), flush: http.NewResponseController(x.w).Flush,
		counted: x.watches.begin(x.info, in.Initial && opts.SendInitialEvents != nil)}
	if s.repr != nil {
		s.shared = s.repr.sharedIn(a.media)
		return s, nil
	}
	if s.table, err = newTable(x, a); err != nil {
		return nil, err
	}
	s.shared = s.table.rows
	return s, nil
}

// open begins the watch. The deadline is already running: waiting for the cache to reach a revision counts. The removal
// of the resource ends that wait, too. ctx ends with this function, which the watch outlives: later calls of Next have
// the request's context.
func (s *stream) open() (storage.Watch, error) {
	ctx, cancel := context.WithDeadline(s.r.Context(), s.until)
	defer cancel()
	defer context.AfterFunc(s.res.Context(), cancel)()
	return s.res.Store.WatchItems(ctx, s.info.Namespace, s.from)
}

// refused answers for a watch that the storage did not begin. A revision that is too old is an event of type ERROR in a
// 200 answer, as in Kubernetes: informers take it from either place as the sign to list again.
func (s *stream) refused(err error) error {
	switch {
	case s.removed():
		return errNoResource()
	case !errors.Is(err, storage.ErrExpired):
		return registry.StorageError(err)
	}
	s.begin()
	defer s.closed()
	s.end(err)
	return nil
}

// run sends events until the watch is over. Next returns all events at hand, at most about a thousand, and run sends
// them before it asks for more. A client that reads slowly therefore blocks run in a write. Its watch falls behind in
// the storage's window of changes, without a queue here that could grow, and ends with "too old resource version".
func (s *stream) run(w storage.Watch) error {
	s.begin()
	defer s.closed()
	for {
		events, err := w.Next(s.r.Context())
		if err == nil {
			err = s.chosen.err
		}
		if err == nil {
			err = s.send(events)
		}
		switch {
		// The usual ends come first: an error is then only their consequence, and the client sees the end of the
		// stream.
		case s.over.Load() || s.removed() || s.r.Context().Err() != nil || errors.Is(err, errGone):
			return nil
		case err != nil:
			s.end(err)
			return nil
		}
	}
}

// watchedName returns the object that a deprecated path "/watch/…/name" names, "" for others.
func watchedName(x *exchange) string {
	if len(x.info.Parts) > 1 {
		return x.info.Name
	}
	return ""
}

// storageWatch translates watch options for the storage. Initial means that existing objects come first, as ADDED
// events.
func storageWatch(opts *metav1.ListOptions, filter selection) (storage.WatchOptions, error) {
	revision, err := revisionOf(opts.ResourceVersion)
	out := storage.WatchOptions{Revision: revision, Filter: filter, Bookmarks: opts.AllowWatchBookmarks,
		AtHand: opts.ResourceVersion == "0"}
	switch send := opts.SendInitialEvents; {
	case send != nil:
		out.Initial = *send
	// a watch from nowhere starts with what there is, and says to who knows bookmarks where that ends
	case revision == 0:
		out.Initial = opts.AllowWatchBookmarks
	}
	return out, err
}

// newestRevision returns the revision at which a watch begins that names none and wants no initial events.
func newestRevision(x *exchange) (int64, error) {
	page, err := x.res.Store.ListItems(x.r.Context(), x.info.Namespace,
		storage.ListOptions{Match: storage.Latest, Limit: 1})
	if err != nil {
		return 0, err
	}
	return page.Revision, nil
}

// errGone: the client does not read any more.
var errGone = errors.New("the client has gone")

// stream writes one watch.
type stream struct {
	*exchange
	accepted
	repr   *representation // nil: tables
	table  *table          // nil: no tables
	shared *shared         // what it has in common with other watchers; nil: the stored items themselves
	flush  func() error
	out    io.Writer // the answer's body, compressed or not, once it has begun
	close  func()    // ends out; nil: it needs no end
	// from is where it begins. Only a client that allowed bookmarks gets them, also that of the initial events.
	from   storage.WatchOptions
	chosen *choice
	until  time.Time
	over   atomic.Bool // its time is, or the resource has gone
	// counted counts what is sent.
	counted *watchCount
}

// begin sends the status code and the headers at once. Clients wait for them before they take the watch for
// established, and the first event may be hours away. From here on, errors are events (end).
func (s *stream) begin() {
	media := typeJSON
	if s.media == typeProtobuf {
		media = typeProtobuf + ";stream=watch"
	}
	s.w.Header()["Content-Type"] = []string{media}
	s.out = s.w
	// Only the watch that takes the place of a list, as in Kubernetes: what comes later is small.
	if s.from.Initial && s.from.Bookmarks && acceptsGzip(s.r) {
		z, send := newGzipStream(s.w), s.flush
		s.out = z
		s.flush = func() error { return errors.Join(z.Flush(), send()) }
		s.close = func() { _ = z.Close() } // a client that has left needs no end
	}
	s.w.WriteHeader(http.StatusOK)
	_ = s.flush() // a client that left is noticed at the next event
}

// closed ends the body of the answer.
func (s *stream) closed() {
	if s.close != nil {
		s.close()
	}
}

// send writes a batch of events and flushes once: a flush for each event would cost a system call and a packet each. If
// an object cannot be shown, the events before it are still sent, and the error ends the watch. The client can then
// resume after the last event that it got.
func (s *stream) send(events []storage.Event) error {
	g := newGather(s.out)
	defer g.close()
	shown, failed := s.prepare(events)
	listed := false
	for i := range shown {
		before := g.size()
		if err := s.add(g, &shown[i]); err != nil {
			failed = err
			break
		}
		if bytes := g.size() - before; bytes > 0 {
			s.counted.sent(bytes)
		}
		listed = listed || shown[i].InitialEnd
	}
	g.flush()
	if g.err != nil || s.flush() != nil {
		return errGone
	}
	if listed {
		s.counted.listed()
	}
	return failed
}

// prepare converts the objects of all events at once, if a webhook converts them: one call per batch, not per event. It
// returns the events up to the first whose object could not be converted.
func (s *stream) prepare(events []storage.Event) ([]storage.Event, error) {
	f := s.repr
	if f == nil && s.table.inVersion {
		f = s.res.full
	}
	if f == nil || f.kept == nil {
		return events, nil
	}
	items := make([]*storage.Item, 0, len(events))
	for i := range events {
		if events[i].Type != storage.Bookmark {
			items = append(items, events[i].Item)
		}
	}
	_, err := f.ofAll(s.r.Context(), items)
	for i := 0; err != nil && i < len(events); i++ {
		if events[i].Type != storage.Bookmark && !f.kept.has(events[i].Item) {
			return events[:i], err
		}
	}
	return events, nil
}

// add appends the frame of one event. Bookmarks are made for each watcher. Other events use an encoding that all
// watchers of the representation share, or the stored bytes, if those already are what the client wants. An error
// leaves nothing of the event in g, so the stream ends at the border of a frame.
func (s *stream) add(g *gather, e *storage.Event) error {
	switch {
	case e.Type == storage.Bookmark && !s.from.Bookmarks:
		return nil
	case e.Type == storage.Bookmark:
		obj, err := s.bookmark(e)
		if err != nil {
			return err
		}
		if s.repr == nil {
			return s.addBookmarkTable(g, e, obj)
		}
		return s.addObject(g, storage.Bookmark, obj)
	case s.repr == nil:
		row, err := s.table.eventRow(e)
		if err != nil {
			return err
		}
		return s.addTable(g, e, row)
	case s.shared != nil:
		doc, err := s.shared.of(e, func(item *storage.Item) ([]byte, error) {
			return s.repr.appendDocument(s.r.Context(), nil, item, s.media)
		})
		if err != nil {
			return err
		}
		s.addDocument(g, e.Type, doc)
		return nil
	case s.media == typeProtobuf:
		return addProtobufFrame(g, e.Type, s.repr.codec.Messages(), e.Item)
	}
	b, err := s.repr.codec.AppendJSON(appendJSONHead(*g.buf, e.Type), e.Item)
	if err != nil {
		return err
	}
	*g.buf = append(b, jsonTail...)
	g.add()
	return nil
}

// addDocument writes the frame of a document in the watch's media type.
func (s *stream) addDocument(g *gather, t storage.EventType, doc []byte) {
	if s.media != typeProtobuf {
		addJSONFrame(g, t, doc)
		return
	}
	*g.buf = append(appendFrameHead(*g.buf, t, len(doc)), doc...)
	g.add()
}

// addJSONFrame writes {"type":T,"object":O} and a newline.
func addJSONFrame(g *gather, t storage.EventType, object []byte) {
	*g.buf = append(append(appendJSONHead(*g.buf, t), object...), jsonTail...)
	g.add()
}

// appendJSONHead appends what comes before the object of such a frame; jsonTail comes after it.
func appendJSONHead(b []byte, t storage.EventType) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, t...)
	return append(b, `","object":`...)
}

const jsonTail = "}\n"

// addProtobufFrame writes a metav1.WatchEvent behind its length (four bytes, big-endian). The message has the type
// (field 1) and the object (field 2), a RawExtension whose raw (field 1) is the object's document. The sizes are
// computed first, so that nothing is copied to insert a length.
func addProtobufFrame(g *gather, t storage.EventType, messages registry.Messages, item *storage.Item) error {
	size, err := registry.DocumentSize(messages, item)
	if err != nil {
		return err
	}
	b := appendFrameHead(*g.buf, t, size)
	if b, err = registry.AppendDocument(messages, b, item); err != nil {
		return err
	}
	*g.buf = b
	g.add()
	return nil
}

// appendFrameHead appends all of such a frame that precedes the object's document of size bytes. The type's length
// takes one byte, as no type is longer than 127 bytes.
func appendFrameHead(b []byte, t storage.EventType, size int) []byte {
	const tagType, tagObject, tagRaw = 1<<3 | 2, 2<<3 | 2, 1<<3 | 2
	raw := 1 + registry.UvarintLen(uint64(size)) + size
	total := 2 + len(t) + 1 + registry.UvarintLen(uint64(raw)) + raw
	b = binary.BigEndian.AppendUint32(b, uint32(total))
	b = append(b, tagType, byte(len(t)))
	b = append(b, t...)
	b = binary.AppendUvarint(append(b, tagObject), uint64(raw))
	return binary.AppendUvarint(append(b, tagRaw), uint64(size))
}

// addObject writes the frame of an object that exists for this watcher only: a bookmark, a Status.
func (s *stream) addObject(g *gather, t storage.EventType, obj runtime.Object) error {
	m, ok := obj.(registry.Message)
	if s.media != typeProtobuf || !ok {
		b, err := json.Marshal(obj)
		if err != nil {
			return fmt.Errorf("encode %T: %w", obj, err)
		}
		addJSONFrame(g, t, b)
		return nil
	}
	doc, err := registry.Envelop(registry.EnvelopeHead(obj.GetObjectKind().GroupVersionKind()), m)
	if err != nil {
		return err
	}
	s.addDocument(g, t, doc)
	return nil
}

// bookmark is an empty object with only a resourceVersion, and the mark at the end of initial events.
func (s *stream) bookmark(e *storage.Event) (runtime.Object, error) {
	version := strconv.FormatInt(e.Item.Revision, 10)
	var codec registry.Codec
	if s.repr != nil {
		codec = s.repr.codec
	} else {
		codec = s.table.codec()
	}
	obj := codec.New()
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	access.SetResourceVersion(version)
	if e.InitialEnd {
		access.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return obj, nil
}

// addBookmarkTable writes a bookmark as a table with one row, whose object is where its version and mark are.
func (s *stream) addBookmarkTable(g *gather, e *storage.Event, obj runtime.Object) error {
	row, err := s.table.rowOf(obj)
	if err != nil {
		return err
	}
	return s.addTable(g, e, row)
}

// addTable writes a table with one row. Only the first table of a stream has the definitions of the columns: clients
// keep them, as with upstream.
func (s *stream) addTable(g *gather, e *storage.Event, row []byte) error {
	doc, err := s.table.begin(nil, metav1.ListMeta{ResourceVersion: strconv.FormatInt(e.Item.Revision, 10)})
	if err != nil {
		return err
	}
	s.table.columns = nil
	addJSONFrame(g, e.Type, append(append(doc, row...), tableEnd...))
	return nil
}

// end sends the reason for the end to the client, as an event of type ERROR. The status code 200 has been sent before.
// Only faults of the server are logged. An expired revision and a Status are the usual business between client and
// server.
func (s *stream) end(err error) {
	if errors.Is(err, storage.ErrExpired) {
		err = apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d", s.from.Revision))
	} else if !isStatus(err) {
		s.Log.Error("watch ended", "path", s.r.URL.Path, "err", err)
		err = registry.StorageError(err)
	}
	g := newGather(s.out)
	defer g.close()
	if s.addObject(g, "ERROR", statusOf(err)) == nil {
		g.flush()
		_ = s.flush() // the stream ends here either way
	}
}
