package proxy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"bonsai/pkg/boundedfrequency"
)

// Backend writes Updates to the kernel. After an error the next Update has what changed meanwhile; the backend must
// then also repair what it missed. An error that is or wraps a *Refused means that only the services it names are
// missing.
type Backend interface {
	Apply(ctx context.Context, u Update) error
}

// Loop takes changes from State to the backends: at once when it was quiet, and at most every MinPeriod under load.
type Loop struct {
	State *State
	// Backends write what the node's health depends on. Extras run after them, and again after an error; a node that
	// cannot set one route yet is still healthy. After an error of Backends, the services that it concerns are reported
	// again: an Extra that cleans up after old rules must look once more when they are gone.
	Backends, Extras []Backend
	// Settle is how long further changes may join the first one; MinPeriod the shortest time between two rounds.
	Settle, MinPeriod time.Duration
	// Resync repeats a round without changes, which lets backends repair what others broke. 0 never does.
	Resync time.Duration
	// Begin is called when a round of a Backend begins, Done with how long it took and its result: refused is the
	// number of services that were refused while all others were written, err is why nothing could be written. i is the
	// Backend's index.
	Begin func(i int)
	Done  func(i int, took time.Duration, refused int, err error)
	// Arrived is called with the endpoints of pods that are in the kernel now, and when they are; nil: nobody asks.
	Arrived func(all []Arrival, at time.Time)
	Log     *slog.Logger
	// arrived wait for a round that succeeds.
	arrived []Arrival
}

// Run returns when ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	p := boundedfrequency.Runner{Settle: l.Settle, MinPeriod: l.MinPeriod, Resync: l.Resync, Log: l.Log}
	return p.Run(ctx, l.State, l.round)
}

// round applies the changes to every backend, whatever the others return. What failed is reported again by the next
// Take, so that a round that failed is repeated with what changed since.
func (l *Loop) round(ctx context.Context) error {
	u := l.State.Take()
	var whole error
	refused := map[Name]error{}
	for i, b := range l.Backends {
		l.Begin(i)
		start := time.Now()
		err := b.Apply(ctx, u)
		r := &Refused{}
		if errors.As(err, &r) {
			maps.Copy(refused, r.Services)
			err = nil
		}
		l.Done(i, time.Since(start), len(r.Services), err)
		whole = errors.Join(whole, err)
	}
	if whole != nil {
		l.State.Again(maps.Keys(u.Services))
	}
	l.arrive(u.Arrived, whole != nil, refused)
	var errs []error
	if len(refused) > 0 {
		l.State.Again(maps.Keys(refused))
		errs = append(errs, &Refused{refused})
	}
	for _, b := range l.Extras {
		errs = append(errs, b.Apply(ctx, u))
	}
	return errors.Join(append(errs, whole)...)
}

// arrive passes on the endpoints that a round has brought into the kernel. After a round that failed they wait for the
// next one. Those of refused Services are dropped: when they will arrive says nothing of the proxy.
func (l *Loop) arrive(now []Arrival, failed bool, refused map[Name]error) {
	if l.Arrived == nil {
		return
	}
	if l.arrived = append(l.arrived, now...); len(l.arrived) > maxArrivals {
		l.arrived = l.arrived[:maxArrivals]
	}
	if failed || len(l.arrived) == 0 {
		return
	}
	all := slices.DeleteFunc(l.arrived, func(a Arrival) bool { return refused[a.Service] != nil })
	l.arrived = nil
	l.Arrived(all, time.Now())
}
