package client

import (
	"context"

	authnv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/core"
)

// CreatePod makes a pod: the mirror of a static one.
func (c *Client) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.pods.Create(ctx, pod)
	return err
}

// DeletePod deletes a pod.
func (c *Client) DeletePod(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error {
	return c.pods.DeleteWith(ctx, namespace, name, o)
}

// PatchPodStatus applies a strategic merge patch to a pod's status and returns the pod.
func (c *Client) PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) (*corev1.Pod, error) {
	return c.pods.Patch(ctx, namespace, name, types.StrategicMergePatchType, patch, "status")
}

// ConfigMap reads a ConfigMap.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return core.ConfigMaps(c.api).Get(ctx, namespace, name)
}

// Secret reads a Secret.
func (c *Client) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return core.Secrets(c.api).Get(ctx, namespace, name)
}

// Node reads a Node.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return c.nodes.Get(ctx, "", name)
}

// CreateNode makes a Node and returns what was stored.
func (c *Client) CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	return c.nodes.Create(ctx, node)
}

// PatchNode applies a patch to a Node, or to the subresource named, and returns the Node.
func (c *Client) PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte, subresource ...string) (*corev1.Node, error) {
	return c.nodes.Patch(ctx, "", name, kind, patch, subresource...)
}

// Lease reads a Lease.
func (c *Client) Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return c.leases.Get(ctx, namespace, name)
}

// CreateLease makes a Lease and returns what was stored.
func (c *Client) CreateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.leases.Create(ctx, l)
}

// UpdateLease replaces a Lease of which l is the newest state and returns what was stored.
func (c *Client) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.leases.Update(ctx, l)
}

// CreateToken asks for a token of a service account.
func (c *Client) CreateToken(ctx context.Context, namespace, account string, req *authnv1.TokenRequest) (*authnv1.TokenRequest, error) {
	out := &authnv1.TokenRequest{}
	return out, c.accounts.CreateSub(ctx, namespace, account, "token", req, out)
}
