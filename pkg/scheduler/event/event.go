// Package event publishes events about pods: bounded, in the background, and repeated ones as a series.
package event

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// API writes events.
type API interface {
	CreateEvent(ctx context.Context, e *eventsv1.Event) error
	PatchEvent(ctx context.Context, namespace, name string, series *eventsv1.EventSeries) error
}

// Limits of what is kept.
const (
	maxQueued = 16384
	maxSeries = 4096
	// seriesEvery is how often the count of a repeating event is written.
	seriesEvery = 5 * time.Minute
	timeout     = 10 * time.Second
)

// Recorder publishes events; make it with New.
type Recorder struct {
	api      API
	instance string
	now      func() time.Time
	log      *slog.Logger
	wake     chan struct{}
	series   map[seriesKey]*series

	mu    sync.Mutex
	queue []message
}

// message is an event to be published.
type message struct {
	at                                       time.Time
	namespace, name                          string
	uid                                      types.UID
	version                                  string
	profile, eventType, reason, action, note string
}

type seriesKey struct {
	uid          types.UID
	reason, note string
}

// series is an event that was published and may repeat.
type series struct {
	namespace, name string
	count           int32
	written         time.Time
}

// New returns a recorder; instance names this process.
func New(api API, instance string, now func() time.Time, log *slog.Logger) *Recorder {
	return &Recorder{api: api, instance: instance, now: now, log: log, wake: make(chan struct{}, 1),
		series: map[seriesKey]*series{}}
}

// Event queues an event about pod; when too many wait it is dropped.
func (r *Recorder) Event(pod *corev1.Pod, profile, eventType, reason, action, note string) {
	m := message{at: r.now(), namespace: pod.Namespace, name: pod.Name, uid: pod.UID, version: pod.ResourceVersion,
		profile: profile, eventType: eventType, reason: reason, action: action, note: note}
	r.mu.Lock()
	full := len(r.queue) >= maxQueued
	if !full {
		r.queue = append(r.queue, m)
	}
	r.mu.Unlock()
	if full {
		r.log.Warn("too many events wait, dropping one", "pod", pod.Namespace+"/"+pod.Name, "reason", reason)
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns the events that wait.
func (r *Recorder) take() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.queue
	r.queue = nil
	return all
}

// Run publishes until ctx ends, one at a time: events are the first thing that may be late.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		for _, m := range r.take() {
			if ctx.Err() != nil {
				break
			}
			r.publish(ctx, m)
		}
	}
}

func (r *Recorder) publish(ctx context.Context, m message) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := r.write(ctx, m); err != nil {
		r.log.Warn("writing an event failed", "pod", m.namespace+"/"+m.name, "reason", m.reason, "err", err)
	}
}

// write makes a new event, or counts a known one up. One that is not there any more, or never came to be, is made
// again.
func (r *Recorder) write(ctx context.Context, m message) error {
	key := seriesKey{m.uid, m.reason, m.note}
	if s := r.series[key]; s != nil {
		s.count++
		if s.count > 2 && m.at.Sub(s.written) < seriesEvery {
			return nil
		}
		s.written = m.at
		err := r.api.PatchEvent(ctx, s.namespace, s.name,
			&eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(m.at)})
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	e := r.event(m)
	if m.eventType != corev1.EventTypeNormal {
		if len(r.series) >= maxSeries {
			clear(r.series)
		}
		r.series[key] = &series{namespace: e.Namespace, name: e.Name, count: 1, written: m.at}
	}
	return r.api.CreateEvent(ctx, e)
}

func (r *Recorder) event(m message) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace,
			Name: fmt.Sprintf("%s.%s", m.name, strconv.FormatInt(m.at.UnixNano(), 16))},
		EventTime:           metav1.NewMicroTime(m.at),
		ReportingController: m.profile,
		ReportingInstance:   m.profile + "-" + r.instance,
		Action:              m.action,
		Reason:              m.reason,
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: m.namespace, Name: m.name,
			UID: m.uid, ResourceVersion: m.version},
		Note: m.note,
		Type: m.eventType,
	}
}
