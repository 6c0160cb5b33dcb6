package client

import (
	"context"

	authnv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// CreatePod makes a pod: the mirror of a static one.
func (c *Client) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	return c.core.Post().Namespace(pod.Namespace).Resource("pods").Body(pod).Do(ctx).Error()
}

// DeletePod deletes a pod.
func (c *Client) DeletePod(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error {
	return c.core.Delete().Namespace(namespace).Resource("pods").Name(name).Body(&o).Do(ctx).Error()
}

// PatchPodStatus applies a strategic merge patch to a pod's status and returns the pod.
func (c *Client) PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) (*corev1.Pod, error) {
	out := &corev1.Pod{}
	return out, c.core.Patch(types.StrategicMergePatchType).Namespace(namespace).Resource("pods").Name(name).SubResource("status").Body(patch).Do(ctx).Into(out)
}

// ConfigMap reads a ConfigMap.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	out := &corev1.ConfigMap{}
	return out, c.core.Get().Namespace(namespace).Resource("configmaps").Name(name).Do(ctx).Into(out)
}

// Secret reads a Secret.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	out := &corev1.Secret{}
	return out, c.core.Get().Namespace(namespace).Resource("secrets").Name(name).Do(ctx).Into(out)
}

// Node reads a Node.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	out := &corev1.Node{}
	return out, c.core.Get().Resource("nodes").Name(name).Do(ctx).Into(out)
}

// CreateNode makes a Node and returns what was stored.
func (c *Client) CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	out := &corev1.Node{}
	return out, c.core.Post().Resource("nodes").Body(node).Do(ctx).Into(out)
}

// PatchNode applies a patch to a Node, or to the subresource named, and returns the Node.
func (c *Client) PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte, subresource ...string) (*corev1.Node, error) {
	out := &corev1.Node{}
	return out, c.core.Patch(kind).Resource("nodes").Name(name).SubResource(subresource...).Body(patch).Do(ctx).Into(out)
}

// Lease reads a Lease.
func (c *Client) Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	return out, c.leases.Get().Namespace(namespace).Resource("leases").Name(name).Do(ctx).Into(out)
}

// CreateLease makes a Lease and returns what was stored.
func (c *Client) CreateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	return out, c.leases.Post().Namespace(l.Namespace).Resource("leases").Body(l).Do(ctx).Into(out)
}

// UpdateLease replaces a Lease of which l is the newest state and returns what was stored.
func (c *Client) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := &coordinationv1.Lease{}
	return out, c.leases.Put().Namespace(l.Namespace).Resource("leases").Name(l.Name).Body(l).Do(ctx).Into(out)
}

// CreateToken asks for a token of a service account.
func (c *Client) CreateToken(ctx context.Context, namespace, account string, req *authnv1.TokenRequest) (*authnv1.TokenRequest, error) {
	out := &authnv1.TokenRequest{}
	return out, c.core.Post().Namespace(namespace).Resource("serviceaccounts").Name(account).SubResource("token").Body(req).Do(ctx).Into(out)
}

// Events returns the sink of the recorder of events. Its requests end with ctx.
func (c *Client) Events(ctx context.Context) record.EventSink { return events{c, ctx} }

// events implements record.EventSink, whose calls bring no context.
type events struct {
	c   *Client
	ctx context.Context
}

// Create makes an event.
func (e events) Create(ev *corev1.Event) (*corev1.Event, error) {
	out := &corev1.Event{}
	return out, e.c.core.Post().Namespace(ev.Namespace).Resource("events").Body(ev).Do(e.ctx).Into(out)
}

// Update replaces an event.
func (e events) Update(ev *corev1.Event) (*corev1.Event, error) {
	out := &corev1.Event{}
	return out, e.c.core.Put().Namespace(ev.Namespace).Resource("events").Name(ev.Name).Body(ev).Do(e.ctx).Into(out)
}

// Patch counts an event once more.
func (e events) Patch(ev *corev1.Event, patch []byte) (*corev1.Event, error) {
	out := &corev1.Event{}
	return out, e.c.core.Patch(types.StrategicMergePatchType).Namespace(ev.Namespace).Resource("events").Name(ev.Name).Body(patch).Do(e.ctx).Into(out)
}
