package apiserver

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
)

// recorder remembers the status code and the size of an answer, for metrics and for recover. It passes flushes and
// hijacks on, which streams need.
type recorder struct {
	http.ResponseWriter
	code   int
	bytes  int64        // of the body
	waited atomic.Int64 // nanoseconds; request.Info.Waited of the request
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
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
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
