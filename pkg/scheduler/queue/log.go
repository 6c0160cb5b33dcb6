package queue

import "bonsai/pkg/scheduler/framework"

// trimAbove is the number of remembered events from which on it is worth looking which are still needed.
const trimAbove = 256

// eventLog remembers the events that happened while pods are in flight, at growing positions.
type eventLog struct {
	first  int
	events []framework.Event
}

func (l *eventLog) end() int { return l.first + len(l.events) }

func (l *eventLog) size() int { return len(l.events) }

func (l *eventLog) add(e framework.Event) { l.events = append(l.events, e) }

func (l *eventLog) clear() {
	l.first = l.end()
	l.events = nil
}

// trim forgets what is before position to, once that is half of what is remembered: the other half is copied.
func (l *eventLog) trim(to int) {
	if n := to - l.first; n > 0 && 2*n >= len(l.events) {
		l.events = append([]framework.Event(nil), l.events[n:]...)
		l.first = to
	}
}

// since calls yield with each event from a position on until it returns false.
func (l *eventLog) since(from int, yield func(framework.Event) bool) {
	for i := max(from-l.first, 0); i < len(l.events); i++ {
		if !yield(l.events[i]) {
			return
		}
	}
}
