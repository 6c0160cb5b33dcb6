// Package alwayspullimages is the admission plug-in AlwaysPullImages, which is off unless it is enabled: every new pod
// pulls its images. So nobody runs a private image that the node has because another pod, with the credentials for it,
// ran there. As in Kubernetes, ephemeral containers are not covered.
package alwayspullimages

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin {
	return admission.Plugin{Name: "AlwaysPullImages", Mutator: plugin{}, Validator: plugin{}}
}

// policy is where a pod says when one image is pulled.
type policy struct {
	image string
	pull  *corev1.PullPolicy
	path  *field.Path
}

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	for _, p := range policies(a) {
		*p.pull = corev1.PullAlways
	}
	return nil
}

// Validate implements admission.Validator: a later plug-in, or a webhook, may have changed what Admit set.
func (plugin) Validate(_ context.Context, a *admission.Attributes) error {
	var errs field.ErrorList
	for _, p := range policies(a) {
		if *p.pull != corev1.PullAlways {
			errs = append(errs, field.NotSupported(p.path, *p.pull, []corev1.PullPolicy{corev1.PullAlways}))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), a.Name, errs)
}

// policies returns those of a pod that is created or gets an image that it did not have: nil for all else, as the
// policies of an existing pod cannot change.
func policies(a *admission.Attributes) []policy {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	all := of(pod)
	if old, ok := a.OldObject.(*corev1.Pod); ok {
		had := of(old)
		if !slices.ContainsFunc(all, func(now policy) bool {
			return !slices.ContainsFunc(had, func(p policy) bool { return p.image == now.image })
		}) {
			return nil
		}
	}
	return all
}

func of(pod *corev1.Pod) []policy {
	var all []policy
	spec := field.NewPath("spec")
	containers := func(list []corev1.Container, path *field.Path) {
		for i := range list {
			all = append(all, policy{list[i].Image, &list[i].ImagePullPolicy, path.Index(i).Child("imagePullPolicy")})
		}
	}
	containers(pod.Spec.InitContainers, spec.Child("initContainers"))
	containers(pod.Spec.Containers, spec.Child("containers"))
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			all = append(all, policy{image.Reference, &image.PullPolicy,
				spec.Child("volumes").Index(i).Child("image", "pullPolicy")})
		}
	}
	return all
}
