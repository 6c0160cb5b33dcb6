package job

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/batch"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
)

// podSeen looks after a pod that keeps its finalizer although no job counts it any more.
//
// The goroutine that delivers events calls it. It reads caches only and may be wrong about the job: Release decides.
func (c *Controller) podSeen(p *corev1.Pod) {
	if !tracked(p) {
		return
	}
	key, uid, ok := owned.ControllerKey(p, kind())
	if ok {
		if j, here := c.jobs.Get(key); here && j.UID == uid && counts(j) {
			return
		}
	}
	c.orphans.Add(controller.KeyOf(p))
}

// counts reports whether the job's controller still counts its pods. The job of an external controller always does: its
// finalizers are not ours to take, even when the job is finished.
func counts(j *batchv1.Job) bool { return external(j) || batch.Finished(&j.Status) == nil }

func (c *Controller) jobSeen(j *batchv1.Job) {
	c.metrics.found(j)
	c.jobEnded(j)
}

// jobEnded looks for pods that kept their finalizer past the end of their job.
func (c *Controller) jobEnded(j *batchv1.Job) {
	if !counts(j) {
		c.jobPods(j)
	}
}

// jobGone is for a deleted job. Its pods may go with it, or stay as orphans: either way nobody counts them.
func (c *Controller) jobGone(j *batchv1.Job) {
	c.forget(j.UID)
	c.jobPods(j)
}

func (c *Controller) jobPods(j *batchv1.Job) {
	for _, p := range c.pods.OwnedBy(j.UID) {
		c.podSeen(p)
	}
}

// Release takes the finalizer off a pod that no job counts. That a job is gone is asked of the server, as the caches of
// pods and of jobs are not filled in step.
func (c *Controller) Release(ctx context.Context, key controller.Key) (controller.Result, error) {
	p, ok := c.pods.Get(key)
	if !ok || !tracked(p) {
		return controller.Result{}, nil
	}
	if owner, uid, ok := owned.ControllerKey(p, kind()); ok {
		j, here := c.jobs.Get(owner)
		if !here || j.UID != uid {
			var err error
			if j, here, err = c.jobs.Live(ctx, owner); err != nil {
				return controller.Result{}, err
			}
		}
		if here && j.UID == uid && counts(j) {
			return controller.Result{}, nil
		}
	} else if owner := ownerOfOther(p); owner {
		return controller.Result{}, nil
	}
	return controller.Result{}, c.untrack(ctx, p, false)
}

// ownerOfOther reports whether a controller of another kind has the pod, and what it does with the finalizer is its own
// affair.
func ownerOfOther(p *corev1.Pod) bool {
	for _, ref := range p.OwnerReferences {
		if deref(ref.Controller) {
			return true
		}
	}
	return false
}
