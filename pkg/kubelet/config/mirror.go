package config

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Client is the API server as mirror pods need it.
type Client interface {
	CreatePod(ctx context.Context, pod *corev1.Pod) error
	DeletePod(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error
}

// Mirror is the object that shows a static pod. It is owned by the node, so that it goes with it.
func Mirror(pod *corev1.Pod, node *corev1.Node) *corev1.Pod {
	m := pod.DeepCopy()
	m.ObjectMeta = metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: m.Labels, Annotations: m.Annotations}
	m.Annotations[runtime.AnnotationConfigMirror] = pod.Annotations[runtime.AnnotationConfigHash]
	m.Status = corev1.PodStatus{}
	if node != nil {
		yes := true
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &yes}}
	}
	return m
}

// Matches tells whether a mirror shows this version of the static pod.
func Matches(mirror, pod *corev1.Pod) bool {
	return mirror.DeletionTimestamp == nil && mirror.Annotations[runtime.AnnotationConfigMirror] == pod.Annotations[runtime.AnnotationConfigHash]
}

// EnsureMirror makes the mirror of a static pod, and replaces one that shows another version. mirror is the one known, or nil.
func EnsureMirror(ctx context.Context, client Client, pod, mirror *corev1.Pod, node *corev1.Node) error {
	if mirror != nil {
		if Matches(mirror, pod) {
			return nil
		}
		if err := DeleteMirror(ctx, client, mirror); err != nil {
			return err
		}
	}
	err := client.CreatePod(ctx, Mirror(pod, node))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the mirror pod of %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// DeleteMirror removes a mirror pod; one that is gone is no error.
func DeleteMirror(ctx context.Context, client Client, mirror *corev1.Pod) error {
	zero := int64(0)
	err := client.DeletePod(ctx, mirror.Namespace, mirror.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &mirror.UID}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the mirror pod %s/%s: %w", mirror.Namespace, mirror.Name, err)
	}
	return nil
}
