// Package podworker gives each pod of the node one goroutine that does everything to that pod, one thing after another.
// A pod goes through the states
//
//	syncing → terminating → terminated → finished
//
// and never back. Syncing: the pod is to run, and Sync is called whenever something changed. Terminating: it is to end
// (deleted, removed, ended by itself, killed); Terminate is called until no container runs. Terminated: Cleanup frees
// what it used. Finished: the pod rests until its source removes it; then Forget removes the last traces and the worker
// ends. A pod that comes back after its removal gets a new worker when the old one has ended. Other parts that clean up
// after pods that are gone use WhenGone or WhenFinished: no worker of the pod begins meanwhile.
package podworker

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Outcome is what a Sync found.
type Outcome struct {
	// Ended: no container of the pod runs and none will; go on to terminating.
	Ended bool
	// Grace is the grace period of containers that still run then, at least leastGrace; nil: the pod's own.
	Grace *time.Duration
	// Wake is when to sync again although nothing happened; zero: not.
	Wake time.Time
}

// Steps is what workers do to pods. Every step may be called again after an error or a cancelled context and must then
// go on from where it was. Steps of one pod never run at the same time.
type Steps interface {
	// Sync moves the pod toward running. Its context ends when the pod is to terminate.
	Sync(ctx context.Context, pod *corev1.Pod) (Outcome, error)
	// Terminate ends all containers within the grace period and returns nil when none runs. Its context ends when the
	// grace period becomes shorter. The period begins with the first call; later calls get the rest of it, down to 0.
	Terminate(ctx context.Context, pod *corev1.Pod, grace time.Duration) error
	// Cleanup frees what the ended pod used, except what its logs need: users read them until the pod is deleted.
	Cleanup(ctx context.Context, pod *corev1.Pod) error
	// Finish is called after Cleanup, and again on each change of a finished pod: it deletes the API object of a
	// deleted pod.
	Finish(ctx context.Context, pod *corev1.Pod) error
	// Forget removes the last traces of a pod that is gone from all sources.
	Forget(ctx context.Context, pod *corev1.Pod) error
}

// State is where a pod is in its life.
type State int

// The states, in order.
const (
	Syncing State = iota
	Terminating
	Terminated
	Finished
)
