package framework

import "time"

// Laps times the plug-ins of one pod's scheduling. A nil *Laps times nothing, and asks no clock. It belongs to one
// goroutine at a time.
type Laps struct {
	// Now is the clock.
	Now func() time.Time
	// Longer is what a plug-in takes at least to be noted, and Note gets those that did.
	Longer time.Duration
	Note   func(point, plugin string, begun, end time.Time)
}

// Begin returns when a plug-in begins.
func (l *Laps) Begin() (begun time.Time) {
	if l != nil {
		begun = l.Now()
	}
	return begun
}

// End notes a plug-in that began at a time, if it took long.
func (l *Laps) End(point, plugin string, begun time.Time) {
	if l == nil {
		return
	}
	if end := l.Now(); end.Sub(begun) > l.Longer {
		l.Note(point, plugin, begun, end)
	}
}
