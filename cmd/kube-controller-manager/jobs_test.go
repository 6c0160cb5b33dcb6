package main

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	jobs "bonsai/api/batch"
	"bonsai/pkg/apiclient/batch"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// jobTemplate is a pod that is to end.
func jobTemplate(labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "one"}},
	}}
}

func (w *world) makeJob(t *testing.T, ns, name string, spec batchv1.JobSpec) *batchv1.Job {
	t.Helper()
	j, err := batch.Jobs(w.Client).Create(t.Context(),
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// jobPods waits until n pods have the label and returns them.
func (w *world) jobPods(t *testing.T, ns, selector string, n int) (pods []*corev1.Pod) {
	t.Helper()
	controllertest.Eventually(t, fmt.Sprintf("%d pods of %s", n, selector), func() string {
		var err error
		if pods, err = core.Pods(w.Client).List(t.Context(), ns,
			metav1.ListOptions{LabelSelector: selector}); err != nil || len(pods) != n {
			return fmt.Sprint(len(pods), err)
		}
		return ""
	})
	return pods
}

func (w *world) succeed(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		if _, err := core.Pods(w.Client).Patch(t.Context(), p.Namespace, p.Name, types.MergePatchType,
			[]byte(`{"status":{"phase":"Succeeded"}}`), "status"); err != nil {
			t.Fatal(err)
		}
	}
}

func hasFinalizer(p *corev1.Pod) bool {
	return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
}

// jobs: an indexed job runs to its end; its time over, it goes with its pods.
func (w *world) jobs(t *testing.T) {
	ns := w.makeNamespace(t, "t-jobs")
	spec := batchv1.JobSpec{Completions: new(int32(2)), Parallelism: new(int32(2)),
		CompletionMode: new(batchv1.IndexedCompletion), Template: jobTemplate(nil)}
	w.makeJob(t, ns, "j", spec)
	pods := w.jobPods(t, ns, "batch.kubernetes.io/job-name=j", 2)
	if !hasFinalizer(pods[0]) || !hasFinalizer(pods[1]) {
		t.Errorf("pods that nobody counts: %v", pods)
	}
	w.succeed(t, pods)
	controllertest.Eventually(t, "the job's end", func() string {
		j, err := batch.Jobs(w.Client).Get(t.Context(), ns, "j")
		if err != nil || !jobs.IsTrue(&j.Status, batchv1.JobComplete) || j.Status.CompletedIndexes != "0,1" ||
			j.Status.Succeeded != 2 || j.Status.Active != 0 || j.Status.CompletionTime == nil {
			return fmt.Sprintf("%+v, %v", j.Status, err)
		}
		return ""
	})
	controllertest.Eventually(t, "counted pods that are free", func() string {
		for _, p := range w.jobPods(t, ns, "batch.kubernetes.io/job-name=j", 2) {
			if hasFinalizer(p) {
				return p.Name
			}
		}
		return ""
	})
	if _, err := batch.Jobs(w.Client).Patch(t.Context(), ns, "j", types.MergePatchType,
		[]byte(`{"spec":{"ttlSecondsAfterFinished":0}}`)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "a finished job whose time is over", func() string {
		_, err := batch.Jobs(w.Client).Get(t.Context(), ns, "j")
		if !apierrors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	w.jobPods(t, ns, "batch.kubernetes.io/job-name=j", 0)
}

// orphanedPods: pods are adopted and released with their finalizer, and lose it when their job goes without them.
func (w *world) orphanedPods(t *testing.T) {
	ns := w.makeNamespace(t, "t-job-orphans")
	labels := map[string]string{"a": "b"}
	template := jobTemplate(labels)
	if _, err := core.Pods(w.Client).Create(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orphan", Labels: labels},
			Spec: template.Spec}); err != nil {
		t.Fatal(err)
	}
	w.makeJob(t, ns, "j", batchv1.JobSpec{Parallelism: new(int32(2)), Completions: new(int32(2)),
		ManualSelector: new(true), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template})
	state := func(name string, owned, tracked bool) func() string {
		return func() string {
			p, err := core.Pods(w.Client).Get(t.Context(), ns, name)
			if err != nil || (metav1.GetControllerOf(p) != nil) != owned || hasFinalizer(p) != tracked {
				return fmt.Sprint(p.ObjectMeta, err)
			}
			return ""
		}
	}
	controllertest.Eventually(t, "adoption", state("orphan", true, true))
	pods := w.jobPods(t, ns, "a=b", 2)
	if _, err := core.Pods(w.Client).Patch(t.Context(), ns, "orphan", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"a":"c"}}}`)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "release", state("orphan", false, false))
	other := pods[slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p.Name != "orphan" })].Name
	if err := batch.Jobs(w.Client).DeleteWith(t.Context(), ns, "j",
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "a pod without its job", state(other, false, false))
}

// cronJobs: a job is made when it is due, is listed while it runs, and its success is noted.
func (w *world) cronJobs(t *testing.T) {
	ns := w.makeNamespace(t, "t-cron")
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "c"}, Spec: batchv1.CronJobSpec{
		Schedule: "@every 1s", ConcurrencyPolicy: batchv1.ForbidConcurrent,
		JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"l": "m"}},
			Spec: batchv1.JobSpec{Template: jobTemplate(map[string]string{"cron": "c"})}},
	}}
	if _, err := batch.CronJobs(w.Client).Create(t.Context(), cron); err != nil {
		t.Fatal(err)
	}
	pods := w.jobPods(t, ns, "cron=c", 1)
	all, err := batch.Jobs(w.Client).List(t.Context(), ns, metav1.ListOptions{LabelSelector: "l=m"})
	if err != nil || len(all) != 1 || all[0].Annotations[batchv1.CronJobScheduledTimestampAnnotation] == "" ||
		metav1.GetControllerOf(all[0]) == nil {
		t.Fatalf("jobs %+v, %v", all, err)
	}
	controllertest.Eventually(t, "the running job", func() string {
		c, err := batch.CronJobs(w.Client).Get(t.Context(), ns, "c")
		if err != nil || len(c.Status.Active) != 1 || c.Status.Active[0].Name != all[0].Name ||
			c.Status.LastScheduleTime == nil {
			return fmt.Sprintf("%+v, %v", c.Status, err)
		}
		return ""
	})
	if _, err := batch.CronJobs(w.Client).Patch(t.Context(), ns, "c", types.MergePatchType,
		[]byte(`{"spec":{"suspend":true}}`)); err != nil {
		t.Fatal(err)
	}
	w.succeed(t, pods)
	controllertest.Eventually(t, "the job's success", func() string {
		c, err := batch.CronJobs(w.Client).Get(t.Context(), ns, "c")
		if err != nil || len(c.Status.Active) != 0 || c.Status.LastSuccessfulTime == nil {
			return fmt.Sprintf("%+v, %v", c.Status, err)
		}
		return ""
	})
}
