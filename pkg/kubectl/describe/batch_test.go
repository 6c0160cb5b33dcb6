package describe

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBatch: jobs and cron jobs as kubectl v1.36.3 describes them.
func TestBatch(t *testing.T) {
	t.Parallel()
	start := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	end := metav1.NewTime(start.Add(time.Hour))
	got := shown(t, func(d *describer) error {
		return job(d, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns"}, Spec: batchv1.JobSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Parallelism: new(int32(2)),
			CompletionMode: new(batchv1.IndexedCompletion),
			Suspend:        new(false), BackoffLimit: new(int32(3)), TTLSecondsAfterFinished: new(int32(100)),
			ActiveDeadlineSeconds: new(int64(50)),
		}, Status: batchv1.JobStatus{StartTime: &start, CompletionTime: &end, Succeeded: 1, Ready: new(int32(0)),
			CompletedIndexes: strings.Repeat("1,3-5,", 10) + "7"}})
	})
	want := `Name:                        j
Namespace:                   ns
Selector:                    a=b
Labels:                      <none>
Annotations:                 <none>
Parallelism:                 2
Completions:                 <unset>
Completion Mode:             Indexed
Suspend:                     false
Backoff Limit:               3
TTL Seconds After Finished:  100
Start Time:                  Thu, 01 Jan 2026 00:00:00 +0000
Completed At:                Thu, 01 Jan 2026 01:00:00 +0000
Duration:                    60m
Active Deadline Seconds:     50s
Pods Statuses:               0 Active (0 Ready) / 1 Succeeded / 0 Failed
Completed Indexes:           1,3-5,1,3-5,1,3-5,1,3-5,1,3-5,1,3-5,1,3-5,1,3-5,1,...
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("job:\n%s\nwant:\n%s", got, want)
	}
	got = shown(t, func(d *describer) error {
		return cronJob(d, &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"},
			Spec: batchv1.CronJobSpec{
				Schedule: "@daily", ConcurrencyPolicy: batchv1.AllowConcurrent,
				SuccessfulJobsHistoryLimit: new(int32(3)),
				StartingDeadlineSeconds:    new(int64(7)),
				JobTemplate:                batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Completions: new(int32(3))}},
			}, Status: batchv1.CronJobStatus{LastScheduleTime: &start,
				Active: []corev1.ObjectReference{{Name: "x"}, {Name: "y"}}}})
	})
	for _, want := range []string{`Name:                          c
Namespace:                     ns
Labels:                        <none>
Annotations:                   <none>
Schedule:                      @daily
Concurrency Policy:            Allow
Suspend:                       False
Time Zone:                     <unset>
Successful Job History Limit:  3
Failed Job History Limit:      <unset>
Starting Deadline Seconds:     7s
Selector:                      <unset>
Parallelism:                   <unset>
Completions:                   3
Pod Template:
`, `
Last Schedule Time:  Thu, 01 Jan 2026 00:00:00 +0000
Active Jobs:         x, y
`} {
		if !strings.Contains(got, want) {
			t.Errorf("cron job:\n%s\nwant:\n%s", got, want)
		}
	}
}
