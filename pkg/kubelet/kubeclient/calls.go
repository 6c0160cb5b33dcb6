package kubeclient

import (
	"context"

	authnv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/apiclient/storage"
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

// PersistentVolumeClaim reads a PersistentVolumeClaim.
func (c *Client) PersistentVolumeClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim,
	error) {
	return core.PersistentVolumeClaims(c.api).Get(ctx, namespace, name)
}

// PatchClaimStatus applies a strategic merge patch to a claim's status.
func (c *Client) PatchClaimStatus(ctx context.Context, namespace, name string, patch []byte) error {
	_, err := core.PersistentVolumeClaims(c.api).Patch(ctx, namespace, name, types.StrategicMergePatchType, patch,
		"status")
	return err
}

// PersistentVolume reads a PersistentVolume.
func (c *Client) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return core.PersistentVolumes(c.api).Get(ctx, "", name)
}

// CSIDriver reads a CSIDriver.
func (c *Client) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return storage.CSIDrivers(c.api).Get(ctx, "", name)
}

// VolumeAttachment reads a VolumeAttachment.
func (c *Client) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return storage.VolumeAttachments(c.api).Get(ctx, "", name)
}

// CSINode reads a CSINode.
func (c *Client) CSINode(ctx context.Context, name string) (*storagev1.CSINode, error) {
	return storage.CSINodes(c.api).Get(ctx, "", name)
}

// CreateCSINode makes a CSINode and returns what was stored.
func (c *Client) CreateCSINode(ctx context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error) {
	return storage.CSINodes(c.api).Create(ctx, n)
}

// UpdateCSINode replaces a CSINode, whose newest state is n, and returns what was stored.
func (c *Client) UpdateCSINode(ctx context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error) {
	return storage.CSINodes(c.api).Update(ctx, n)
}

// ResourceClaim reads a ResourceClaim.
func (c *Client) ResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	return resource.ResourceClaims(c.api).Get(ctx, namespace, name)
}

// DeleteResourceSlices deletes the ResourceSlices that a field selector names.
func (c *Client) DeleteResourceSlices(ctx context.Context, fields string) error {
	return resource.ResourceSlices(c.api).DeleteSelected(ctx, "", metav1.ListOptions{FieldSelector: fields})
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
func (c *Client) PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte,
	subresource ...string) (*corev1.Node, error) {
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

// UpdateLease replaces a Lease, whose newest state is l, and returns what was stored.
func (c *Client) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return c.leases.Update(ctx, l)
}

// ServiceAccount reads a ServiceAccount.
func (c *Client) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return c.accounts.Get(ctx, namespace, name)
}

// CreateToken asks for a token of a service account.
func (c *Client) CreateToken(ctx context.Context, namespace, account string,
	req *authnv1.TokenRequest) (*authnv1.TokenRequest, error) {
	out := &authnv1.TokenRequest{}
	return out, c.accounts.CreateSub(ctx, namespace, account, "token", req, out)
}
