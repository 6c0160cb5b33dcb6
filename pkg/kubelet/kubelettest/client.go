// Package kubelettest lets the tests of the kubelet's parts use client-go's fake API server in place of the API server
// as the kubelet sees it.
package kubelettest

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Client has the methods of remote.API on any clientset.
type Client struct{ kubernetes.Interface }

// Objects lists and watches configmaps, secrets or nodes.
func (c Client) Objects(resource, namespace, field string) cache.ListerWatcher {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = field
			switch resource {
			case "configmaps":
				return c.CoreV1().ConfigMaps(namespace).List(ctx, o)
			case "secrets":
				return c.CoreV1().Secrets(namespace).List(ctx, o)
			case "nodes":
				return c.CoreV1().Nodes().List(ctx, o)
			}
			return nil, fmt.Errorf("no list of %s", resource)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = field
			switch resource {
			case "configmaps":
				return c.CoreV1().ConfigMaps(namespace).Watch(ctx, o)
			case "secrets":
				return c.CoreV1().Secrets(namespace).Watch(ctx, o)
			case "nodes":
				return c.CoreV1().Nodes().Watch(ctx, o)
			}
			return nil, fmt.Errorf("no watch of %s", resource)
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(lw, c.Interface)
}

// TrustBundles lists and watches ClusterTrustBundles.
func (c Client) TrustBundles() cache.ListerWatcher {
	bundles := c.CertificatesV1().ClusterTrustBundles()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return bundles.List(ctx, o)
		},
		WatchFuncWithContext: bundles.Watch,
	}, c.Interface)
}

// CreatePod makes a pod.
func (c Client) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// DeletePod deletes a pod.
func (c Client) DeletePod(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error {
	return c.CoreV1().Pods(namespace).Delete(ctx, name, o)
}

// PatchPodStatus patches a pod's status.
func (c Client) PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) (*corev1.Pod, error) {
	return c.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
		"status")
}

// ConfigMap reads a ConfigMap.
func (c Client) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return c.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Secret reads a Secret.
func (c Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return c.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Node reads a Node.
func (c Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

// CreateNode makes a Node.
func (c Client) CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	return c.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
}

// PatchNode patches a Node.
func (c Client) PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte,
	subresource ...string) (*corev1.Node, error) {
	return c.CoreV1().Nodes().Patch(ctx, name, kind, patch, metav1.PatchOptions{}, subresource...)
}

// Lease reads a Lease.
func (c Client) Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return c.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
}

// CreateLease makes a Lease.
func (c Client) CreateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.CoordinationV1().Leases(l.Namespace).Create(ctx, l, metav1.CreateOptions{})
}

// UpdateLease replaces a Lease.
func (c Client) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.CoordinationV1().Leases(l.Namespace).Update(ctx, l, metav1.UpdateOptions{})
}
