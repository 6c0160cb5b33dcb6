package cronjob

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"

	"bonsai/api/batch"
)

// manyMissed is how many missed runs it takes before an event says so.
const manyMissed = 100

// schedule reads when a cron job is to run. Its own time zone goes before that of the process.
//
// The parser is shared with the API server's validation, so what is stored can be read.
func schedule(s *batchv1.CronJobSpec) (cron.Schedule, error) {
	text := s.Schedule
	if s.TimeZone != nil {
		text = "TZ=" + *s.TimeZone + " " + text
	}
	return batch.ParseSchedule(text)
}

// due is the last time up to now at which the cron job was to run and has not.
//
// Only the latest of several missed times is made up for: the others are lost, as Kubernetes documents.
type due struct {
	at time.Time // zero if there is none
	// missed means that there were more than manyMissed such times.
	missed bool
	// next is when it is to run after now; zero for never.
	next time.Time
}

// errTooClose has upstream's words, also for a schedule that never fires.
var errTooClose = errors.New("time difference between two schedules is less than 1 second")

// dueAt finds what is due of what was to run after earliest.
//
// The steps from earliest on are counted up to manyMissed. Beyond that latest leaps, because a CronJob of every minute
// that was suspended for a year has missed half a million times.
func dueAt(s cron.Schedule, earliest, now time.Time) (due, error) {
	first := s.Next(earliest)
	if first.IsZero() { // no such day in the next years
		return due{}, errTooClose
	}
	if first.After(now) {
		return due{next: first}, nil
	}
	if second := s.Next(first); !second.IsZero() && second.Sub(first) < time.Second {
		return due{}, errTooClose
	}
	out := due{at: first}
	n := 1
	for n <= manyMissed {
		t := s.Next(out.at)
		if t.IsZero() || t.After(now) {
			out.next = t
			return out, nil
		}
		out.at = t
		n++
	}
	out.missed = true
	out.at = latest(s, out.at, now)
	out.next = s.Next(out.at)
	return out, nil
}

// latest is the last time up to now, one of them being at. A schedule by the clock is asked for ever longer spans
// before now, so that years of every minute cost no more than an hour; one by a delay counts from at.
//
// The first span that contains a time gives one that is close to now; from there the times are walked one by one.
func latest(s cron.Schedule, at, now time.Time) time.Time {
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		return at.Add(now.Sub(at) / every.Delay * every.Delay)
	}
	for span := time.Hour; now.Add(-span).After(at); span *= 2 {
		if t := s.Next(now.Add(-span)); !t.IsZero() && !t.After(now) {
			at = t
			break
		}
	}
	for {
		t := s.Next(at)
		if t.IsZero() || t.After(now) {
			return at
		}
		at = t
	}
}

// earliest is the time after which runs count as missed: the latest of the creation, the last run, an edit of the
// schedule and, with startingDeadlineSeconds, the beginning of that span before now.
func earliest(c *batchv1.CronJob, edited, now time.Time) time.Time {
	from := c.CreationTimestamp.Time
	if c.Status.LastScheduleTime != nil {
		from = c.Status.LastScheduleTime.Time
	}
	if edited.After(from) {
		from = edited
	}
	if d := c.Spec.StartingDeadlineSeconds; d != nil {
		if limit := now.Add(-time.Duration(*d) * time.Second); limit.After(from) {
			return limit
		}
	}
	return from
}

// nameAt is the name of the job for a time, in minutes, because that is the resolution of a schedule. A second attempt
// for the same time finds the name taken, which is what makes a start at most once.
func nameAt(c *batchv1.CronJob, at time.Time) string {
	return fmt.Sprintf("%s-%d", c.Name, at.Unix()/60)
}
