package queue

import (
	"bonsai/pkg/scheduler/clusterevent"
)

// trimAbove is the number of remembered events from which on it is worth looking which are still needed.
const trimAbove = 256

// maxLog bounds the remembered events: each keeps its objects, and a pod may wait in flight for as long as a permit or
// a volume takes. Beyond it the older half is forgotten; what was in flight then counts as helped by it. At 2,500 pods
// a second, two events each, six seconds stay.
const maxLog = 1 << 16

// eventLog remembers the events that happened while pods are in flight, at growing positions. A flight notes the
// position at which it begins, so that all flights share one list. The mutex of the queue guards it.
type eventLog struct {
	first  int
	events []clusterevent.Event
}

func (l *eventLog) end() int { return l.first + len(l.events) }

func (l *eventLog) size() int { return len(l.events) }

func (l *eventLog) add(e clusterevent.Event) {
	if len(l.events) >= maxLog {
		l.trim(l.end() - maxLog/2)
	}
	l.events = append(l.events, e)
}

// forgot reports whether an event at or after position from is remembered no more.
func (l *eventLog) forgot(from int) bool { return from < l.first }

// clear forgets everything. Positions go on: a flight that begins later must not take an old position for its own.
func (l *eventLog) clear() {
	l.first = l.end()
	l.events = nil
}

// trim forgets what is before position to, once that is half of what is remembered: the other half is copied.
func (l *eventLog) trim(to int) {
	if n := to - l.first; n > 0 && 2*n >= len(l.events) {
		l.events = append([]clusterevent.Event(nil), l.events[n:]...)
		l.first = to
	}
}

// since calls yield with each event from a position on until it returns false. The log must still have all of them.
func (l *eventLog) since(from int, yield func(clusterevent.Event) bool) {
	for i := from - l.first; i < len(l.events); i++ {
		if !yield(l.events[i]) {
			return
		}
	}
}
