package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/validate"
)

// validatePodStatusUpdate checks a status as a kubelet reports it: addresses, and containers that may not come back to
// life.
func validatePodStatusUpdate(obj, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("status")
	errs := podspec.ValidateAnnotations(obj.Annotations, &obj.Spec, field.NewPath("metadata", "annotations"))
	errs = append(errs, validateMirrorUpdate(obj, old)...)
	if obj.Spec.NodeName != old.Spec.NodeName {
		errs = append(errs, field.Forbidden(path.Child("nodeName"), "may not be changed directly"))
	}
	for i, c := range obj.Status.Conditions {
		if c.ObservedGeneration < 0 {
			errs = append(errs, field.Invalid(path.Child("conditions").Index(i).Child("observedGeneration"),
				c.ObservedGeneration, "must be a non-negative integer"))
		}
	}
	if n := obj.Status.NominatedNodeName; n != "" {
		errs = append(errs, validate.Invalid(path.Child("nominatedNodeName"), n,
			apivalidation.NameIsDNSSubdomain(n, false))...)
		if obj.Spec.NodeName != "" && n != old.Status.NominatedNodeName {
			errs = append(errs, field.Forbidden(path.Child("nominatedNodeName"),
				"may not be set on pods that are already bound to a node"))
		}
	}
	if n := obj.Status.ObservedGeneration; n < 0 {
		errs = append(errs, field.Invalid(path.Child("observedGeneration"), n, "must be a non-negative integer"))
	}
	if old.Status.QOSClass != "" && obj.Status.QOSClass != old.Status.QOSClass {
		errs = append(errs, field.Invalid(path.Child("qosClass"), obj.Status.QOSClass, "field is immutable"))
	}
	regular, initial, ephemeral := path.Child("containerStatuses"), path.Child("initContainerStatuses"),
		path.Child("ephemeralContainerStatuses")
	errs = append(errs, validateRestarts(obj.Status.ContainerStatuses, old.Status.ContainerStatuses, regular,
		obj.Spec.Containers, obj.Spec.RestartPolicy)...)
	errs = append(errs, validateInitRestarts(obj, old, initial)...)
	errs = append(errs, validateClaimStatuses(obj.Status.ResourceClaimStatuses, obj.Spec.ResourceClaims,
		path.Child("resourceClaimStatuses"))...)
	errs = append(errs, validateExtendedClaim(obj.Status.ExtendedResourceClaimStatus, &obj.Spec,
		path.Child("extendedResourceClaimStatus"))...)
	errs = append(errs, validatePodIPs(obj.Status.PodIPs, path.Child("podIPs"))...)
	errs = append(errs, validateHostIPs(obj.Status.HostIP, obj.Status.HostIPs, path.Child("hostIPs"))...)
	errs = append(errs, validateUsers(obj.Status.ContainerStatuses, regular)...)
	errs = append(errs, validateUsers(obj.Status.InitContainerStatuses, initial)...)
	errs = append(errs, validateUsers(obj.Status.EphemeralContainerStatuses, ephemeral)...)
	errs = append(errs, validateHealth(obj.Status.ContainerStatuses, obj.Spec.Containers, regular)...)
	errs = append(errs, validateHealth(obj.Status.InitContainerStatuses, obj.Spec.InitContainers, initial)...)
	for i := range obj.Status.EphemeralContainerStatuses {
		if len(obj.Status.EphemeralContainerStatuses[i].AllocatedResourcesStatus) > 0 {
			errs = append(errs, field.Forbidden(ephemeral.Index(i).Child("allocatedResourcesStatus"),
				"must not be specified in container status"))
		}
	}
	return errs
}

// validateRestarts: a container that has ended for good under its restart policy stays ended.
func validateRestarts(now, was []corev1.ContainerStatus, path *field.Path, cs []corev1.Container,
	policy corev1.RestartPolicy) field.ErrorList {
	var errs field.ErrorList
	for i := range was {
		if was[i].State.Terminated == nil || mayRestart(was[i].Name, was[i].State.Terminated.ExitCode, cs, policy) {
			continue
		}
		for j := range now {
			if now[j].Name == was[i].Name && now[j].State.Terminated == nil {
				errs = append(errs, field.Forbidden(path.Index(j).Child("state"),
					"may not be transitioned to non-terminated state"))
			}
		}
	}
	return errs
}

// mayRestart reports whether the container's own restart policy, or the pod's, lets it start again after an exit.
func mayRestart(name string, exit int32, cs []corev1.Container, policy corev1.RestartPolicy) bool {
	for i := range cs {
		if cs[i].Name != name {
			continue
		}
		if len(cs[i].RestartPolicyRules) > 0 {
			return true
		}
		if cs[i].RestartPolicy != nil {
			policy = corev1.RestartPolicy(*cs[i].RestartPolicy)
		}
	}
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && exit != 0
}

// validateInitRestarts is validateRestarts for init containers: one that succeeded may run again only when the sandbox
// is recreated, which a kubelet reports under restart policies other than Never.
func validateInitRestarts(obj, old *corev1.Pod, path *field.Path) field.ErrorList {
	if obj.Spec.RestartPolicy != corev1.RestartPolicyNever {
		return nil
	}
	var errs field.ErrorList
	for i := range old.Status.InitContainerStatuses {
		was := &old.Status.InitContainerStatuses[i]
		if was.State.Terminated == nil || was.State.Terminated.ExitCode == 0 {
			continue
		}
		if mayRestart(was.Name, was.State.Terminated.ExitCode, obj.Spec.InitContainers, corev1.RestartPolicyNever) {
			continue
		}
		for j := range obj.Status.InitContainerStatuses {
			if s := &obj.Status.InitContainerStatuses[j]; s.Name == was.Name && s.State.Terminated == nil {
				errs = append(errs, field.Forbidden(path.Index(j).Child("state"),
					"may not be transitioned to non-terminated state"))
			}
		}
	}
	return errs
}
