package apiserver

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/fairness"
	"bonsai/pkg/apiserver/inflight"
	"bonsai/pkg/apiserver/metrics"
	"bonsai/pkg/apiserver/request"
)

// BenchmarkTurn is what the filter costs a request for which there is a seat, with priority and fairness and with plain
// bounds.
func BenchmarkTurn(b *testing.B) {
	turns, err := fairness.New(
		fairness.Config{Seats: 600, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for name, dispatcher := range map[string]*fairness.Dispatcher{"fair": turns, "plain": nil} {
		b.Run(name, func(b *testing.B) {
			s := &Server{limits: inflight.New(400, 200, limitPatience), bodies: inflight.NewBodies(limitPatience)}
			s.Fairness = dispatcher
			benchmarkTurn(b, s)
		})
	}
}

func benchmarkTurn(b *testing.B, s *Server) {
	h := s.limit(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	r := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/b", nil)
	ctx := request.WithUser(r.Context(),
		&request.User{Name: "system:serviceaccount:a:b",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"}})
	r = r.WithContext(request.WithInfo(ctx,
		&request.Info{IsResource: true, Verb: "get", Resource: "pods", Namespace: "a", Name: "b"}))
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

// A stream that takes its connection over holds a place among the streams and no turn, also if its verb is watch: it
// does not write an answer that would end one.
func TestUpgradedStreamsHoldNoTurn(t *testing.T) {
	t.Parallel()
	turns, err := fairness.New(
		fairness.Config{Seats: 1, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{streams: inflight.NewShares(10, 10, 0), bodies: inflight.NewBodies(limitPatience),
		requests: uncounted()}
	s.Fairness = turns
	for _, upgraded := range []bool{true, false} {
		r := httptest.NewRequest("GET", "/apis/example.com/v1/things?watch=1", nil)
		ctx := request.WithUser(r.Context(), &request.User{Name: "bob", Groups: []string{request.GroupAuthenticated}})
		info := &request.Info{IsResource: true, Verb: "watch", APIGroup: "example.com", Resource: "things",
			Stream: upgraded}
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
		turns, err := fairness.New(
			fairness.Config{Seats: 1, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{streams: inflight.NewShares(10, 10, 0), bodies: inflight.NewBodies(limitPatience),
			requests: uncounted()}
		s.Fairness = turns
		take := func(verb string) (*turn, bool) {
			r := httptest.NewRequest("GET", "/api/v1/namespaces/a/pods/b", nil)
			ctx := request.WithUser(r.Context(),
				&request.User{Name: "bob", Groups: []string{request.GroupAuthenticated}})
			ctx = request.WithInfo(ctx,
				&request.Info{IsResource: true, Verb: verb, Resource: "pods", Namespace: "a", Name: "b"})
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

// While a request waits for its turn, so does its body: of one user so many bytes of large ones, whatever the queues
// take. Nobody else waits less for it, nor does who has a small body.
func TestLargeBodiesThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, err := fairness.New(
			fairness.Config{Seats: 1, RequestTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{requests: uncounted(), bodies: inflight.NewBodies(limitPatience),
			receiving: inflight.NewShares(maxReceiving, maxUserReceiving, slowBody)}
		s.Fairness = turns
		begun, end := make(chan struct{}, 100), make(chan struct{})
		h := s.receive(s.limit(func(http.ResponseWriter, *http.Request) {
			begun <- struct{}{}
			<-end
		}))
		var sent sync.WaitGroup
		refused := make(chan int, 100)
		send := func(user string, bodies, size int, groups ...string) {
			for range bodies {
				r := httptest.NewRequest("POST", "/api/v1/namespaces/a/configmaps", bytes.NewReader(make([]byte, size)))
				ctx := request.WithUser(r.Context(),
					&request.User{Name: user, Groups: append(groups, request.GroupAuthenticated)})
				r = r.WithContext(request.WithInfo(ctx,
					&request.Info{IsResource: true, Verb: "create", Resource: "configmaps", Namespace: "a"}))
				sent.Go(func() {
					w := httptest.NewRecorder()
					if h(w, r); w.Code != http.StatusOK {
						refused <- w.Code
					}
				})
				// until it waits: halves of several would take each other's room while they are received
				synctest.Wait()
			}
		}
		for seats := -1; seats < len(begun); {
			seats = len(begun)
			send("flood", 1, 1)
		}
		seats := len(begun) // the last one waits
		const large = 3 << 20
		for range 2 {
			send("bob", 10, large)
			if n := len(refused); n != 5 {
				t.Errorf("%d of 10 large bodies were refused at once, want 5", n)
			}
			send("bob", 10, 1<<10)
			send("alice", 5, large)
			if n := len(refused); n != 5 {
				t.Errorf("%d refused after small bodies and those of another user, want 5", n)
			}
			if n := len(begun); n != seats {
				t.Errorf("%d have their turn, want %d", n, seats)
			}
			time.Sleep(time.Minute) // all have waited in vain, and wait no more
			for len(refused) > 0 {
				if code := <-refused; code != http.StatusTooManyRequests {
					t.Errorf("answered %d, want 429", code)
				}
			}
		}
		send("bob", 5, large)
		send("root", 10, large, request.GroupMasters)
		send("system:node:a", 1, large, request.GroupNodes)
		if n := len(begun); n != seats+11 {
			t.Errorf("%d have their turn, want those who need none and a node, %d", n, seats+11)
		}
		close(end)
		sent.Wait()
		if len(refused) > 0 {
			t.Errorf("refused: %d", len(refused))
		}
		send("bob", 5, large)
		if n := len(refused); n > 0 {
			t.Errorf("%d large bodies were refused, and none waits any more", n)
		}
	})
}

// uncounted are metrics that nobody sees.
func uncounted() *metrics.Requests { return metrics.New(prometheus.NewRegistry(), nil, nil) }
