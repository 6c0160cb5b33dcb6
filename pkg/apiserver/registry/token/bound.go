package token

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// bind reads the object that ref names and checks that the token may be bound to it.
func (r *REST) bind(ctx context.Context, c *Claims, ns string, ref *authenticationv1.BoundObjectReference) (err error) {
	if ref == nil {
		return nil
	}
	switch schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind) {
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		if c.Pod, err = get[*corev1.Pod](ctx, r, "pods", ns, ref.Name); err != nil {
			return err
		}
		if c.Pod.Spec.ServiceAccountName != c.ServiceAccount.Name {
			return apierrors.NewBadRequest(
				fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", c.ServiceAccount.Name))
		}
		if err := sameUID(ref, c.Pod); err != nil {
			return err
		}
		return r.addNode(ctx, c)
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		if c.Secret, err = get[*corev1.Secret](ctx, r, "secrets", ns, ref.Name); err != nil {
			return err
		}
		return sameUID(ref, c.Secret)
	case corev1.SchemeGroupVersion.WithKind("Node"):
		if c.Node, err = get[*corev1.Node](ctx, r, "nodes", "", ref.Name); err != nil {
			return err
		}
		return sameUID(ref, c.Node)
	}
	if forWebhook(ref) {
		return noWebhooks(ref)
	}
	return apierrors.NewBadRequest(
		fmt.Sprintf("cannot bind token to object of type %s", schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)))
}

// addNode names the pod's node in the token. A node that is gone is named without its UID.
func (r *REST) addNode(ctx context.Context, c *Claims) error {
	name := c.Pod.Spec.NodeName
	if name == "" {
		return nil
	}
	node, err := get[*corev1.Node](ctx, r, "nodes", "", name)
	if apierrors.IsNotFound(err) {
		node, err = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	}
	c.Node = node
	return err
}

func sameUID(ref *authenticationv1.BoundObjectReference, obj interface{ GetUID() types.UID }) error {
	if ref.UID == "" || ref.UID == obj.GetUID() {
		return nil
	}
	err := fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	return apierrors.NewConflict(schema.GroupResource{Resource: ref.Kind}, ref.Name, err)
}
