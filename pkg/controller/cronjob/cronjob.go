// Package cronjob makes the jobs of each CronJob when they are due
// (https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/). What is due (dueAt) and what is done about it
// (decide) are pure functions of one state. A job's name follows from the time that it is for, so that no time gets
// two, whatever is lost.
//
// Kubernetes' rules that shape it: a job is started at most once for each time; startingDeadlineSeconds bounds how
// late; missed times do not pile up, only the latest is made up for.
package cronjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient"
	batchclient "bonsai/pkg/apiclient/batch"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
)

func kind() schema.GroupVersionKind { return batchv1.SchemeGroupVersion.WithKind("CronJob") }

// Controller reconciles CronJobs.
//
// edits locks itself: handlers write it, workers read it.
type Controller struct {
	controller.Deps
	crons      *controller.Informer[*batchv1.CronJob]
	jobs       *controller.Informer[*batchv1.Job]
	writeCrons *apiclient.Resource[*batchv1.CronJob]
	writeJobs  *apiclient.Resource[*batchv1.Job]
	loop       *controller.Loop[controller.Key]
	metrics    *metrics
	edits      edits
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps:  d,
		crons: controller.InformerFor(d.Informers, batchclient.CronJobs), writeCrons: batchclient.CronJobs(d.Client),
		jobs: controller.InformerFor(d.Informers, batchclient.Jobs), writeJobs: batchclient.Jobs(d.Client),
		metrics: newMetrics(d.Metrics), edits: edits{at: map[types.UID]time.Time{}},
	}
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "cronjob", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics}, c.Reconcile)
	return c, errors.Join(
		controller.Watch(c.loop, c.crons,
			controller.Handlers[*batchv1.CronJob]{Add: c.wake, Update: c.cronUpdated, Delete: c.cronDeleted}),
		controller.Watch(c.loop, c.jobs, controller.All(c.ownerOf)),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

func (c *Controller) wake(cron *batchv1.CronJob) { c.loop.Add(controller.KeyOf(cron)) }

// cronUpdated notes when a schedule changed. The goroutine of the watch calls it before the key is queued, so that the
// worker sees the note.
func (c *Controller) cronUpdated(old, cron *batchv1.CronJob) {
	if old.UID == cron.UID && !sameTimes(old, cron) {
		c.edits.note(cron.UID, c.Now())
	}
	c.wake(cron)
}

func (c *Controller) cronDeleted(cron *batchv1.CronJob) {
	c.edits.forget(cron.UID)
	c.wake(cron)
}

func (c *Controller) ownerOf(j *batchv1.Job) {
	if key, _, ok := owned.ControllerKey(j, kind()); ok {
		c.loop.Add(key)
	}
}

// Reconcile makes the job that is due, and tidies up after those that have ended.
//
// A worker of the loop calls it. It comes back by itself when the next time is due; no timer is kept per CronJob.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	cron, ok := c.crons.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	s := &state{cron: cron, jobs: c.jobs.OwnedBy(cron.UID), now: c.Now(), edited: c.edits.last(cron.UID)}
	if err := c.confirm(ctx, s); err != nil {
		return controller.Result{}, err
	}
	todo := s.decide()
	for _, e := range todo.says {
		c.Events.Event(cron, e.kind, e.reason, e.message)
	}
	err := c.carryOut(ctx, s, &todo)
	return controller.Result{RequeueAfter: todo.wait}, err
}

// confirm asks the server for active jobs that the cache of jobs does not have, and adds them: that cache may be older
// than the one of cron jobs. Taken for missing they would leave the list, and Forbid would start a second one. It costs
// one request for each such job, at most as many as status.active has.
func (c *Controller) confirm(ctx context.Context, s *state) error {
	known := map[types.UID]bool{}
	for _, j := range s.jobs {
		known[j.UID] = true
	}
	s.here = map[types.UID]bool{}
	for _, r := range s.cron.Status.Active {
		if known[r.UID] {
			continue
		}
		j, err := c.writeJobs.Get(ctx, s.cron.Namespace, r.Name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for Job %s/%s: %w", s.cron.Namespace, r.Name, err)
		}
		switch {
		case j.UID != r.UID:
		case metav1.IsControlledBy(j, s.cron):
			s.jobs = append(s.jobs, j)
		default:
			s.here[r.UID] = true
		}
	}
	return nil
}

// carryOut deletes and creates jobs, and stores the status. With the policy Replace the old jobs are deleted first; if
// that fails none is created, or two would run. The status is stored in any case: it tells what is already done.
func (c *Controller) carryOut(ctx context.Context, s *state, todo *plan) error {
	var errs []error
	for _, j := range append(todo.remove, todo.replace...) {
		errs = append(errs, c.remove(ctx, s.cron, j))
	}
	err := errors.Join(errs...)
	if todo.create != nil && err == nil {
		err = c.create(ctx, s, todo)
	}
	return errors.Join(err, c.store(ctx, s.cron, &todo.status))
}

// remove deletes a job and, in the background, its pods. The uid spares a new job of the same name.
func (c *Controller) remove(ctx context.Context, cron *batchv1.CronJob, j *batchv1.Job) error {
	background := metav1.DeletePropagationBackground
	err := c.writeJobs.DeleteWith(ctx, j.Namespace, j.Name,
		metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: metav1.NewUIDPreconditions(string(j.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		c.Events.Eventf(cron, corev1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		return fmt.Errorf("deleting Job %s/%s: %w", j.Namespace, j.Name, err)
	}
	c.Events.Eventf(cron, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted job %v", j.Name)
	return nil
}

// create makes the job and notes it. If the name exists, an earlier round made the job. If that job belongs to another
// owner, this time has no job.
//
// The name is the guard: it follows from the time. Its existence means that an earlier try of this controller, or of
// one before it, was carried out although the answer was lost.
func (c *Controller) create(ctx context.Context, s *state, todo *plan) error {
	made, err := c.writeJobs.Create(ctx, todo.create)
	switch {
	case apierrors.IsAlreadyExists(err):
		if made, err = c.writeJobs.Get(ctx, todo.create.Namespace, todo.create.Name); err != nil {
			return fmt.Errorf("reading Job %s/%s: %w", todo.create.Namespace, todo.create.Name, err)
		}
		if ref := metav1.GetControllerOfNoCopy(made); ref == nil || ref.UID != s.cron.UID {
			c.Events.Eventf(s.cron, corev1.EventTypeWarning, "FailedCreate",
				"Error creating job: job with name %s already exists", made.Name)
			return nil
		}
	case controller.NamespaceEnding(err):
		return err
	case err != nil:
		c.Events.Eventf(s.cron, corev1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
		return fmt.Errorf("creating Job %s/%s: %w", todo.create.Namespace, todo.create.Name, err)
	default:
		c.metrics.created(c.Now().Sub(todo.at))
		c.Events.Eventf(s.cron, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", made.Name)
	}
	if !finished(made) {
		list(&todo.status, made)
	}
	s.note(&todo.status, todo.at)
	return nil
}

// store writes the status if it is news.
func (c *Controller) store(ctx context.Context, cron *batchv1.CronJob, status *batchv1.CronJobStatus) error {
	if equality.Semantic.DeepEqual(&cron.Status, status) {
		return nil
	}
	cron = cron.DeepCopy()
	cron.Status = *status
	if _, err := c.writeCrons.UpdateStatus(ctx, cron); err != nil {
		return fmt.Errorf("updating the status of CronJob %s/%s: %w", cron.Namespace, cron.Name, err)
	}
	return nil
}
