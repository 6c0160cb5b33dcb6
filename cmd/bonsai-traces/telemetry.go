package main

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/traces"
	"bonsai/pkg/traces/receiver"
)

// collector shows the figures of the parts when it is asked.
type collector struct {
	parts *parts

	bytes, objects, requests, spans, evicted     *prometheus.Desc
	received, dropped, messages, broken, refused *prometheus.Desc
	throttled                                    *prometheus.Desc
	diskBytes, diskFiles, diskErrors, diskLeft   *prometheus.Desc
}

var _ prometheus.Collector = (*collector)(nil)

func newCollector(p *parts) *collector {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("bonsai_traces_"+name, help, labels, nil)
	}
	return &collector{parts: p,
		bytes:      describe("store_bytes", "The bytes of memory that the kept traces take."),
		objects:    describe("objects", "The objects that have traces."),
		requests:   describe("requests", "The traces of requests and rounds that are kept, for objects that link to them or until one does."),
		spans:      describe("spans", "The spans that are kept."),
		evicted:    describe("evicted_objects_total", "The objects whose traces were removed for newer ones."),
		received:   describe("received_spans_total", "The spans that were received."),
		dropped:    describe("dropped_spans_total", "The spans that were not kept, by reason; trace_full are those from the middle of traces with too many, node_full those of a node that held more than its share.", "reason"),
		messages:   describe("messages_total", "The messages that were received."),
		broken:     describe("broken_messages_total", "The messages that could not be read completely."),
		refused:    describe("refused_total", "The messages and connections that were refused because there were too many at once."),
		throttled:  describe("throttled_messages_total", "The messages that were refused because their node sent more than it may."),
		diskBytes:  describe("disk_bytes", "The bytes of the files that keep traces over restarts."),
		diskFiles:  describe("disk_files", "The files that keep traces over restarts."),
		diskErrors: describe("disk_errors_total", "The writes to these files that failed."),
		diskLeft:   describe("disk_left_out_total", "The records that are lost at the next restart because the disk was too slow, or their node had too much in these files."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	show := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	s := c.parts.store.Stats()
	show(c.bytes, prometheus.GaugeValue, float64(s.Bytes))
	show(c.objects, prometheus.GaugeValue, float64(s.Objects))
	show(c.requests, prometheus.GaugeValue, float64(s.Requests))
	show(c.spans, prometheus.GaugeValue, float64(s.Spans))
	show(c.evicted, prometheus.CounterValue, float64(s.Evicted))
	r := c.parts.taken()
	show(c.received, prometheus.CounterValue, float64(r.Received))
	for _, why := range []traces.Reason{traces.Duplicate, traces.Contradiction, traces.TooLarge, traces.TooMany,
		traces.Invalid, traces.Foreign} {
		show(c.dropped, prometheus.CounterValue, float64(r.Dropped[why]), string(why))
	}
	show(c.dropped, prometheus.CounterValue, float64(s.Overfull), "node_full")
	show(c.dropped, prometheus.CounterValue, float64(s.Cut), "trace_full")
	show(c.messages, prometheus.CounterValue, float64(r.Messages))
	show(c.broken, prometheus.CounterValue, float64(r.Broken))
	show(c.refused, prometheus.CounterValue, float64(r.Refused))
	show(c.throttled, prometheus.CounterValue, float64(r.Throttled))
	d := c.parts.disk.Stats()
	show(c.diskBytes, prometheus.GaugeValue, float64(d.Bytes))
	show(c.diskFiles, prometheus.GaugeValue, float64(d.Files))
	show(c.diskErrors, prometheus.CounterValue, float64(d.Errors))
	show(c.diskLeft, prometheus.CounterValue, float64(d.Left))
}

// taken adds up what the receivers took.
func (p *parts) taken() receiver.Stats {
	all := receiver.Stats{Dropped: map[traces.Reason]uint64{}}
	for _, r := range append(slices.Clone(p.receivers), p.web) {
		s := r.Stats()
		all.Received, all.Messages = all.Received+s.Received, all.Messages+s.Messages
		all.Broken, all.Refused = all.Broken+s.Broken, all.Refused+s.Refused
		all.Throttled += s.Throttled
		for why, n := range s.Dropped {
			all.Dropped[why] += n
		}
	}
	return all
}
