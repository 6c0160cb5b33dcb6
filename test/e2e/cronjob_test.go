package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestCronJob: a job at each full minute, told by its annotation and made within seconds, whose pod completes; the
// history is cut.
func TestCronJob(t *testing.T) {
	isLong(t)
	t.Parallel()
	k := newNamespace(t, "kubectl", "cron")
	k.apply(`
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "* * * * *"
  successfulJobsHistoryLimit: 1
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: "localhost/busybox:1.0", command: [echo, tick]}]
`)
	// next waits for the complete job of another minute than the one before, and returns that minute and how late the
	// job was made.
	next := func(before time.Time) (minute time.Time, late time.Duration) {
		k.eventually("the job of another minute", func(out string) bool {
			for line := range strings.Lines(out) {
				f := strings.Fields(line)
				if len(f) != 3 || f[2] != "True" {
					continue
				}
				scheduled, err := time.Parse(time.RFC3339, f[0])
				made, err2 := time.Parse(time.RFC3339, f[1])
				if err != nil || err2 != nil {
					t.Fatal(line, err, err2)
				}
				if scheduled.After(before) {
					minute, late = scheduled, made.Sub(scheduled)
					return true
				}
			}
			return false
		}, "get", "jobs", "-o", `jsonpath={range .items[*]}{.metadata.annotations.batch\.kubernetes\.io/cronjob-scheduled-timestamp} {.metadata.creationTimestamp} {.status.conditions[?(@.type=="Complete")].status}{"\n"}{end}`)
		return minute, late
	}
	first, late := next(time.Time{})
	second, later := next(first)
	if first.Second() != 0 || second.Sub(first) != time.Minute {
		t.Errorf("jobs of %s and %s", first, second)
	}
	if late > 10*time.Second || later > 10*time.Second {
		t.Errorf("they were made %s and %s late", late, later)
	}
	k.eventually("the history cut", func(out string) bool {
		return len(strings.Fields(out)) == 1
	}, "get", "jobs", "-o", "name")
}
