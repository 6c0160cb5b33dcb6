package apiserver

import (
	"bufio"
	"net"
	"net/http"
)

// recorder remembers the status code of an answer, for metrics and for recover. It passes flushes and hijacks on, which
// streams need.
type recorder struct {
	http.ResponseWriter
	code int
}

// Codes below 200 are informational: the answer's own code follows.
func (r *recorder) WriteHeader(code int) {
	if r.code == 0 && code >= 200 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.code == 0 {
		r.code = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// Flush implements http.Flusher.
func (r *recorder) Flush() {
	// A writer that cannot flush has nothing buffered that would matter.
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker, for upgrades to streams.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if r.code == 0 {
		r.code = http.StatusSwitchingProtocols
	}
	return http.NewResponseController(r.ResponseWriter).Hijack()
}
