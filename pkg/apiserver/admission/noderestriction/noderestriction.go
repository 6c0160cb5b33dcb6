// Package noderestriction is the admission plug-in NodeRestriction: a kubelet (user system:node:<name>) changes only
// its own Node and Lease, only the pods bound to it, and no label or taint by which pods are kept apart.
package noderestriction

import (
	"context"
	"fmt"
	"maps"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"bonsai/api/podspec"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Config is what the plug-in needs.
type Config struct {
	Pods, Nodes registry.Getter
	// Claims and Volumes lead to the drivers, CSIDrivers, that give a pod its volumes.
	Claims, Volumes, Drivers registry.Getter
	// ServiceAccounts are those that pods run as.
	ServiceAccounts registry.Getter
	// Authorizer tells for which other audiences a node may have tokens.
	Authorizer authz.Authorizer
}

type plugin struct{ cfg Config }

// New returns the plug-in.
func New(cfg Config) admission.Plugin {
	return admission.Plugin{Name: "NodeRestriction", Mutator: plugin{cfg}}
}

// Admit implements admission.Mutator, and changes nothing: a node is judged by what it asked for, before fields that it
// may not set, or that are not served, are dropped from it. Users that are no kubelets pass at once. Resources that are
// not listed are left to the Node authorizer and RBAC.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	if !a.User.InGroup(request.GroupNodes) {
		return nil
	}
	node, ok := strings.CutPrefix(a.User.Name, request.NodeUserPrefix)
	if !ok {
		return nil
	}
	if node == "" {
		return admission.Forbid(a, "could not determine node from user %q", a.User.Name)
	}
	switch a.Resource.Group + "/" + a.Resource.Resource {
	case "/pods":
		return p.pods(ctx, a, node)
	case "/nodes":
		return p.nodes(a, node)
	case "/persistentvolumeclaims":
		return claimStatus(a, node)
	case "/serviceaccounts":
		if a.Subresource == "token" {
			return p.token(ctx, a, node)
		}
	case "certificates.k8s.io/podcertificaterequests":
		return p.certificate(ctx, a, node)
	case "coordination.k8s.io/leases":
		return lease(a, node)
	case "storage.k8s.io/csinodes":
		return csiNode(a, node)
	case "resource.k8s.io/resourceslices":
		return slice(a, node)
	}
	return nil
}

func (p plugin) pods(ctx context.Context, a *admission.Attributes, node string) error {
	switch a.Subresource {
	case "":
		switch a.Operation {
		case admission.Create:
			return p.createPod(ctx, a, node)
		case admission.Delete:
			return p.boundPod(ctx, a, node, "delete")
		}
		return admission.Forbid(a, "unexpected operation %q, node %q can only create and delete mirror pods",
			a.Operation, node)
	case "status":
		return podStatus(a, node)
	case "eviction":
		if e, ok := a.Object.(*policyv1.Eviction); ok && a.Name == "" && e.Name == "" {
			return admission.Forbid(a, "could not determine pod from request data")
		}
		return p.boundPod(ctx, a, node, "evict")
	}
	return admission.Forbid(a, "unexpected pod subresource %q, only 'status' and 'eviction' are allowed", a.Subresource)
}

// createPod lets a node create mirror pods only. The API server cannot know what runs on a node without it, so a
// kubelet may show its static pods as mirror pods. Any other pod would let it run with a service account of its choice.
func (p plugin) createPod(ctx context.Context, a *admission.Attributes, node string) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; !mirror {
		return admission.Forbid(a, "pod does not have %q annotation, node %q can only create mirror pods",
			corev1.MirrorPodAnnotationKey, node)
	}
	if pod.Spec.NodeName != node {
		return admission.Forbid(a, "node %q can only create pods with spec.nodeName set to itself", node)
	}
	if err := p.owner(ctx, a, pod, node); err != nil {
		return err
	}
	return mirrorContent(a, pod, node)
}

// owner: a mirror pod belongs to its own node, and to nothing else. The owner makes the garbage collector delete the
// mirror pods of a node that is gone. The UID is compared so that they do not hang on a new node of the same name.
func (p plugin) owner(ctx context.Context, a *admission.Attributes, pod *corev1.Pod, node string) error {
	switch {
	case len(pod.OwnerReferences) == 0:
		return admission.Forbid(a, "node %q can only create pods with an owner reference set to itself", node)
	case len(pod.OwnerReferences) > 1:
		return admission.Forbid(a, "node %q can only create pods with a single owner reference set to itself", node)
	}
	for _, o := range pod.OwnerReferences {
		switch {
		case o.APIVersion != "v1" || o.Kind != "Node" || o.Name != node:
			return admission.Forbid(a, "node %q can only create pods with an owner reference set to itself", node)
		case o.Controller == nil || !*o.Controller:
			return admission.Forbid(a, "node %q can only create pods with a controller owner reference set to itself",
				node)
		case o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion:
			return admission.Forbid(a, "node %q must not set blockOwnerDeletion on an owner reference", node)
		}
		n, err := registry.Find[*corev1.Node](ctx, p.cfg.Nodes, "", node)
		if err != nil {
			return err
		}
		if n.UID != o.UID {
			return admission.Forbid(a, "node %s UID mismatch: expected %s got %s", node, o.UID, n.UID)
		}
	}
	return nil
}

// mirrorContent: a mirror pod must not open its node a way to objects that no pod bound to it needs.
func mirrorContent(a *admission.Attributes, pod *corev1.Pod, node string) error {
	if what := podspec.StaticReference(pod); what != "" {
		return admission.Forbid(a, "node %q can not create pods that reference %s", node, what)
	}
	return nil
}

// boundPod refuses what a node does to a pod of another node. A pod that does not exist gives the error of the store,
// which is 404.
func (p plugin) boundPod(ctx context.Context, a *admission.Attributes, node, verb string) error {
	pod, err := registry.Find[*corev1.Pod](ctx, p.cfg.Pods, a.Namespace, a.Name)
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != node {
		return admission.Forbid(a, "node %q can only %s pods with spec.nodeName set to itself", node, verb)
	}
	return nil
}

func podStatus(a *admission.Attributes, node string) error {
	pod, ok := a.OldObject.(*corev1.Pod)
	if !ok || a.Operation != admission.Update {
		return admission.Forbid(a, "unexpected operation %q", a.Operation)
	}
	if pod.Spec.NodeName != node {
		return admission.Forbid(a, "node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	now, ok := a.Object.(*corev1.Pod)
	switch {
	case !ok:
		return fmt.Errorf("unexpected type %T", a.Object)
	case !maps.Equal(now.Labels, pod.Labels):
		return admission.Forbid(a, "node %q cannot update labels through pod status", node)
	case !equality.Semantic.DeepEqual(now.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses):
		// they open claims to the node
		return admission.Forbid(a, "node %q cannot update resource claim statuses", node)
	case !equality.Semantic.DeepEqual(now.Status.ExtendedResourceClaimStatus, pod.Status.ExtendedResourceClaimStatus):
		return admission.Forbid(a, "node %q cannot update extended resource claim statuses", node) // so does this
	}
	return nil
}

// token: a node may ask only for tokens bound to a pod that runs on it.
func (p plugin) token(ctx context.Context, a *admission.Attributes, node string) error {
	req, ok := a.Object.(*authenticationv1.TokenRequest)
	if !ok || a.Operation != admission.Create {
		return nil
	}
	ref := req.Spec.BoundObjectRef
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "" {
		return admission.Forbid(a, "node requested token not bound to a pod")
	}
	if ref.UID == "" {
		return admission.Forbid(a, "node requested token with a pod binding without a uid")
	}
	obj, err := p.cfg.Pods.GetCached(ctx, a.Namespace, ref.Name)
	if pod, ok := obj.(*corev1.Pod); err != nil || !ok || pod.UID != ref.UID || pod.Spec.NodeName != node {
		obj, err = p.cfg.Pods.Get(ctx, a.Namespace, ref.Name)
	}
	if err != nil {
		return err
	}
	pod, ok := obj.(*corev1.Pod)
	switch {
	case !ok:
		return fmt.Errorf("unexpected type %T", obj)
	case pod.UID != ref.UID:
		return admission.Forbid(a,
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	case pod.Spec.NodeName != node:
		return admission.Forbid(a, "node requested token bound to a pod scheduled on a different node")
	case pod.Spec.ServiceAccountName != a.Name:
		return admission.Forbid(a, "node requested token for a service account the pod does not run as")
	}
	return p.audience(ctx, a, req.Spec.Audiences, pod)
}

// claimStatus: of a claim a node reports how far its volume has grown, and nothing else.
func claimStatus(a *admission.Attributes, node string) error {
	now, ok := a.Object.(*corev1.PersistentVolumeClaim)
	old, okOld := a.OldObject.(*corev1.PersistentVolumeClaim)
	if !ok || !okOld || a.Operation != admission.Update || a.Subresource != "status" {
		return admission.Forbid(a, "unexpected operation %q", a.Operation)
	}
	kept := now.DeepCopy()
	kept.ResourceVersion, kept.ManagedFields = old.ResourceVersion, old.ManagedFields
	kept.TypeMeta = old.TypeMeta
	kept.Status.Capacity, kept.Status.Conditions = old.Status.Capacity, old.Status.Conditions
	kept.Status.AllocatedResources, kept.Status.AllocatedResourceStatuses = old.Status.AllocatedResources,
		old.Status.AllocatedResourceStatuses
	if !equality.Semantic.DeepEqual(kept, old) {
		return admission.Forbid(a,
			"node %q is not allowed to update fields other than status.capacity and status.conditions", node)
	}
	return nil
}

func lease(a *admission.Attributes, node string) error {
	if a.Namespace != corev1.NamespaceNodeLease {
		return admission.Forbid(a, "can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	name := a.Name
	if l, ok := a.Object.(*coordinationv1.Lease); ok && a.Operation == admission.Create {
		name = l.Name
	}
	if name != node {
		return admission.Forbid(a, "can only access node lease with the same name as the requesting node")
	}
	return nil
}

// csiNode: a node tells of its own storage drivers only.
func csiNode(a *admission.Attributes, node string) error {
	name := a.Name
	if o, ok := a.Object.(*storagev1.CSINode); ok && a.Operation == admission.Create {
		name = o.Name
	}
	if name != node {
		return admission.Forbid(a, "can only access CSINode with the same name as the requesting node")
	}
	return nil
}

// slice: a node lists its own devices only. What a slice says of its node cannot be changed later.
func slice(a *admission.Attributes, node string) error {
	if s, ok := a.Object.(*resourcev1.ResourceSlice); ok && a.Operation == admission.Create &&
		(s.Spec.NodeName == nil || *s.Spec.NodeName != node) {
		return admission.Forbid(a, "can only create ResourceSlice with the same NodeName as the requesting node")
	}
	return nil
}
