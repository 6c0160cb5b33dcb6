package fairness

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/fairness/queueset"
)

// Why a request was refused, in the words of the label "reason".
const (
	queueFull = iota
	noSeat
	timeOut
	cancelled
	reasons
)

func reason(i int) string {
	return [reasons]string{"queue-full", "concurrency-limit", "time-out", "cancelled"}[i]
}

// stats are counted of the requests of a schema in a level. The level's lock guards the numbers.
type stats struct {
	dispatched, executing, seats, waiting, waitingSeats int
	rejected                                            [reasons]int
	// The histograms guard themselves.
	width, queue                  prometheus.Histogram
	run, watch, served, notServed prometheus.Histogram
}

func newStats(schema, level string) *stats {
	h := func(name, help string, buckets []float64, more prometheus.Labels) prometheus.Histogram {
		labels := prometheus.Labels{"flow_schema": schema, "priority_level": level}
		for k, v := range more {
			labels[k] = v
		}
		return prometheus.NewHistogram(
			prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets, ConstLabels: labels})
	}
	seconds := []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}
	const ran, waited = "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution in the API Priority and Fairness subsystem",
		"Length of time a request spent waiting in its queue"
	return &stats{
		width: h("work_estimated_seats",
			"Number of estimated seats (maximum of initial and final seats) associated with requests in API Priority and Fairness",
			[]float64{1, 2, 4, 10}, nil),
		queue: h("request_queue_length_after_enqueue",
			"Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
			[]float64{0, 10, 25, 50, 100, 250, 500, 1000}, nil),
		run:       h("request_execution_seconds", ran, seconds, prometheus.Labels{"type": "regular"}),
		watch:     h("request_execution_seconds", ran, seconds, prometheus.Labels{"type": "watch"}),
		served:    h("request_wait_duration_seconds", waited, seconds, prometheus.Labels{"execute": "true"}),
		notServed: h("request_wait_duration_seconds", waited, seconds, prometheus.Labels{"execute": "false"}),
	}
}

// unused tells that the schema has had no request: there is nothing to show, and there may be many of them.
func (s *stats) unused() bool {
	return s.dispatched == 0 && s.waiting == 0 && s.rejected == [reasons]int{}
}

func (s *stats) begin(width int) {
	s.dispatched++
	s.executing++
	s.seats += width
}

func (s *stats) end(width int) {
	s.executing--
	s.seats -= width
}

func (s *stats) queued(r *queueset.Request) {
	s.waiting++
	s.waitingSeats += r.Width
	s.queue.Observe(float64(r.QueueLength()))
}

func (s *stats) unqueued(width int) {
	s.waiting--
	s.waitingSeats -= width
}

func (s *stats) waited(served bool, d time.Duration) {
	if served {
		s.served.Observe(d.Seconds())
	} else {
		s.notServed.Observe(d.Seconds())
	}
}

func (s *stats) ran(watch bool, d time.Duration) {
	if watch {
		s.watch.Observe(d.Seconds())
	} else {
		s.run.Observe(d.Seconds())
	}
}

const prefix = "apiserver_flowcontrol_"

// Describe implements prometheus.Collector: what it collects depends on the configuration.
func (d *Dispatcher) Describe(chan<- *prometheus.Desc) {}

// gauge is a metric of a level, now.
type gauge struct {
	name, help string
	value      float64
}

func (l *level) gauges() []gauge {
	current := float64(l.set.Limit())
	if l.exempt {
		current = float64(l.lent)
	}
	return []gauge{
		{"nominal_limit_seats", "Nominal number of execution seats configured for each priority level",
			float64(l.limits.Nominal)},
		{"lower_limit_seats", "Configured lower bound on number of execution seats available to each priority level",
			float64(l.limits.Min)},
		{"upper_limit_seats", "Configured upper bound on number of execution seats available to each priority level",
			float64(l.limits.Max)},
		{"current_limit_seats", "current derived number of execution seats available to each priority level", current},
		{"demand_seats_high_watermark", "High watermark, over last adjustment period, of demand_seats",
			float64(l.demand.High)},
		{"demand_seats_average", "Time-weighted average, over last adjustment period, of demand_seats",
			l.demand.Average},
		{"demand_seats_stdev", "Time-weighted standard deviation, over last adjustment period, of demand_seats",
			l.demand.StDev},
		{"demand_seats_smoothed", "Smoothed seat demands", l.smooth},
		{"target_seats", "Seat allocation targets", l.target},
		{"current_r", "R(time of last change)", l.set.R()},
	}
}

// Collect implements prometheus.Collector.
func (d *Dispatcher) Collect(out chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	send := func(name, help string, kind prometheus.ValueType, value float64, labels ...string) {
		names := []string{"priority_level", "flow_schema", "reason"}[:len(labels)]
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc(prefix+name, help, names, nil), kind, value, labels...)
	}
	send("seat_fair_frac", "Fair fraction of server's concurrency to allocate to each priority level that can use it",
		prometheus.GaugeValue, d.fair)
	for _, l := range d.levels {
		l.mu.Lock()
		for _, g := range l.gauges() {
			send(g.name, g.help, prometheus.GaugeValue, g.value, l.name)
		}
		for name, s := range l.stats {
			if s.unused() {
				continue
			}
			send("dispatched_requests_total", "Number of requests executed by API Priority and Fairness subsystem",
				prometheus.CounterValue, float64(s.dispatched), l.name, name)
			send("current_executing_requests",
				"Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem",
				prometheus.GaugeValue, float64(s.executing), l.name, name)
			send("current_executing_seats",
				"Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
				prometheus.GaugeValue, float64(s.seats), l.name, name)
			send("current_inqueue_requests",
				"Number of requests currently pending in queues of the API Priority and Fairness subsystem",
				prometheus.GaugeValue, float64(s.waiting), l.name, name)
			send("current_inqueue_seats",
				"Number of seats currently pending in queues of the API Priority and Fairness subsystem",
				prometheus.GaugeValue, float64(s.waitingSeats), l.name, name)
			for i, n := range s.rejected {
				if n > 0 {
					send("rejected_requests_total",
						"Number of requests rejected by API Priority and Fairness subsystem", prometheus.CounterValue,
						float64(n), l.name, name, reason(i))
				}
			}
			for _, h := range []prometheus.Histogram{s.width, s.queue, s.run, s.watch, s.served, s.notServed} {
				h.Collect(out)
			}
		}
		l.mu.Unlock()
	}
}
