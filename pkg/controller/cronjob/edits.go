package cronjob

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// edits are when the schedules of cron jobs were changed last. They are lost with the controller: after a restart a new
// schedule may start a job for a time before it was set, as in Kubernetes.
//
// It has one entry for each CronJob whose schedule was changed since the start; deletion drops it.
type edits struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

// sameTimes reports whether two states of a cron job run at the same times.
func sameTimes(a, b *batchv1.CronJob) bool {
	return a.Spec.Schedule == b.Spec.Schedule && equality.Semantic.DeepEqual(a.Spec.TimeZone, b.Spec.TimeZone)
}

func (e *edits) note(cron types.UID, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at[cron] = now
}

func (e *edits) forget(cron types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.at, cron)
}

func (e *edits) last(cron types.UID) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at[cron]
}
