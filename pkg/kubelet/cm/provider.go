// Package cm (container manager, in Kubernetes' words) gives each pod what it must have from the node before its
// containers start, adds it to the options of the sandbox and of each container, and takes it back when the pod has
// ended. Each kind of thing has a Provider.
package cm

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Provider has one kind of thing that pods are given, such as their cgroup. What it does besides taking it back, it
// shows by implementing the interfaces below. For each pod they are called in this order:
//
//	Preparer           before the pod's sandbox is made
//	SandboxProvider    when the sandbox is made
//	ContainerProvider  when a container is made
//	Unprepare          when the pod's containers and its sandbox have ended
//
// Prepare is called again with every new sandbox, after an error, and after a restart of the kubelet while containers
// use what the pod has: it must give the same again. Sandbox and Container are called only after this kubelet's Prepare
// has succeeded. Unprepare may be called without Prepare, by a kubelet that has never seen the pod, and again. So a
// Provider keeps what it must know about a pod after a restart on the disk, or the kernel does.
//
// Calls for different pods run at the same time, those for one pod one after the other. The tests of the contract are
// in cmtest.
type Provider interface {
	// Unprepare takes back what the pod has. A pod that has nothing is no error.
	Unprepare(ctx context.Context, uid types.UID) error
	// Prepared returns the pods that have something, including those of an earlier kubelet.
	Prepared() ([]types.UID, error)
}

// Preparer is a Provider that gives pods something before their sandbox is made.
type Preparer interface {
	// FailedReason is the reason of the event when Prepare fails.
	FailedReason() string
	// Prepare gives a pod what it needs. The error is the event's message, and Prepare is called again later.
	Prepare(ctx context.Context, pod *corev1.Pod) error
}

// SandboxProvider is a Provider of something that the pod's sandbox gets.
type SandboxProvider interface {
	// Sandbox adds it to the options that the pod's sandbox is made with.
	Sandbox(pod *corev1.Pod, o *runtime.SandboxOptions)
}

// ContainerProvider is a Provider of something that containers get.
type ContainerProvider interface {
	// Container adds it to the options that a container of the pod is made with. The error is the user's to fix.
	Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error
}
