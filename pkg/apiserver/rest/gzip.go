package rest

import (
	"compress/gzip"
	"net"
	"net/http"
	"strings"
)

// gzipFrom is the size in bytes from which a body is compressed. It is upstream's.
const gzipFrom = 128 << 10

// acceptsGzip reports whether to compress the answer: the client accepts gzip, and is not on this machine, where
// compression costs both sides more than it saves.
func acceptsGzip(r *http.Request) bool {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return false
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err != nil || !net.ParseIP(host).IsLoopback()
}

// newGzip returns a compressor of what is written to w, at the fastest level. The caller closes it. It must be made
// before the status code is written, as it sets headers.
func newGzip(w http.ResponseWriter) *gzip.Writer {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil { // only for a level that does not exist
		return gzip.NewWriter(w)
	}
	return z
}
