// Package cm (container manager, in upstream's words) gives each pod what it must have of the node before its containers start, tells what of it
// goes into the sandbox and into each container, and takes it back when the pod has ended: one Provider for each kind of thing.
package cm

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Provider has one kind of thing that pods are given, as their cgroup. For each pod it is called in this order,
//
//	Prepare    before the pod's sandbox is made
//	Sandbox    when the sandbox is made
//	Container  when a container is made
//	Unprepare  when the pod's containers and its sandbox have ended
//
// Prepare comes again with every new sandbox, after an error, and after a restart of the kubelet while containers use what the pod has: it
// gives the same again. Sandbox and Container come only after a Prepare of the same kubelet that went well. Unprepare may come without
// Prepare, from a kubelet that has never seen the pod, and again. So what a Provider must know of a pod after a restart it keeps on the
// disk, or the kernel does.
//
// Calls for different pods come at the same time, those for one pod one after the other. The tests of the contract are in cmtest.
type Provider interface {
	// FailedReason is the reason of the event that tells users of a Prepare that failed.
	FailedReason() string
	// Prepare gives a pod what it shall have. The error is the event's message, and the pod is prepared again later.
	Prepare(ctx context.Context, pod *corev1.Pod) error
	// Sandbox adds to o what the pod's sandbox is to be made with.
	Sandbox(pod *corev1.Pod, o *runtime.SandboxOptions)
	// Container adds to o what a container of the pod is to be made with. The error is the user's to fix.
	Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error
	// Unprepare takes back what the pod has. A pod that has nothing is fine.
	Unprepare(ctx context.Context, uid types.UID) error
	// Prepared are the pods that have something, whoever gave it to them.
	Prepared() ([]types.UID, error)
}
