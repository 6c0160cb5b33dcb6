package apiserver

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/flowcontrol"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// limitPatience is how long a request waits for its turn.
const limitPatience = 5 * time.Second

// Streams (watches, logs, upgraded connections) that are open at a time, of everybody and of one user. They have no turn, as
// they last, but each costs memory and a goroutine or two.
const (
	maxStreams     = 20000
	maxUserStreams = 4000
)

// limit lets a request wait for its turn. The turn ends with the first byte of the answer: what is left then is writing, and a
// client that reads slowly must not keep others from theirs.
func (s *Server) limit(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		info, user := request.InfoFrom(r.Context()), request.UserFrom(r.Context())
		if isHealth(info) {
			next(w, r)
			return
		}
		lane := flowcontrol.LaneOf(user, info)
		if rest.LongRunning(info) {
			if !s.streams.Take(lane, user.Name, 1) {
				s.refuse(w, r, tooMany())
				return
			}
			defer s.streams.Give(lane, user.Name, 1)
			next(w, r)
			return
		}
		turn, ok := s.limits.Acquire(r.Context(), lane, mutating(info), rest.Received(r))
		if !ok {
			s.refuse(w, r, tooMany())
			return
		}
		t := &turnWriter{ResponseWriter: w, end: sync.OnceFunc(turn.End)}
		defer t.end()
		next(t, r)
	}
}

// isHealth tells whether a request asks how the server is. It must be answered in a flood, too.
func isHealth(info *request.Info) bool {
	if info.IsResource {
		return false
	}
	switch first, _, _ := strings.Cut(strings.TrimPrefix(info.Path, "/"), "/"); first {
	case "healthz", "livez", "readyz", "version":
		return true
	}
	return false
}

func mutating(info *request.Info) bool {
	switch info.Verb {
	case "get", "list", "head", "options":
		return false
	}
	return true
}

// turnWriter ends a turn when the answer begins.
type turnWriter struct {
	http.ResponseWriter
	end func()
}

func (t *turnWriter) WriteHeader(code int) {
	if code >= http.StatusOK {
		t.end()
	}
	t.ResponseWriter.WriteHeader(code)
}

func (t *turnWriter) Write(b []byte) (int, error) {
	t.end()
	return t.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (t *turnWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Answers that are being built and written, in bytes that are theirs alone: of everybody, and of one user.
const (
	maxAnswers     = 512 << 20
	maxUserAnswers = 128 << 20
)

// BoundAnswers returns a rest.Config.Hold.
func BoundAnswers() func(ctx context.Context, bytes int) (release func(), err error) {
	held := flowcontrol.NewShares(maxAnswers, maxUserAnswers)
	return func(ctx context.Context, bytes int) (func(), error) {
		user := request.UserFrom(ctx)
		if user == nil {
			return nil, apierrors.NewUnauthorized("Unauthorized")
		}
		lane := flowcontrol.LaneOf(user, request.InfoFrom(ctx))
		if !held.Take(lane, user.Name, int64(bytes)) {
			return nil, tooMany()
		}
		return func() { held.Give(lane, user.Name, int64(bytes)) }, nil
	}
}
