package audit

import (
	"bufio"
	"net"
	"net/http"
)

// Writer sees the answer of a request go. Of one that lasts it makes an event when the header is sent.
type Writer struct {
	http.ResponseWriter
	record *Record
	lasts  bool
	code   int
}

// Writer returns the writer for the request's handler; lasts tells that the answer is a stream.
func (rec *Record) Writer(w http.ResponseWriter, lasts bool) *Writer {
	return &Writer{ResponseWriter: w, record: rec, lasts: lasts}
}

func (w *Writer) begin(code int) {
	if w.code != 0 || code < http.StatusOK && code != http.StatusSwitchingProtocols {
		return
	}
	w.code = code
	if w.lasts {
		w.record.Started(code)
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(code int) {
	w.begin(code)
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Hijack implements http.Hijacker, for upgrades to streams.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.begin(http.StatusSwitchingProtocols)
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Code is what was answered; 0: nothing yet.
func (w *Writer) Code() int { return w.code }
