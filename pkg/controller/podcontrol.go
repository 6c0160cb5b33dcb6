package controller

import (
	"context"
	"errors"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// PodControl creates and deletes the pods of owners. What it sends it expects to see, and each pod is an event of its owner's.
type PodControl struct {
	Pods   *Resource[*corev1.Pod]
	Expect *Expectations
	Events record.EventRecorder
}

// Change creates the pods of create, which may repeat one pod without a name, slowly at first, and deletes the victims all at
// once. It returns the first error of either.
func (c PodControl) Change(ctx context.Context, owner Object, create, victims []*corev1.Pod) error {
	uids := make([]types.UID, len(victims))
	for i, p := range victims {
		uids[i] = p.UID
	}
	key := KeyOf(owner)
	c.Expect.Expect(key, len(create), uids...)
	called, createErr := SlowStart(len(create), func(i int) error { return c.create(ctx, key, owner, create[i]) })
	c.Expect.Created(key, len(create)-called)
	var failed atomic.Bool
	deleteErr := Together(len(victims), func(i int) error { return c.delete(ctx, key, owner, victims[i], &failed) })
	return errors.Join(createErr, deleteErr)
}

func (c PodControl) create(ctx context.Context, key Key, owner Object, pod *corev1.Pod) error {
	made, err := c.Pods.Create(ctx, pod.DeepCopy()) // the encoder writes into what it encodes
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		// The namespace is going away and takes the owner along; the pod will not be missed.
		c.Expect.Created(key, 1)
		return nil
	}
	if err != nil {
		c.Expect.Created(key, 1)
		c.Events.Eventf(owner, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		return err
	}
	c.Events.Eventf(owner, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", made.Name)
	return nil
}

// delete deletes one pod. Of several failures only the first is an event.
func (c PodControl) delete(ctx context.Context, key Key, owner Object, p *corev1.Pod, failed *atomic.Bool) error {
	err := c.Pods.Delete(ctx, p.Namespace, p.Name, p.UID)
	if err == nil {
		c.Events.Eventf(owner, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", p.Name)
		return nil
	}
	c.Expect.Deleted(key, p.UID)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if !failed.Swap(true) {
		c.Events.Eventf(owner, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
	}
	return err
}
