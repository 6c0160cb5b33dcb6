package cronjob

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/batch"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestDuePlain compares what is due with looking at one time after the other.
func TestDuePlain(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, text := range []string{"* * * * *", "*/7 3 * * *", "0 0 1 * *", "@every 90s", "@every 61m", "0 0 29 2 *",
		"@hourly", "0 0 31 2 *", "TZ=Europe/Rome 30 2 * * *", "5 4 * * sun"} {
		s, err := batch.ParseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0,
				time.UTC).Add(time.Duration(r.Int64N(int64(365 * 24 * time.Hour)))).Truncate(time.Second)
			from := now.Add(-time.Duration(r.Int64N(int64(40 * 24 * time.Hour)))).Truncate(time.Second)
			if r.IntN(2) == 0 {
				from = now.Add(-time.Duration(r.Int64N(int64(time.Hour)))).Truncate(time.Second)
			}
			var want due
			n := 0
			next := s.Next(from)
			for ; !next.IsZero() && !next.After(now); next = s.Next(next) {
				want.at = next
				n++
			}
			want.next, want.missed = next, n > manyMissed
			got, err := dueAt(s, from, now)
			if text == "0 0 31 2 *" {
				if err == nil || err.Error() != "time difference between two schedules is less than 1 second" {
					t.Errorf("a schedule that never fires: %+v, %v", got, err)
				}
				continue
			}
			if err != nil || !got.at.Equal(want.at) || !got.next.Equal(want.next) || got.missed != want.missed {
				t.Errorf("%s from %s at %s: %+v, %v; want %+v", text, from, now, got, err, want)
			}
		}
	}
}

// TestYearsMissed: a cron job of every minute that was suspended for twenty years is looked at in no time.
func TestYearsMissed(t *testing.T) {
	t.Parallel()
	s, err := batch.ParseSchedule("* * * * *")
	if err != nil {
		t.Fatal(err)
	}
	asked := &counting{Schedule: s}
	now := time.Date(2046, 1, 1, 0, 0, 30, 0, time.UTC)
	d, err := dueAt(asked, now.AddDate(-20, 0, 0), now)
	if err != nil || !d.missed || !d.at.Equal(now.Add(-30*time.Second)) || asked.n > 500 {
		t.Errorf("%+v, %v after %d questions", d, err, asked.n)
	}
}

type counting struct {
	Schedule interface{ Next(time.Time) time.Time }
	n        int
}

func (c *counting) Next(t time.Time) time.Time {
	c.n++
	return c.Schedule.Next(t)
}

func jobNamed(name string, owner types.UID, at string, end batchv1.JobConditionType, started time.Time) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(started)}}
	if at != "" {
		j.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at}
	}
	j.Status.StartTime = new(metav1.NewTime(started))
	if end != "" {
		j.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue}}
		if end == batchv1.JobComplete {
			j.Status.CompletionTime = new(metav1.NewTime(started.Add(time.Minute)))
		}
	}
	return j
}

// TestDecide: what is done about a cron job, with Kubernetes' reasons.
func TestDecide(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 5, 1, 10, 0, 10, 0, time.UTC)
	cron := func(change func(*batchv1.CronJob)) *batchv1.CronJob {
		c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c",
			CreationTimestamp: metav1.NewTime(born)}, Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", ConcurrencyPolicy: batchv1.AllowConcurrent,
			SuccessfulJobsHistoryLimit: new(int32(1)), FailedJobsHistoryLimit: new(int32(0)),
		}}
		if change != nil {
			change(c)
		}
		return c
	}
	active := func(names ...string) func(*batchv1.CronJob) {
		return func(c *batchv1.CronJob) {
			for _, n := range names {
				c.Status.Active = append(c.Status.Active, corev1.ObjectReference{Name: n, UID: types.UID(n)})
			}
			c.Status.LastScheduleTime = new(metav1.NewTime(born))
		}
	}
	first := fmt.Sprintf("c-%d", born.Add(50*time.Second).Unix()/60)
	due := born.Add(55 * time.Second)
	for _, c := range []struct {
		name string
		cron *batchv1.CronJob
		jobs []*batchv1.Job
		now  time.Time
		want string
	}{
		{"not yet", cron(nil), nil, born.Add(20 * time.Second), "wait 30.1s"},
		{"due", cron(nil), nil, due, "create " + first + " 2026-05-01T10:01:00Z, wait 55.1s"},
		{"zone", cron(func(c *batchv1.CronJob) {
			c.Spec.TimeZone = new("Asia/Tokyo")
		}), nil, due, "create " + first + " 2026-05-01T19:01:00+09:00, wait 55.1s"},
		{"bad zone", cron(func(c *batchv1.CronJob) { c.Spec.TimeZone = new("Nowhere") }), nil, due, "UnknownTimeZone"},
		{"bad schedule", cron(func(c *batchv1.CronJob) { c.Spec.Schedule = "x" }), nil, due, "UnparseableSchedule"},
		{"never", cron(func(c *batchv1.CronJob) { c.Spec.Schedule = "0 0 31 2 *" }), nil, due, "InvalidSchedule"},
		{"suspended", cron(func(c *batchv1.CronJob) { c.Spec.Suspend = new(true) }), nil, due, ""},
		{"deleted", cron(func(c *batchv1.CronJob) { c.DeletionTimestamp = new(metav1.NewTime(due)) }), nil, due, ""},
		{"done for that time", cron(func(c *batchv1.CronJob) {
			c.Status.LastScheduleTime = new(metav1.NewTime(born.Add(50 * time.Second)))
		}), nil, due, "wait 55.1s"},
		{"too late", cron(func(c *batchv1.CronJob) {
			c.Spec.StartingDeadlineSeconds = new(int64(3))
		}), nil, due, "wait 55.1s"},
		{"many missed", cron(nil), nil, born.Add(3 * time.Hour),
			"TooManyMissedTimes, create " + fmt.Sprintf("c-%d", born.Add(3*time.Hour).Unix()/60) +
				" 2026-05-01T13:00:00Z, wait 50.1s"},
		{"forbid", cron(func(c *batchv1.CronJob) {
			active("a")(c)
			c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
		}),
			[]*batchv1.Job{jobNamed("a", "c", "2026-05-01T10:00:00Z", "", born)}, due, "JobAlreadyActive, wait 55.1s"},
		{"replace", cron(func(c *batchv1.CronJob) {
			active("a")(c)
			c.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent
		}),
			[]*batchv1.Job{jobNamed("a", "c", "2026-05-01T10:00:00Z", "", born)}, due,
			"replace a, create " + first + " 2026-05-01T10:01:00Z, wait 55.1s"},
		{"ended", cron(active("a")),
			[]*batchv1.Job{jobNamed("a", "c", "2026-05-01T10:00:00Z", batchv1.JobComplete, born)},
			born.Add(time.Second), "SawCompletedJob, wait 49.1s"},
		{"missing", cron(active("a")), nil, born.Add(time.Second), "MissingJob, wait 49.1s"},
		{"lost status", cron(nil), []*batchv1.Job{jobNamed(first, "c", "2026-05-01T10:01:00Z", "", due)}, due,
			"active " + first + ", wait 55.1s"},
		{"by hand", cron(nil), []*batchv1.Job{jobNamed("hand", "c", "", "", born)}, born.Add(time.Second),
			"UnexpectedJob, wait 49.1s"},
		{"history", cron(nil), []*batchv1.Job{
			jobNamed("old", "c", "2026-05-01T09:00:00Z", batchv1.JobComplete, born.Add(-time.Hour)),
			jobNamed("new", "c", "2026-05-01T10:00:00Z", batchv1.JobComplete, born),
			jobNamed("bad", "c", "2026-05-01T09:30:00Z", batchv1.JobFailed, born),
		}, born.Add(time.Second), "remove old, remove bad, wait 49.1s"},
	} {
		s := &state{cron: c.cron, jobs: c.jobs, now: c.now}
		if got := shown(s.decide()); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestJobsThatTheCacheDoesNotHave: the cache of jobs may be behind that of cron jobs. An active job that it does not
// show is replaced all the same, and not joined by a second one; one that was taken from the cron job is left alone.
func TestJobsThatTheCacheDoesNotHave(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 5, 1, 10, 0, 10, 0, time.UTC)
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c",
		CreationTimestamp: metav1.NewTime(born)},
		Spec: batchv1.CronJobSpec{Schedule: "* * * * *", ConcurrencyPolicy: batchv1.ReplaceConcurrent},
		Status: batchv1.CronJobStatus{Active: []corev1.ObjectReference{{Name: "a", UID: "a"}},
			LastScheduleTime: new(metav1.NewTime(born))}}
	for name, own := range map[string]bool{"its own": true, "taken from it": false} {
		fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
			if call.Method != "GET" {
				return call.Object, nil
			}
			j := jobNamed("a", "c", "2026-05-01T10:00:00Z", "", born)
			if own {
				j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, kind())}
			}
			return j, nil
		}}
		ctl, err := New(fake.Deps(t, born.Add(55*time.Second)))
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, ctl.crons, c)
		if _, err := ctl.Reconcile(t.Context(), controller.KeyOf(c)); err != nil {
			t.Fatal(err)
		}
		if deleted := slices.Contains(fake.Names(), "DELETE /apis/batch/v1/namespaces/ns/jobs/a"); deleted != own {
			t.Errorf("%s: %q", name, fake.Names())
		}
	}
}

// TestEditedSchedule: no job starts for a time that the new schedule, or the old one in its new time zone, had before
// the edit.
func TestEditedSchedule(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 5, 1, 10, 0, 10, 0, time.UTC)
	edit := born.Add(2 * time.Hour)
	old := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c", CreationTimestamp: metav1.NewTime(born)},
		Spec:       batchv1.CronJobSpec{Schedule: "0 0 * * *", ConcurrencyPolicy: batchv1.AllowConcurrent}}
	for name, c := range map[string]struct {
		change  func(*batchv1.CronJob)
		after   time.Duration // since the edit
		creates bool
	}{
		"a new schedule": {func(c *batchv1.CronJob) {
			c.Spec.Schedule = "0 11 * * *"
		}, time.Second, false},
		"its first time": {func(c *batchv1.CronJob) {
			c.Spec.Schedule = "0 11 * * *"
		}, 24 * time.Hour, true},
		// midnight there was at 11:00 UTC
		"a new time zone": {func(c *batchv1.CronJob) { c.Spec.TimeZone = new("Etc/GMT-13") }, time.Second, false},
		"its first time in the zone": {func(c *batchv1.CronJob) {
			c.Spec.TimeZone = new("Etc/GMT-13")
		}, 24 * time.Hour, true},
		"something else, and was late": {func(c *batchv1.CronJob) {
			c.Spec.Suspend = new(false)
		}, 24 * time.Hour, true},
	} {
		now := edit
		fake := &controllertest.Fake{}
		d := fake.Deps(t, now)
		d.Now = func() time.Time { return now }
		ctl, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		edited := old.DeepCopy()
		c.change(edited)
		controllertest.Put(t, ctl.crons, edited)
		ctl.cronUpdated(old, edited)
		now = now.Add(c.after)
		if _, err := ctl.Reconcile(t.Context(), controller.KeyOf(edited)); err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(fake.Names(), "POST /apis/batch/v1/namespaces/ns/jobs"); got != c.creates {
			t.Errorf("%s: made a job: %v, want %v (%v)", name, got, c.creates, fake.Names())
		}
		if ctl.cronDeleted(edited); len(ctl.edits.at) > 0 {
			t.Errorf("%s: the edit of a deleted cron job is remembered", name)
		}
	}
}

func shown(p plan) string {
	var out []string
	for _, s := range p.says {
		out = append(out, s.reason)
	}
	for _, j := range p.replace {
		out = append(out, "replace "+j.Name)
	}
	for _, j := range p.remove {
		out = append(out, "remove "+j.Name)
	}
	if p.create != nil {
		out = append(out, "create "+p.create.Name+" "+p.create.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	} else {
		for _, r := range p.status.Active {
			if len(p.says) == 0 {
				out = append(out, "active "+r.Name)
			}
		}
	}
	if p.wait > 0 {
		out = append(out, fmt.Sprint("wait ", p.wait))
	}
	return strings.Join(out, ", ")
}
