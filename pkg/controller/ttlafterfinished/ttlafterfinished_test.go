package ttlafterfinished

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestExpiry: a job goes when its time since its end has passed, by the server's word, and with its pods first.
func TestExpiry(t *testing.T) {
	t.Parallel()
	end := time.Unix(1_000_000, 0)
	job := func(ttl *int32, t batchv1.JobConditionType) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "u"},
			Spec: batchv1.JobSpec{TTLSecondsAfterFinished: ttl},
			Status: batchv1.JobStatus{
				Conditions: []batchv1.JobCondition{
					{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(end)}}}}
	}
	ten, hour := new(int32(10)), new(int32(3600))
	for _, c := range []struct {
		name        string
		cached, now *batchv1.Job
		at          time.Duration
		wait        time.Duration
		deleted     bool
	}{
		{"no time", job(nil, batchv1.JobComplete), nil, time.Hour, 0, false},
		{"not finished", job(ten, batchv1.JobSuccessCriteriaMet), nil, time.Hour, 0, false},
		{"too early", job(ten, batchv1.JobComplete), nil, 4 * time.Second, 6 * time.Second, false},
		{"due", job(ten, batchv1.JobComplete), job(ten, batchv1.JobComplete), 10 * time.Second, 0, true},
		{"failed", job(new(int32(0)), batchv1.JobFailed), job(new(int32(0)), batchv1.JobFailed), 0, 0, true},
		{"put off", job(ten, batchv1.JobComplete), job(hour, batchv1.JobComplete), 10 * time.Second, 3590 * time.Second,
			false},
	} {
		fake := &controllertest.Fake{Answer: func(controllertest.Call) (runtime.Object, error) { return c.now, nil }}
		ctl, err := New(fake.Deps(t, end.Add(c.at)))
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, ctl.jobs, c.cached)
		res, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "j"})
		if err != nil || res.RequeueAfter != c.wait {
			t.Errorf("%s: wait %s, %v; want %s", c.name, res.RequeueAfter, err, c.wait)
		}
		i := slices.IndexFunc(fake.Calls(), func(call controllertest.Call) bool { return call.Method == "DELETE" })
		if (i >= 0) != c.deleted {
			t.Errorf("%s: calls %v", c.name, fake.Names())
		}
		if i < 0 {
			continue
		}
		opts, ok := fake.Calls()[i].Object.(*metav1.DeleteOptions)
		if !ok || *opts.PropagationPolicy != metav1.DeletePropagationForeground || *opts.Preconditions.UID != "u" {
			t.Errorf("%s: deleted with %+v", c.name, fake.Calls()[i].Object)
		}
	}
}
