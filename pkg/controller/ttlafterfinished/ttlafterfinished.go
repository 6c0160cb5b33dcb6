// Package ttlafterfinished deletes finished Jobs, and their pods, when the time that they say has passed
// (https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/).
package ttlafterfinished

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/batch"
	"bonsai/pkg/apiclient"
	batchclient "bonsai/pkg/apiclient/batch"
	"bonsai/pkg/controller"
)

// Controller deletes Jobs.
type Controller struct {
	controller.Deps
	jobs      *controller.Informer[*batchv1.Job]
	writeJobs *apiclient.Resource[*batchv1.Job]
	late      prometheus.Histogram
	loop      *controller.Loop[controller.Key]
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	c := &Controller{
		Deps: d,
		jobs: controller.InformerFor(d.Informers, batchclient.Jobs), writeJobs: batchclient.Jobs(d.Client),
		late: prometheus.NewHistogram(prometheus.HistogramOpts{
			Subsystem: "ttl_after_finished_controller", Name: "job_deletion_duration_seconds",
			Help:    "The time it took to delete the job since it became eligible for deletion",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 14),
		}),
	}
	d.Metrics.Register(c.late)
	c.loop = controller.NewLoop(
		controller.LoopConfig{Name: "ttl_jobs_to_delete", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	wake := func(j *batchv1.Job) {
		if _, ok := expiry(j); ok {
			c.loop.Add(controller.KeyOf(j))
		}
	}
	return c, controller.Watch(c.loop, c.jobs,
		controller.Handlers[*batchv1.Job]{Add: wake, Update: func(_, j *batchv1.Job) {
			wake(j)
		}})
}

// Run deletes until ctx ends.
func (c *Controller) Run(ctx context.Context) error { return c.loop.Run(ctx) }

// expiry is when a job is to go; false for one that stays, is not finished or goes already.
func expiry(j *batchv1.Job) (time.Time, bool) {
	end := batch.Finished(&j.Status)
	if j.Spec.TTLSecondsAfterFinished == nil || end == nil || j.DeletionTimestamp != nil ||
		end.LastTransitionTime.IsZero() {
		return time.Time{}, false
	}
	return end.LastTransitionTime.Add(time.Duration(*j.Spec.TTLSecondsAfterFinished) * time.Second), true
}

// Reconcile deletes the job if its time has come. It checks the time again on the server's newest state of the job,
// because a user may have extended it.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	j, ok := c.jobs.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	if left, ok := c.left(j); !ok || left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	j, err := c.writeJobs.Get(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("reading Job %s: %w", key, err)
	}
	if left, ok := c.left(j); !ok || left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	foreground := metav1.DeletePropagationForeground
	opts := metav1.DeleteOptions{PropagationPolicy: &foreground,
		Preconditions: metav1.NewUIDPreconditions(string(j.UID))}
	if err := c.writeJobs.DeleteWith(ctx, key.Namespace, key.Name, opts); err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsConflict(err) {
		return controller.Result{}, fmt.Errorf("deleting Job %s: %w", key, err)
	}
	at, _ := expiry(j)
	c.late.Observe(c.Now().Sub(at).Seconds())
	return controller.Result{}, nil
}

// left is how long the job may still stay; false is for ever.
func (c *Controller) left(j *batchv1.Job) (time.Duration, bool) {
	at, ok := expiry(j)
	if !ok {
		return 0, false
	}
	return max(at.Sub(c.Now()), 0), true
}
