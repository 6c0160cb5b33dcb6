package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
)

// name returns the container's name: that of --container, or a random one, which it shows to the user.
func (o *Options) name(pod *corev1.Pod) string {
	if o.wish.container != "" {
		return o.wish.container
	}
	name := freeName(&pod.Spec)
	o.say("Defaulting debug container name to %s.", name)
	return name
}

// inPod adds an ephemeral container to pod.
func (o *Options) inPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, string, error) {
	name := o.name(pod)
	if o.wish.target != "" {
		o.say("Targeting container %q. If you don't see processes from this container it may be because the container runtime doesn't support this feature.", o.wish.target)
	}
	want, c, err := ephemeralPod(pod, name, o.profile, &o.wish)
	if err != nil {
		return nil, "", err
	}
	o.warn(pod, c)
	patch, err := difference(pod, want)
	if err != nil {
		return nil, "", err
	}
	made, err := decode(o.client.Patch(ctx, pods.Mapping(), pod.Namespace, pod.Name, types.StrategicMergePatchType,
		patch, metav1.PatchOptions{}, "ephemeralcontainers"))
	// A 404 that names no object is about the path: the server has no subresource ephemeralcontainers.
	if status := apierrors.APIStatus(nil); apierrors.IsNotFound(err) && errors.As(err, &status) &&
		(status.Status().Details == nil || status.Status().Details.Name == "") {
		return nil, "", fmt.Errorf("ephemeral containers are disabled for this cluster (error from server: %q)", err)
	}
	return made, name, err
}

// difference is the strategic merge patch from one pod to the other.
func difference(from, to *corev1.Pod) ([]byte, error) {
	old, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	wanted, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, wanted, corev1.Pod{})
}

// inCopy makes a copy of pod, and with --replace deletes pod, without a grace period, once the copy exists. The
// returned name is "" if only images differ: then there is nothing to attach to.
func (o *Options) inCopy(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, string, error) {
	name := o.wish.container
	if name == "" && o.wish.image != "" {
		name = o.name(pod)
	}
	want, c, err := copyPod(pod, o.copyTo, name, o.profile, &o.wish, o.keep)
	if err != nil {
		return nil, "", err
	}
	if c == nil {
		name = ""
	} else {
		o.warn(pod, c)
	}
	made, err := decode(o.client.Create(ctx, pods.Mapping(), pod.Namespace, want, metav1.CreateOptions{}))
	if err != nil || !o.replace {
		return made, name, err
	}
	_, err = o.client.Delete(ctx, pods.Mapping(), pod.Namespace, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	return made, name, err
}

// onNode makes a pod on the node.
func (o *Options) onNode(ctx context.Context, node string) (*corev1.Pod, string, error) {
	want, c, err := nodePod(node, o.namespace, o.profile, &o.wish)
	if err != nil {
		return nil, "", err
	}
	o.say("Creating debugging pod %s with container %s on node %s.", want.Name, c.Name, node)
	made, err := decode(o.client.Create(ctx, pods.Mapping(), o.namespace, want, metav1.CreateOptions{}))
	return made, c.Name, err
}

func decode(u *unstructured.Unstructured, err error) (*corev1.Pod, error) {
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	return pod, resource.FromUnstructured(u, pod)
}
