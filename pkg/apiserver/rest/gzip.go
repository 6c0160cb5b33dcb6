package rest

import (
	"compress/gzip"
	"net"
	"net/http"
	"strings"
)

// gzipFrom is the size from which a body is worth compressing, in bytes.
const gzipFrom = 128 << 10

// acceptsGzip reports whether to compress for this client: it accepts that and is not on this machine, where
// compressing costs both sides more than it saves.
func acceptsGzip(r *http.Request) bool {
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return false
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	return err != nil || !net.ParseIP(host).IsLoopback()
}

// newGzip compresses what is written to w, fast rather than small. The caller closes it.
func newGzip(w http.ResponseWriter) *gzip.Writer {
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Add("Vary", "Accept-Encoding")
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil { // only for a level that does not exist
		return gzip.NewWriter(w)
	}
	return z
}
