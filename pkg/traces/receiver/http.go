package receiver

import (
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"bonsai/pkg/traces"
)

// HTTP takes messages by OTLP over HTTP, one in a POST, of senders whom the server before it has authenticated. sender
// returns the node whose programs send a request, "" for the control plane, and false for those whose spans are not
// taken.
func (r *Receiver) HTTP(sender func(*http.Request) (node string, ok bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		node, ok := sender(q)
		switch {
		case !ok:
			http.Error(w, "spans are taken from nodes and control planes alone", http.StatusForbidden)
			return
		case q.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "spans are sent by POST", http.StatusMethodNotAllowed)
			return
		case q.Header.Get("Content-Type") != traces.MediaType || q.Header.Get("Content-Encoding") != "":
			http.Error(w, "spans are sent as "+traces.MediaType+" without an encoding", http.StatusUnsupportedMediaType)
			return
		}
		leave, ok := r.begin(node)
		if !ok {
			later(w, http.StatusServiceUnavailable, "too many messages at once, try again", time.Second)
			return
		}
		defer leave()
		message, ok := r.read(w, q)
		if !ok {
			return
		}
		answer, err := r.take(node, message)
		early, tooFast := errors.AsType[*tooFastError](err)
		switch {
		case tooFast:
			later(w, http.StatusTooManyRequests, err.Error(), early.wait)
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", traces.MediaType)
			_, _ = w.Write(answer) // a failed write means that the sender is gone
		}
	})
}

// begin reports whether one more message may be read, until leave is called.
func (r *Receiver) begin(node string) (leave func(), ok bool) {
	if r.requests.Add(1) > maxRequests {
		r.requests.Add(-1)
		r.refused.Add(1)
		return nil, false
	}
	if !r.Nodes.enter(node) {
		r.requests.Add(-1)
		r.refused.Add(1)
		return nil, false
	}
	return func() { r.Nodes.leave(node); r.requests.Add(-1) }, true
}

// read reads a message, within requestTimeout. If it cannot, it has answered.
func (r *Receiver) read(w http.ResponseWriter, q *http.Request) ([]byte, bool) {
	// A server without deadlines bounds the time by itself.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(cmp.Or(r.timeout, requestTimeout)))
	message, err := io.ReadAll(http.MaxBytesReader(w, q.Body, MaxMessage))
	if err == nil {
		return message, true
	}
	r.broken.Add(1)
	code, text := http.StatusBadRequest, "the message did not come to its end"
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		code, text = http.StatusRequestEntityTooLarge, "the message is too large"
	}
	http.Error(w, text, code)
	return nil, false
}

// later refuses a message that is welcome after a time.
func later(w http.ResponseWriter, code int, text string, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	http.Error(w, text, code)
}
