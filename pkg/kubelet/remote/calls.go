package remote

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
func (a *API) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := a.pods.Create(ctx, pod)
	return err
}

// DeletePod deletes a pod.
func (a *API) DeletePod(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error {
	return a.pods.DeleteWith(ctx, namespace, name, o)
}

// PatchPodStatus applies a strategic merge patch to a pod's status and returns the pod.
func (a *API) PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) (*corev1.Pod, error) {
	return a.pods.Patch(ctx, namespace, name, types.StrategicMergePatchType, patch, "status")
}

// ConfigMap reads a ConfigMap.
func (a *API) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return core.ConfigMaps(a.api).Get(ctx, namespace, name)
}

// Secret reads a Secret.
func (a *API) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return core.Secrets(a.api).Get(ctx, namespace, name)
}

// PersistentVolumeClaim reads a PersistentVolumeClaim.
func (a *API) PersistentVolumeClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return core.PersistentVolumeClaims(a.api).Get(ctx, namespace, name)
}

// PatchClaimStatus applies a strategic merge patch to a claim's status.
func (a *API) PatchClaimStatus(ctx context.Context, namespace, name string, patch []byte) error {
	_, err := core.PersistentVolumeClaims(a.api).Patch(ctx, namespace, name, types.StrategicMergePatchType, patch, "status")
	return err
}

// PersistentVolume reads a PersistentVolume.
func (a *API) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return core.PersistentVolumes(a.api).Get(ctx, "", name)
}

// CSIDriver reads a CSIDriver.
func (a *API) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return storage.CSIDrivers(a.api).Get(ctx, "", name)
}

// VolumeAttachment reads a VolumeAttachment.
func (a *API) VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	return storage.VolumeAttachments(a.api).Get(ctx, "", name)
}

// CSINode reads a CSINode.
func (a *API) CSINode(ctx context.Context, name string) (*storagev1.CSINode, error) {
	return storage.CSINodes(a.api).Get(ctx, "", name)
}

// CreateCSINode makes a CSINode and returns what was stored.
func (a *API) CreateCSINode(ctx context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error) {
	return storage.CSINodes(a.api).Create(ctx, n)
}

// UpdateCSINode replaces a CSINode of which n is the newest state and returns what was stored.
func (a *API) UpdateCSINode(ctx context.Context, n *storagev1.CSINode) (*storagev1.CSINode, error) {
	return storage.CSINodes(a.api).Update(ctx, n)
}

// ResourceClaim reads a ResourceClaim.
func (a *API) ResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	return resource.ResourceClaims(a.api).Get(ctx, namespace, name)
}

// DeleteResourceSlices deletes the ResourceSlices that a field selector names.
func (a *API) DeleteResourceSlices(ctx context.Context, fields string) error {
	return resource.ResourceSlices(a.api).DeleteSelected(ctx, "", metav1.ListOptions{FieldSelector: fields})
}

// Node reads a Node.
func (a *API) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return a.nodes.Get(ctx, "", name)
}

// CreateNode makes a Node and returns what was stored.
func (a *API) CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	return a.nodes.Create(ctx, node)
}

// PatchNode applies a patch to a Node, or to the subresource named, and returns the Node.
func (a *API) PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte, subresource ...string) (*corev1.Node, error) {
	return a.nodes.Patch(ctx, "", name, kind, patch, subresource...)
}

// Lease reads a Lease.
func (a *API) Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	return a.leases.Get(ctx, namespace, name)
}

// CreateLease makes a Lease and returns what was stored.
func (a *API) CreateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return a.leases.Create(ctx, l)
}

// UpdateLease replaces a Lease of which l is the newest state and returns what was stored.
func (a *API) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return a.leases.Update(ctx, l)
}

// ServiceAccount reads a ServiceAccount.
func (a *API) ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	return a.accounts.Get(ctx, namespace, name)
}

// CreateToken asks for a token of a service account.
func (a *API) CreateToken(ctx context.Context, namespace, account string, req *authnv1.TokenRequest) (*authnv1.TokenRequest, error) {
	out := &authnv1.TokenRequest{}
	return out, a.accounts.CreateSub(ctx, namespace, account, "token", req, out)
}
