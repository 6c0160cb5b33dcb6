package apiserver

import (
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/inflight"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// Bounds on the memory for bodies that are still being received, in bytes: of all callers, and of one. A body counts
// with what it has in memory by now, and with at least bodyCost, which is about what its connection costs. A complete
// body no longer counts here: a request that waits for its turn must not keep others from being received
// (inflight.Bodies.Wait bounds those that wait).
const (
	maxReceiving     = 64 << 20
	maxUserReceiving = 16 << 20
	bodyCost         = 16 << 10
)

// slowBody is the age from which a body that is still being received gives way to another one of its caller.
const slowBody = time.Second

// receive reads the body of a request that is authorized and has no turn yet. A slow sender then holds a little memory,
// and no turn. The server's read deadline ends it at the latest.
func (s *Server) receive(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		info := request.InfoFrom(r.Context())
		if !info.IsResource || rest.LongRunning(info) || r.Body == nil || r.Body == http.NoBody {
			next(w, r)
			return
		}
		received, err := s.received(w, r, info)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		if s.API.Serves(info) {
			length, _ := rest.Received(received)
			s.requests.Body(info, length)
		}
		next(w, received)
	}
}

// received counts the body in steps, as it comes in, and not by its Content-Length: a client could claim much and send
// nothing. Hold registers the function that ends this body when a newer one of the same caller needs its share.
func (s *Server) received(w http.ResponseWriter, r *http.Request, info *request.Info) (*http.Request, error) {
	user := request.UserFrom(r.Context())
	control := http.NewResponseController(w)
	held := s.receiving.Hold(inflight.LaneOf(user, info), inflight.CallerOf(user), func() {
		_ = control.SetReadDeadline(longAgo) // only writers of tests have no deadlines
	})
	defer held.Give()
	out, err := rest.Receive(r, func(n int) error {
		if !held.Take(max(int64(n), bodyCost)) {
			return tooMany()
		}
		return nil
	})
	// The error is then only the deadline that the function above has set.
	if err != nil && held.Ended() {
		return nil, tooMany()
	}
	return out, err
}

// longAgo is a deadline that ends what is under way.
var longAgo = time.Unix(1, 0)

// refuse answers a request whose body, if it has one, has not been read and will not be: over HTTP/1 the server would
// wait for it before it answers, to use the connection again.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	closeUnread(w, r)
	s.API.WriteError(w, r, err)
}

func closeUnread(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		w.Header().Set("Connection", "close")
	}
}

func tooMany() error {
	return apierrors.NewTooManyRequests("Too many requests, please try again later.", 1)
}
