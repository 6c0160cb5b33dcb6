package apiserver

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/apiserver/fairness"
	"bonsai/pkg/apiserver/flowcontrol"
	"bonsai/pkg/apiserver/request"
)

// BenchmarkTurn is what the filter costs a request for which there is a seat, with priority and fairness and with plain bounds.
func BenchmarkTurn(b *testing.B) {
	turns, err := fairness.New(fairness.Config{Seats: 600, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for name, dispatcher := range map[string]*fairness.Dispatcher{"fair": turns, "plain": nil} {
		b.Run(name, func(b *testing.B) {
			s := &Server{limits: flowcontrol.New(400, 200, limitPatience), bodies: flowcontrol.NewBodies(limitPatience)}
			s.Fairness = dispatcher
			benchmarkTurn(b, s)
		})
	}
}

func benchmarkTurn(b *testing.B, s *Server) {
	h := s.limit(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	r := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/b", nil)
	ctx := request.WithUser(r.Context(), &request.User{Name: "system:serviceaccount:a:b", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"}})
	r = r.WithContext(request.WithInfo(ctx, &request.Info{IsResource: true, Verb: "get", Resource: "pods", Namespace: "a", Name: "b"}))
	w := silent{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		h(w, r)
	}
}

type silent struct{ header http.Header }

func (s silent) Header() http.Header         { return s.header }
func (s silent) Write(b []byte) (int, error) { return len(b), nil }
func (s silent) WriteHeader(int)             {}

// A stream that takes its connection over holds a place among the streams and no turn, also if its verb is watch: it does not write an
// answer that would end one.
func TestUpgradedStreamsHoldNoTurn(t *testing.T) {
	t.Parallel()
	turns, err := fairness.New(fairness.Config{Seats: 1, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{streams: flowcontrol.NewShares(10, 10), bodies: flowcontrol.NewBodies(limitPatience)}
	s.Fairness = turns
	for _, upgraded := range []bool{true, false} {
		r := httptest.NewRequest("GET", "/apis/example.com/v1/things?watch=1", nil)
		ctx := request.WithUser(r.Context(), &request.User{Name: "bob", Groups: []string{request.GroupAuthenticated}})
		info := &request.Info{IsResource: true, Verb: "watch", APIGroup: "example.com", Resource: "things", Stream: upgraded}
		w := silent{http.Header{}}
		turn, ok := s.take(w, r.WithContext(request.WithInfo(ctx, info)))
		if !ok {
			t.Fatal("refused")
		}
		if _, own := turn.writer().(silent); own != upgraded || turns.InFlight(false) == 0 != upgraded {
			t.Errorf("upgraded %v: own writer %v, in flight %d", upgraded, own, turns.InFlight(false))
		}
		turn.over()
		if n := turns.InFlight(false); n != 0 {
			t.Errorf("%d in flight afterwards", n)
		}
	}
}

// A request that waited in vain leaves the seats as they were: a flood that is refused makes no room for more.
func TestWaitingInVainGivesNoSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, err := fairness.New(fairness.Config{Seats: 1, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{streams: flowcontrol.NewShares(10, 10), bodies: flowcontrol.NewBodies(limitPatience)}
		s.Fairness = turns
		take := func(verb string) (*turn, bool) {
			r := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/b", nil)
			ctx := request.WithUser(r.Context(), &request.User{Name: "bob", Groups: []string{request.GroupAuthenticated}})
			ctx = request.WithInfo(ctx, &request.Info{IsResource: true, Verb: verb, Resource: "pods", Namespace: "a", Name: "b"})
			return s.take(httptest.NewRecorder(), r.WithContext(ctx))
		}
		var taken []*turn
		for {
			turn, ok := take("get")
			if !ok {
				break
			}
			taken = append(taken, turn)
		}
		for _, verb := range []string{"get", "watch"} {
			if _, ok := take(verb); ok {
				t.Errorf("a %s got a seat that another one had waited for in vain", verb)
			}
		}
		if n := turns.InFlight(false); n != len(taken) {
			t.Errorf("%d in flight, %d have their turn", n, len(taken))
		}
		for _, turn := range taken {
			turn.over()
		}
		if n := turns.InFlight(false); n != 0 {
			t.Errorf("%d in flight afterwards", n)
		}
	})
}
