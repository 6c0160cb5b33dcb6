package core

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// validateClaimStatuses checks which claims were made for the pod: those that its spec has.
func validateClaimStatuses(list []corev1.PodResourceClaimStatus, claims []corev1.PodResourceClaim,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, s := range list {
		at := path.Index(i)
		switch {
		case !slices.ContainsFunc(claims, func(c corev1.PodResourceClaim) bool { return c.Name == s.Name }):
			errs = append(errs, field.Invalid(at.Child("name"), s.Name,
				"must match the name of an entry in `spec.resourceClaims`"))
		case seen.Has(s.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), s.Name))
		}
		seen.Insert(s.Name)
		if name := s.ResourceClaimName; name != nil {
			errs = append(errs, validate.Invalid(at.Child("resourceClaimName"), *name,
				apivalidation.NameIsDNSSubdomain(*name, false))...)
		}
	}
	return errs
}

// validateUsers checks who the processes of containers run as.
func validateUsers(list []corev1.ContainerStatus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	id := func(n, most int64, path *field.Path) {
		if n < 0 || n > most {
			errs = append(errs, field.Invalid(path, n, fmt.Sprintf("must be between 0 and %d, inclusive", most)))
		}
	}
	for i := range list {
		if u := list[i].User; u != nil && u.Linux != nil {
			at := path.Index(i).Child("user", "linux")
			id(u.Linux.UID, math.MaxUint32, at.Child("uid"))
			id(u.Linux.GID, math.MaxInt32, at.Child("gid"))
			for j, n := range u.Linux.SupplementalGroups {
				id(n, math.MaxInt32, at.Child("supplementalGroups").Index(j))
			}
		}
	}
	return errs
}

// claimPrefix begins the names under which a status reports the health of claimed devices.
const claimPrefix = "claim:"

// validateHealth checks the reported health of devices: a container reports only those that it asks for.
func validateHealth(list []corev1.ContainerStatus, containers []corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == list[i].Name })
		if at < 0 {
			continue
		}
		for j, s := range list[i].AllocatedResourcesStatus {
			errs = append(errs, validateDeviceHealth(&s, &containers[at],
				path.Index(i).Child("allocatedResourcesStatus").Index(j))...)
		}
	}
	return errs
}

func validateDeviceHealth(s *corev1.ResourceStatus, c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	_, asked := c.Resources.Requests[s.Name]
	claim, isClaim := strings.CutPrefix(string(s.Name), claimPrefix)
	switch {
	case isClaim && !slices.ContainsFunc(c.Resources.Claims, func(r corev1.ResourceClaim) bool {
		return claim == r.Name && r.Request == "" || claim == r.Name+"/"+r.Request && r.Request != ""
	}):
		errs = append(errs, field.Invalid(path.Child("name"), s.Name,
			"must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"))
	case !isClaim && !asked:
		errs = append(errs, field.Invalid(path.Child("name"), s.Name,
			"must match one of the container's resource requests"))
	}
	known := []corev1.ResourceHealthStatus{corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy,
		corev1.ResourceHealthStatusUnknown}
	seen := sets.New[corev1.ResourceID]()
	for i, r := range s.Resources {
		at := path.Child("resources").Index(i)
		if !slices.Contains(known, r.Health) {
			errs = append(errs, field.NotSupported(at.Child("health"), r.Health, known))
		}
		if seen.Has(r.ResourceID) {
			errs = append(errs, field.Duplicate(at.Child("resourceID"), r.ResourceID))
		}
		seen.Insert(r.ResourceID)
	}
	return errs
}

// dropDisabledStatus drops the fields of features that are off by default, unless old has them already.
func dropDisabledStatus(s, old *corev1.PodStatus) {
	if len(old.NodeAllocatableResourceClaimStatuses) == 0 {
		s.NodeAllocatableResourceClaimStatuses = nil
	}
	if len(old.VolumeHealth) == 0 {
		s.VolumeHealth = nil
	}
	if !anyVolumeStatus(old, false) {
		anyVolumeStatus(s, true)
	}
}

// keepClaims keeps what the status tells of claims where a write leaves it out: from a writer that does not know of it,
// as a pod whose claims nobody knows could never be removed. An empty list is no omission, but its end.
func keepClaims(s, old *corev1.PodStatus) {
	if s.ResourceClaimStatuses == nil {
		s.ResourceClaimStatuses = old.ResourceClaimStatuses
	}
	if s.ExtendedResourceClaimStatus == nil {
		s.ExtendedResourceClaimStatus = old.ExtendedResourceClaimStatus
	}
	if s.NodeAllocatableResourceClaimStatuses == nil {
		s.NodeAllocatableResourceClaimStatuses = old.NodeAllocatableResourceClaimStatuses
	}
}

// anyVolumeStatus reports whether a container's mount tells of its volume, and drops that if asked to.
func anyVolumeStatus(s *corev1.PodStatus, drop bool) (has bool) {
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses,
		s.EphemeralContainerStatuses} {
		for i := range list {
			for j := range list[i].VolumeMounts {
				m := &list[i].VolumeMounts[j]
				has = has || m.VolumeStatus != nil
				if drop {
					m.VolumeStatus = nil
				}
			}
		}
	}
	return has
}
