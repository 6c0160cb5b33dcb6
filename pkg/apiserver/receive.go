package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/flowcontrol"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/rest"
)

// What is held of bodies that are still being received, in bytes: of everybody, and of one user. A body counts with what it
// has in memory by now, and at least bodyCost, which is about what its connection costs. One that has come whole counts no more here:
// who waits for a turn keeps nobody's body from being received (flowcontrol.Bodies.Wait bounds that).
const (
	maxReceiving     = 64 << 20
	maxUserReceiving = 16 << 20
	bodyCost         = 16 << 10
)

// receive reads the body of a request that may be made and has no turn yet: who sends slowly holds a little memory and nobody's
// place. The server's read deadline ends it.
func (s *Server) receive(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		info := request.InfoFrom(r.Context())
		if !info.IsResource || rest.LongRunning(info) || r.Body == nil || r.Body == http.NoBody {
			next(w, r)
			return
		}
		received, err := s.received(r, info)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		next(w, received)
	}
}

func (s *Server) received(r *http.Request, info *request.Info) (*http.Request, error) {
	user := request.UserFrom(r.Context())
	lane := flowcontrol.LaneOf(user, info)
	taken := []int64{}
	defer func() {
		for _, n := range taken {
			s.receiving.Give(lane, user.Name, n)
		}
	}()
	return rest.Receive(r, func(n int) error {
		size := max(int64(n), bodyCost)
		if !s.receiving.Take(lane, user.Name, size) {
			return tooMany()
		}
		taken = append(taken, size)
		return nil
	})
}

// refuse answers a request whose body, if it has one, has not been read and will not be: over HTTP/1 the server would wait for
// it before it answers, to use the connection again.
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
