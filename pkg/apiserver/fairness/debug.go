package fairness

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"bonsai/pkg/apiserver/fairness/queueset"
)

// maxQueues is how many queues of a level are shown.
const maxQueues = 10000

// Paths are what shows the state, as tables, under upstream's paths.
func (d *Dispatcher) Paths() map[string]http.Handler {
	const root = "/debug/api_priority_and_fairness/"
	return map[string]http.Handler{
		root + "dump_priority_levels": d.table(d.dumpLevels),
		root + "dump_queues":          d.table(d.dumpQueues),
		root + "dump_requests":        d.table(d.dumpRequests),
	}
}

// table answers with lines of cells, each ended by a comma except the last.
func (d *Dispatcher) table(write func(r *http.Request, line func(cells ...any))) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		var all bytes.Buffer // the client may read slowly, and write holds locks
		out := tabwriter.NewWriter(&all, 8, 0, 1, ' ', 0)
		write(r, func(cells ...any) {
			text := make([]string, len(cells))
			for i, c := range cells {
				text[i] = fmt.Sprint(c)
			}
			fmt.Fprintln(out, strings.Join(text, ",\t"))
		})
		out.Flush()
		w.Write(all.Bytes())
	})
}

// each calls f with each level, in the order of names, under its lock.
func (d *Dispatcher) each(f func(*level)) {
	d.mu.Lock()
	levels := slices.SortedFunc(maps.Values(d.levels), func(a, b *level) int { return cmp.Compare(a.name, b.name) })
	d.mu.Unlock()
	for _, l := range levels {
		l.mu.Lock()
		f(l)
		l.mu.Unlock()
	}
}

func (d *Dispatcher) dumpLevels(_ *http.Request, line func(cells ...any)) {
	line("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
		"DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests")
	d.each(func(l *level) {
		active, dispatched := l.set.Active(), 0
		if l.set.Queues() == 0 {
			active = 0
		}
		var rejected [reasons]int
		for _, s := range l.stats {
			dispatched += s.dispatched
			for i, n := range s.rejected {
				rejected[i] += n
			}
		}
		line(l.name, active, l.set.Waiting()+l.set.Executing() == 0, l.leaving, l.set.Waiting(), l.set.Executing(),
			dispatched,
			rejected[queueFull]+rejected[noSeat], rejected[timeOut], rejected[cancelled])
	})
}

func (d *Dispatcher) dumpQueues(_ *http.Request, line func(cells ...any)) {
	line("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
		"InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum")
	d.each(func(l *level) {
		for i := range min(l.set.Queues(), maxQueues) {
			q := l.set.Queue(i)
			line(l.name, i, q.Waiting, q.Executing, q.Seats, fmt.Sprintf("%.8fss", q.NextR), q.WaitingSeats,
				q.WaitingSeats, fmt.Sprintf("%.8fss", q.Work))
		}
	})
}

func (d *Dispatcher) dumpRequests(r *http.Request, line func(cells ...any)) {
	head := []any{"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher",
		"ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"}
	details := r.URL.Query().Get("includeRequestDetails") == "1"
	if details {
		head = append(head, "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
	}
	line(head...)
	at := func(since time.Duration) string { return d.start.Add(since).UTC().Format(time.RFC3339Nano) }
	d.each(func(l *level) {
		l.set.Requests(func(q *queueset.Request, queue, place int) bool {
			t := q.Owner.(*Turn)
			begun := time.Time{}.Format(time.RFC3339Nano)
			if q.Running() {
				begun = at(q.Started())
			}
			cells := []any{l.name, t.class.schema.name, queue, place, t.class.schema.flow(t.user, t.info),
				at(q.Arrived()), q.Width, q.Final, q.Extra, begun}
			if i := t.info; details {
				cells = append(cells, t.user.Name, i.Verb, i.Path, i.Namespace, i.Name, i.APIVersion, i.Resource,
					i.Subresource)
			}
			line(cells...)
			return true
		})
	})
}
