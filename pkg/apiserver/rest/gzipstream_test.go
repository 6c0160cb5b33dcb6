package rest

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/storage"
)

// TestGzipStream: each flush shows all that was written before it, and at the end the whole is right.
func TestGzipStream(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	z := newGzipStream(answer)
	var all strings.Builder
	for _, batch := range []string{"", "a", strings.Repeat("some text ", 20_000), "b", "c"} {
		all.WriteString(batch)
		if _, err := io.WriteString(z, batch); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(bytes.NewReader(answer.Body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, all.Len())
		if _, err := io.ReadFull(r, got); err != nil || string(got) != all.String() {
			t.Fatalf("after %d bytes: %d, %v", all.Len(), len(got), err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != all.String() {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if h := answer.Header(); h.Get("Content-Encoding") != "gzip" || h.Get("Vary") != "Accept-Encoding" {
		t.Errorf("headers: %v", h)
	}
	idle := newGzipStream(httptest.NewRecorder())
	if err := idle.Close(); err != nil || idle.out.(*httptest.ResponseRecorder).Body.Len() != 0 {
		t.Errorf("without a write: %v", err)
	}
}

// TestWatchGzip: a watch is compressed that takes the place of a list, for a client that accepts it.
func TestWatchGzip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from     storage.WatchOptions
		encoding string
		want     string
	}{
		{storage.WatchOptions{Initial: true, Bookmarks: true}, "gzip", "gzip"},
		{storage.WatchOptions{Initial: true, Bookmarks: true}, "", ""},
		{storage.WatchOptions{Initial: true}, "gzip", ""},
		{storage.WatchOptions{Revision: 5, Bookmarks: true}, "gzip", ""},
	} {
		r, answer := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", c.encoding)
		s := &stream{exchange: &exchange{w: answer, r: r}, from: c.from, flush: func() error { return nil }}
		s.begin()
		s.closed()
		if got := answer.Header().Get("Content-Encoding"); got != c.want {
			t.Errorf("%+v, %q: %q", c.from, c.encoding, got)
		}
	}
}
