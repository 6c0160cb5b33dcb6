package rest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/plainjson"
)

// serveList answers with a page of objects. It streams their encodings one after the other, so a list needs no memory
// for the whole. The items themselves are the cache's: a list holds pointers to them, not copies.
//
// The order matters. All options are checked before the storage is asked, and ready converts whole pages before the
// filter looks at single objects.
func serveList(x *exchange) error {
	a, err := x.negotiate(forList)
	if err != nil {
		return err
	}
	opts, err := listOptions(x.query)
	if err != nil {
		return err
	}
	chosen, err := x.choose(opts, "")
	if err != nil {
		return err
	}
	x.ready(chosen)
	in, err := storageList(opts, chosen.filter)
	if err != nil {
		return err
	}
	page, err := x.res.Store.ListItems(x.r.Context(), x.info.Namespace, in)
	// Removing a resource also drops the facts that selectors use, so the page may lack objects.
	if x.removed() { // its facts are forgotten, so selectors may have missed what is there
		return errNoResource()
	}
	// A filter cannot return an error, so it leaves the first one in the choice: the page may lack objects.
	if err == nil && chosen.err != nil {
		err = internal(chosen.err)
	}
	if err != nil {
		return err
	}
	return writePage(x, a, page, chosen.filter == nil)
}

// writePage answers with a page. whole reports that no selector was used, so that the number of remaining items is
// known. The storage counts what follows the page. With a selector it would have to look at all objects for that, so
// the API leaves the number out (as the documentation of remainingItemCount allows).
func writePage(x *exchange, a accepted, page *storage.List, whole bool) error {
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(page.Revision, 10), Continue: page.Continue}
	if page.Continue != "" && page.Remaining >= 0 && whole {
		meta.RemainingItemCount = &page.Remaining
	}
	return writeItems(x, a, page.Items, meta)
}

// writeItems answers with a list of items. It first takes its memory from the bound on all answers (Config.Hold), and
// gives it back when the last byte is written: a slow reader occupies its share for as long as it reads. If there is no
// room, the client gets a 429 and nothing has been encoded.
func writeItems(x *exchange, a accepted, items []*storage.Item, meta metav1.ListMeta) error {
	release, err := x.Hold(x.w, x.r, costOf(a, items))
	if err != nil {
		return err
	}
	defer release()
	if a.as == "Table" {
		return writeTable(x, a, http.StatusOK, items, true, meta)
	}
	return writeList(x, a, x.representation(a), items, meta)
}

// streamCost is the memory that streaming a list takes, in bytes: its buffers, and those of a compressor.
const streamCost = 256 << 10

// costOf returns the memory that a list needs for itself, in bytes: a multiple of its items if it is made as a whole.
// It is an estimate for Hold.
func costOf(a accepted, items []*storage.Item) int {
	factor := 4 // a table, indented JSON, YAML
	switch {
	case a.as == "" && a.media != typeYAML && !a.pretty:
		return streamCost
	case a.as != "" && a.as != "Table":
		factor = 1 // only the metadata
	}
	size := 0
	for _, i := range items {
		size += i.Bytes().Len()
	}
	return streamCost + factor*size
}

// writeList answers with items in representation f. YAML and indented JSON are made as a whole, in memory that costOf
// has estimated. Compact JSON and protobuf are streamed.
//
// A streamed answer has its status code and perhaps half its items when an error shows. Nothing can take that back, so
// the handler panics with http.ErrAbortHandler: net/http then cuts the connection, and the client sees a broken body
// instead of a short but valid list.
func writeList(x *exchange, a accepted, f *representation, stored []*storage.Item, meta metav1.ListMeta) error {
	items, err := f.ofAll(x.r.Context(), stored)
	if err != nil {
		return internal(err)
	}
	switch {
	case a.media == typeProtobuf:
		return writeProtobufList(x, f, items, &meta)
	case a.media == typeYAML || a.pretty:
		var whole bytes.Buffer
		if err := writeJSONList(&whole, f, items, &meta); err != nil {
			return err
		}
		if a.media == typeYAML {
			y, err := yaml.JSONToYAML(plainjson.Escape(whole.Bytes()))
			if err != nil {
				return apierrors.NewInternalError(err)
			}
			return x.writeBytes(http.StatusOK, typeYAML, y)
		}
		return x.writeJSON(a, http.StatusOK, whole.Bytes())
	}
	for _, item := range items { // before the first byte, while an error can still be answered
		if _, err := f.codec.ElementSize(item); err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	out, done := streamItems(x, typeJSON, items)
	if err := writeJSONList(out, f, items, &meta); err != nil {
		panic(http.ErrAbortHandler)
	}
	return done()
}

// streamItems begins an answer of unknown length, compressed if it will be long and the client wants that. done ends
// it. The length of the stored values stands in for that of the answer, which is not known yet. Nothing that fails may
// come between this and the first item: the status code is out.
func streamItems(x *exchange, media string, items []*storage.Item) (out io.Writer, done func() error) {
	x.w.Header()["Content-Type"] = []string{media}
	size := 0
	for _, i := range items {
		size += i.Bytes().Len()
	}
	if size > gzipFrom && acceptsGzip(x.r) {
		z := newGzip(x.w)
		x.w.WriteHeader(http.StatusOK)
		return x.audited(media, z), func() error { return ignoreClient(z.Close()) }
	}
	x.w.WriteHeader(http.StatusOK)
	return x.audited(media, x.w), func() error { return nil }
}

// chunk is how many bytes of a list or watch are gathered before they are written: one write for many small objects
// instead of one for each.
const chunk = 64 << 10

// chunks lends these buffers, so that a list needs no memory of its own. They have a quarter more than a chunk: the
// object that fills the chunk mostly fits without growing the buffer.
var chunks = sync.Pool{New: func() any { b := make([]byte, 0, chunk+chunk/4); return &b }}

// gather collects pieces and writes them in chunks. Its error is that of the first failed write; after it, it writes
// nothing more, but still takes pieces, so that a loop that adds need not look at the error. One goroutine uses it.
type gather struct {
	out     io.Writer
	buf     *[]byte
	flushed int // bytes
	err     error
}

func newGather(out io.Writer) *gather { return &gather{out: out, buf: chunks.Get().(*[]byte)} }

func (g *gather) add(pieces ...[]byte) {
	for _, p := range pieces {
		*g.buf = append(*g.buf, p...)
	}
	if len(*g.buf) >= chunk {
		g.flush()
	}
}

// size returns the bytes that were added so far.
func (g *gather) size() int { return g.flushed + len(*g.buf) }

func (g *gather) flush() {
	if g.err == nil && len(*g.buf) > 0 {
		_, g.err = g.out.Write(*g.buf)
	}
	g.flushed += len(*g.buf)
	*g.buf = (*g.buf)[:0]
}

// close writes the rest and gives the buffer back.
func (g *gather) close() {
	g.flush()
	giveBack(g.buf)
	g.buf = nil
}

// giveBack returns an empty buffer to the pool. A buffer that one huge object has grown is dropped, so that the pool
// stays small.
func giveBack(b *[]byte) {
	if cap(*b) <= 4*chunk {
		chunks.Put(b)
	}
}

// writeJSONList writes the list document. Its error is that of an encoding. It returns nil if the client went away: no
// answer can reach that client any more.
func writeJSONList(out io.Writer, f *representation, items []*storage.Item, meta *metav1.ListMeta) error {
	g := newGather(out)
	defer g.close()
	encoded, err := listMeta(f, meta)
	if err != nil {
		return err
	}
	g.add([]byte(`{"kind":"`), []byte(f.list.Kind), []byte(`","apiVersion":"`), []byte(f.list.GroupVersion().String()),
		[]byte(`","metadata":`), encoded, []byte(`,"items":[`))
	for i, item := range items {
		if i > 0 {
			*g.buf = append(*g.buf, ',')
		}
		if *g.buf, err = f.codec.AppendElement(*g.buf, item); err != nil {
			return err
		}
		if g.add(); g.err != nil {
			return nil // the client went away
		}
	}
	g.add([]byte("]}\n"))
	return nil
}

// listMeta returns the metadata of a list as JSON. Lists of whole custom resources have an empty "continue" at their
// end, as upstream's.
func listMeta(f *representation, meta *metav1.ListMeta) ([]byte, error) {
	if !f.dynamic || meta.Continue != "" {
		return json.Marshal(meta)
	}
	return json.Marshal(struct {
		Continue string `json:"continue"`
		*metav1.ListMeta
	}{ListMeta: meta})
}

// writeProtobufList streams the list message: its metadata (field 1) and the items' stored messages (field 2). The
// total length comes first, so the sizes are added up before the first byte. If an item then fails, the answer cannot
// be mended, and the connection is cut. The codec promises that a size that it returned once stays right while the item
// stands (registry.Messages), so the second pass appends as many bytes as the first one counted.
func writeProtobufList(x *exchange, f *representation, items []*storage.Item, meta *metav1.ListMeta) error {
	encoded, err := meta.Marshal()
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	const tagMeta, tagItem = 1<<3 | 2, 2<<3 | 2
	front := append(binary.AppendUvarint([]byte{tagMeta}, uint64(len(encoded))), encoded...)
	total, messages := len(front), f.codec.Messages()
	for _, item := range items {
		size, err := messages.MessageSize(item)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		total += 1 + registry.UvarintLen(uint64(size)) + size
	}
	out, done := streamItems(x, typeProtobuf, items)
	g := newGather(out)
	defer g.close()
	g.add(f.protobufHead, binary.AppendUvarint(nil, uint64(total)), front)
	for _, item := range items {
		size, err := messages.MessageSize(item)
		if err == nil {
			*g.buf = binary.AppendUvarint(append(*g.buf, tagItem), uint64(size))
			*g.buf, err = messages.AppendMessage(*g.buf, item)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if g.add(); g.err != nil {
			return nil
		}
	}
	g.add([]byte(registry.EnvelopeTail))
	g.flush()
	return done()
}
