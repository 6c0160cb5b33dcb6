package fairness

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/referencetest"
)

// newDispatcher has the objects of an empty cluster.
func newDispatcher(t *testing.T, seats int) *Dispatcher {
	t.Helper()
	d, err := New(Config{Seats: seats, RequestTimeout: time.Minute, Count: func(string, string) int {
		return 250
	}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *Dispatcher) take(ctx context.Context, u *request.User, info *request.Info) (*Turn, bool) {
	return d.Take(ctx, d.Classify(u, info), u, info, "")
}

// fill takes all seats of a user's level.
func fill(t *testing.T, d *Dispatcher, u *request.User, info *request.Info) []*Turn {
	t.Helper()
	var turns []*Turn
	for range d.Classify(u, info).schema.level.set.Limit() {
		turn, ok := d.take(t.Context(), u, info)
		if !ok {
			t.Fatalf("no seat after %d", len(turns))
		}
		turns = append(turns, turn)
	}
	return turns
}

// One user who floods fills his level and his queues; whoever else is in the level comes next, and other levels do not
// notice.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, 245)
		bob, get := user("bob"), ask("get", "", "pods", "", "a")
		turns := fill(t, d, bob, get)
		const queued = 6 * 50
		refused := make(chan time.Duration, 2*queued)
		for range queued {
			go func() {
				from := time.Now()
				if turn, ok := d.take(t.Context(), bob, get); ok {
					defer turn.End()
					<-t.Context().Done()
					return
				}
				refused <- time.Since(from)
			}()
		}
		synctest.Wait()
		if len(refused) > 0 {
			t.Fatal("a request was refused while there was room to wait")
		}
		from := time.Now()
		if _, ok := d.take(t.Context(), bob, get); ok || time.Since(from) > 0 {
			t.Error("a request found room in queues that are full")
		}
		alice := make(chan *Turn, 1)
		go func() {
			turn, _ := d.take(t.Context(), user("alice"), get)
			alice <- turn
		}()
		synctest.Wait()
		turns[0].End()
		synctest.Wait()
		select {
		case turn := <-alice:
			if turn == nil {
				t.Error("alice was refused")
			} else {
				turn.End()
			}
		default:
			t.Error("alice waits behind bob")
		}
		for name, u := range map[string]*request.User{"a node": user("system:node:a", request.GroupNodes),
			"the scheduler": user("system:kube-scheduler"),
			"an account":    account("x", "y"), "a master": user("root", request.GroupMasters)} {
			if _, ok := d.take(t.Context(), u, get); !ok || time.Since(from) > 0 {
				t.Errorf("%s waits for bob", name)
			}
		}
		time.Sleep(15*time.Second - time.Nanosecond)
		synctest.Wait()
		if n := len(refused); n > 0 {
			t.Errorf("%d were refused before a quarter of their time", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := len(refused); n < queued-2 {
			t.Errorf("%d of %d were refused after a quarter of their time", n, queued)
		}
	})
}

// Who leaves is not waited for, masters need no seat, and a level without queues refuses at once.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, 245)
		get := ask("get", "", "pods", "", "a")
		nobody := &request.User{Name: "nobody"}
		fill(t, d, nobody, get)
		if _, ok := d.take(t.Context(), nobody, get); ok {
			t.Error("there is a seat too many in catch-all")
		}
		bob := user("bob")
		fill(t, d, bob, get)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		from := time.Now()
		if _, ok := d.take(ctx, bob, get); ok || time.Since(from) != time.Second {
			t.Errorf("refused after %v of 4 s", time.Since(from))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, ok := d.take(gone, bob, get); ok {
			t.Error("a request whose client left got a turn")
		}
		for range 1000 {
			if _, ok := d.take(t.Context(), user("root", request.GroupMasters), get); !ok {
				t.Fatal("a master was refused")
			}
		}
		metrics := prometheus.NewPedanticRegistry()
		metrics.MustRegister(d)
		all, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range all {
			for _, m := range f.Metric {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, l.GetValue())
				}
				got[f.GetName()+" "+strings.Join(labels, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue() +
					float64(m.GetHistogram().GetSampleCount())
			}
		}
		for name, want := range map[string]float64{
			"rejected_requests_total catch-all catch-all concurrency-limit":     1,
			"rejected_requests_total global-default global-default time-out":    1,
			"rejected_requests_total global-default global-default cancelled":   1,
			"dispatched_requests_total exempt exempt":                           1000,
			"current_executing_seats exempt exempt":                             1000,
			"current_inqueue_requests global-default global-default":            0,
			"request_wait_duration_seconds false global-default global-default": 2,
			"request_queue_length_after_enqueue global-default global-default":  2,
			"nominal_limit_seats workload-low":                                  100,
			"lower_limit_seats workload-low":                                    10,
			"upper_limit_seats workload-low":                                    245,
			"request_execution_seconds exempt exempt regular":                   0,
			"work_estimated_seats exempt exempt":                                1000,
		} {
			if v, ok := got["apiserver_flowcontrol_"+name]; !ok || v != want {
				t.Errorf("%s: %v, %v, want %v", name, v, ok, want)
			}
		}
		if n := d.InFlight(false); n < 1000 {
			t.Errorf("%d requests in flight", n)
		}
	})
}

// A list takes seats for its objects, a write for those who are told of it, for as long as that takes.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, 245)
		bob := user("bob")
		level := d.Classify(bob, ask("get", "", "pods", "", "a")).schema.level
		seats := func() int {
			level.mu.Lock()
			defer level.mu.Unlock()
			return level.set.Seats()
		}
		list := ask("list", "", "pods", "", "a")
		for query, want := range map[string]int{"": 3, "limit=150": 2, "limit=5&x=y": 1, "limit=5&labelSelector=a": 3,
			"limit=x":                   3,
			"limit=1&label%53elector=a": 3, "limit=1&field%53elector=a": 3, "l%69mit=1": 1, "limit=%31": 1,
			"limit=300&limit=1": 3, "limit=1&limit=300": 1, "limit=1&labelSelector=": 1, "limit=1;labelSelector=a": 3,
			"limit=1&x=%zz": 1} {
			turn, ok := d.Take(t.Context(), d.Classify(bob, list), bob, list, query)
			if !ok || seats() != want {
				t.Errorf("a list with %q has %d seats, want %d", query, seats(), want)
			}
			turn.End()
		}
		for range 15 {
			d.Watching(ask("watch", "", "pods", "", ""))
		}
		over := d.Watching(ask("watch", "", "pods", "", "a"))
		for range 5 {
			d.Watching(ask("watch", "", "pods", "", "a"))
			d.Watching(ask("watch", "", "pods", "", "b"))
			d.Watching(&request.Info{IsResource: true, Verb: "watch", Resource: "pods",
				FieldSelector: "spec.nodeName=x"})
		}
		write := ask("create", "", "pods", "", "a")
		turn, ok := d.take(t.Context(), bob, write)
		if !ok || seats() != 1 || d.InFlight(true) != 1 {
			t.Errorf("a write has %d seats", seats())
		}
		turn.End()
		turn.End()
		if seats() != 2 || d.InFlight(true) != 0 {
			t.Errorf("a write of which 21 are told keeps %d seats", seats())
		}
		time.Sleep(toldIn)
		synctest.Wait()
		if seats() != 0 {
			t.Errorf("%d seats are kept after a while", seats())
		}
		over()
		if n := d.watchers.of(write); n != 20 {
			t.Errorf("%d watchers", n)
		}
	})
}

// Seats that nobody asks for go to a busy level within a period, and come back.
func TestLevelsLend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, 245)
		bob, get := user("bob"), ask("get", "", "pods", "", "a")
		level := d.Classify(bob, get).schema.level
		turns := fill(t, d, bob, get)
		before := len(turns)
		waiting, leave := context.WithCancel(t.Context())
		more := make(chan *Turn, 200)
		for range 200 {
			go func() {
				if turn, ok := d.take(waiting, bob, get); ok {
					more <- turn
				}
			}()
		}
		synctest.Wait()
		time.Sleep(adjustEvery)
		d.mu.Lock()
		d.adjust()
		d.mu.Unlock()
		synctest.Wait()
		for len(more) > 0 {
			turns = append(turns, <-more)
		}
		if level.set.Limit() <= before || len(turns) != level.set.Limit() {
			t.Errorf("a busy level has %d seats of which %d are taken, before %d", level.set.Limit(), len(turns),
				before)
		}
		busy := level.set.Limit()
		leave()
		synctest.Wait()
		for _, turn := range turns {
			turn.End()
		}
		fill(t, d, account("x", "y"), get)
		time.Sleep(20 * time.Second)
		for range 60 {
			d.mu.Lock()
			d.adjust()
			d.mu.Unlock()
			time.Sleep(adjustEvery)
		}
		if l := level.set.Limit(); l >= busy/2 || l < level.limits.Min {
			t.Errorf("a quiet level keeps %d of %d seats", l, busy)
		}
	})
}

// TestHeadersBesideConfiguration: requests tell where they belong while the next classifier is made; the race detector
// watches.
func TestHeadersBesideConfiguration(t *testing.T) {
	t.Parallel()
	d := newDispatcher(t, 10)
	var made sync.WaitGroup
	made.Go(func() {
		for range 20 {
			d.rebuild()
		}
	})
	for range 20 {
		d.Classify(user("a"), path("get", "/")).SetHeaders(http.Header{})
	}
	made.Wait()
}

// TestReferenceMetrics: docs/reference has the metrics of priority and fairness as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	d := newDispatcher(t, 10)
	for _, l := range d.levels {
		s := newStats("some", l.name)
		for i := range s.rejected {
			s.rejected[i] = 1
		}
		l.stats["some"] = s
	}
	referencetest.MetricsPage(t, "kube-apiserver-fairness", "Metrics of priority and fairness",
		"At `/metrics` of kube-apiserver; those with the label `flow_schema` once it had a request.",
		"./pkg/apiserver/fairness", referencetest.Metrics(d))
}
