package noderestriction

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/storage/ephemeral"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// audience: a token is good for one audience: one that a volume of the pod names or its storage driver asks for, or
// that the node was allowed by the verb request-serviceaccounts-token-audience. Empty is the API server's own. The
// rule: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction.
func (p plugin) audience(ctx context.Context, a *admission.Attributes, asked []string, pod *corev1.Pod) error {
	if len(asked) > 1 {
		return admission.Forbid(a, "node may only request 0 or 1 audiences")
	}
	want := ""
	if len(asked) == 1 {
		want = asked[0]
	}
	for i := range pod.Spec.Volumes {
		named, err := p.names(ctx, pod, &pod.Spec.Volumes[i], want)
		if err != nil || named {
			return err
		}
	}
	// the resource is the audience, the name the account's
	decision, _, _ := p.cfg.Authorizer.Authorize(ctx,
		authz.Attributes{User: a.User, Info: request.Info{IsResource: true,
			Verb: "request-serviceaccounts-token-audience", APIVersion: "*", Namespace: a.Namespace, Resource: want,
			Name: a.Name}})
	if decision == authz.Allow {
		return nil
	}
	return admission.Forbid(a, "audience %q not found in pod spec volume", want)
}

// names reports whether a volume of a pod has a use for tokens of an audience.
func (p plugin) names(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, audience string) (bool, error) {
	switch {
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience {
				return true, nil
			}
		}
		return false, nil
	case v.CSI != nil:
		return p.driverWants(ctx, v.CSI.Driver, audience)
	}
	claim := ""
	switch {
	case v.PersistentVolumeClaim != nil:
		claim = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		claim = ephemeral.VolumeClaimName(pod, v)
	default:
		return false, nil
	}
	driver, err := p.claimsDriver(ctx, pod.Namespace, claim)
	if err != nil || driver == "" {
		return false, err
	}
	return p.driverWants(ctx, driver, audience)
}

// claimsDriver is the storage driver of the volume that a claim is bound to, "" if there is none.
func (p plugin) claimsDriver(ctx context.Context, namespace, name string) (string, error) {
	claim, err := registry.Find[*corev1.PersistentVolumeClaim](ctx, p.cfg.Claims, namespace, name)
	if err == nil && claim.Spec.VolumeName == "" {
		var obj runtime.Object // it may be bound just now
		if obj, err = p.cfg.Claims.Get(ctx, namespace, name); err == nil {
			claim, _ = obj.(*corev1.PersistentVolumeClaim)
		}
	}
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || claim == nil || claim.Spec.VolumeName == "" {
		return "", err
	}
	volume, err := registry.Find[*corev1.PersistentVolume](ctx, p.cfg.Volumes, "", claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil || volume.Spec.CSI == nil {
		return "", err
	}
	return volume.Spec.CSI.Driver, nil
}

// driverWants reports whether a storage driver asks for tokens of an audience. A kubelet may have seen a change of it
// that is not at hand here.
func (p plugin) driverWants(ctx context.Context, name, audience string) (bool, error) {
	for _, get := range []func(ctx context.Context, ns, name string) (runtime.Object, error){p.cfg.Drivers.GetCached,
		p.cfg.Drivers.Get} {
		obj, err := get(ctx, "", name)
		if err != nil && !apierrors.IsNotFound(err) {
			return false, err
		}
		driver, ok := obj.(*storagev1.CSIDriver)
		if err != nil || !ok {
			continue
		}
		for _, t := range driver.Spec.TokenRequests {
			if t.Audience == audience {
				return true, nil
			}
		}
	}
	return false, nil
}
