package drain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

const (
	// parallel bounds how many pods are moved at once.
	parallel = 50
	// evictAgain is the time between two tries of an eviction that a disruption budget refuses.
	evictAgain = 5 * time.Second
)

// removeAll evicts or deletes the pods, at most parallel of them at a time, and waits until they are gone. --timeout
// bounds all of them together.
func (o *Options) removeAll(ctx context.Context, move []corev1.Pod) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	var mu sync.Mutex // guards errs and the output
	var errs []error
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i := range move {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := o.remove(ctx, &move[i], &mu); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return utilerrors.NewAggregate(errs)
}

// remove moves one pod away; mu guards the output.
func (o *Options) remove(ctx context.Context, pod *corev1.Pod, mu *sync.Mutex) error {
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(o.Out, format, args...)
	}
	result := "deleted"
	if !o.disableEviction {
		result = "evicted"
		say("evicting pod %s/%s%s\n", pod.Namespace, pod.Name, o.Suffix())
	}
	if o.DryRun == write.DryRunClient {
		return nil
	}
	var err error
	if o.disableEviction {
		_, err = o.Client.Delete(ctx, pods.Mapping(), pod.Namespace, pod.Name, o.deleteOptions())
	} else {
		err = o.evict(ctx, pod, mu)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("error when evicting pods/%q -n %q: %w", pod.Name, pod.Namespace, err)
	case o.DryRun != write.DryRunNone:
		return nil
	}
	if err := o.awaitEnd(ctx, pod); err != nil {
		return fmt.Errorf("error when waiting for pod %q in namespace %q to terminate: %w", pod.Name, pod.Namespace,
			err)
	}
	say("pod/%s %s\n", pod.Name, result)
	return nil
}

// errLeft ends the wait for a pod that --skip-wait-for-delete-timeout gives up; it is not shown to the user.
var errLeft = errors.New("the pod's time to terminate is over")

// awaitEnd waits until the pod is gone, or until --skip-wait-for-delete-timeout seconds after its deletion timestamp,
// when it should have been gone. Another pod of the same name, with another UID, counts as gone.
func (o *Options) awaitEnd(ctx context.Context, pod *corev1.Pod) error {
	waiting, left := context.WithCancelCause(ctx)
	defer left(nil)
	err := write.Await(waiting, o.Client, pods.Mapping(), pod.Namespace, pod.Name, 0,
		func(u *unstructured.Unstructured) (bool, error) {
			if u == nil || u.GetUID() != pod.UID {
				return true, nil
			}
			if end := u.GetDeletionTimestamp(); end != nil && o.skipDeleted > 0 {
				// Every event starts a timer. The first one that fires ends the wait; later ones change nothing.
				time.AfterFunc(time.Until(end.Add(time.Duration(o.skipDeleted)*time.Second)), func() { left(errLeft) })
			}
			return false, nil
		})
	if errors.Is(context.Cause(waiting), errLeft) {
		return nil
	}
	return err
}

// evict requests the pod's eviction until no disruption budget refuses it. In a namespace that is being deleted nothing
// can be evicted, but its pods are deleted anyway: once the pod's deletion has begun, evict returns, and the caller
// waits for its end.
func (o *Options) evict(ctx context.Context, pod *corev1.Pod, mu *sync.Mutex) error {
	opts := o.deleteOptions()
	eviction := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{Kind: "Eviction", APIVersion: "policy/v1"},
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &opts,
	}
	for {
		_, err := o.Client.Post(ctx, pods.Mapping(), pod.Namespace, pod.Name, "eviction", eviction,
			metav1.CreateOptions{})
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			now, getErr := pods.Get(ctx, o.Client, pod.Namespace, pod.Name)
			if apierrors.IsNotFound(getErr) || getErr == nil && (now.DeletionTimestamp != nil || now.UID != pod.UID) {
				return getErr
			}
		case !apierrors.IsTooManyRequests(err):
			return err
		}
		mu.Lock()
		fmt.Fprintf(o.ErrOut, "error when evicting pods/%q -n %q (will retry after %v): %v\n", pod.Name, pod.Namespace,
			evictAgain, err)
		mu.Unlock()
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("global timeout reached: %v", o.timeout)
			}
			return ctx.Err()
		case <-time.After(evictAgain):
		}
	}
}

// deleteOptions are the options of deletions and evictions: a negative --grace-period leaves the pod its own.
func (o *Options) deleteOptions() metav1.DeleteOptions {
	opts := metav1.DeleteOptions{DryRun: resource.DryRun(o.DryRun == write.DryRunServer)}
	if o.grace >= 0 {
		opts.GracePeriodSeconds = new(int64(o.grace))
	}
	return opts
}
