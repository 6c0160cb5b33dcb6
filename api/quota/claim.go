package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/api/core"
)

// classSuffix ends the names that count the claims of one storage class:
// gold.storageclass.storage.k8s.io/requests.storage.
const classSuffix = ".storageclass.storage.k8s.io/"

func ofStorageClass(class string, name corev1.ResourceName) corev1.ResourceName {
	return corev1.ResourceName(class + classSuffix + string(name))
}

func countsClaims(name corev1.ResourceName) bool {
	if class, rest, ok := strings.Cut(string(name), classSuffix); ok {
		if class == "" {
			return false
		}
		name = corev1.ResourceName(rest)
	}
	return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
}

// addClaim counts c and the storage it asks for (or has been given, where that is more), also for its storage class.
func addClaim(used corev1.ResourceList, c *corev1.PersistentVolumeClaim) {
	size, asked := claimed(c)
	classes := []func(corev1.ResourceName) corev1.ResourceName{func(name corev1.ResourceName) corev1.ResourceName {
		return name
	}}
	if class := core.ClaimClass(c); class != "" {
		classes = append(classes, func(name corev1.ResourceName) corev1.ResourceName {
			return ofStorageClass(class, name)
		})
	}
	for _, named := range classes {
		used[named(corev1.ResourcePersistentVolumeClaims)] = one()
		if asked {
			used[named(corev1.ResourceRequestsStorage)] = size
		}
	}
}

// claimed is the storage that c asks for, rounded up to bytes; while it shrinks, what was allocated before counts.
func claimed(c *corev1.PersistentVolumeClaim) (size resource.Quantity, ok bool) {
	asked, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		return resource.Quantity{}, false
	}
	size = asked.DeepCopy()
	size.RoundUp(0)
	if given, ok := c.Status.AllocatedResources[corev1.ResourceStorage]; ok && given.Cmp(size) > 0 {
		size = given.DeepCopy()
	}
	return size, true
}

// matchesClaim: the one scope of claims is their class of volume attributes, wanted, present or being changed to.
func matchesClaim(s corev1.ScopedResourceSelectorRequirement, c *corev1.PersistentVolumeClaim) bool {
	if s.ScopeName != corev1.ResourceQuotaScopeVolumeAttributesClass {
		return false
	}
	classes := []*string{c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName}
	if m := c.Status.ModifyVolumeStatus; m != nil {
		classes = append(classes, &m.TargetVolumeAttributesClassName)
	}
	classes = slices.DeleteFunc(classes, func(class *string) bool { return class == nil || *class == "" })
	if len(classes) == 0 {
		return ofClass(s, "")
	}
	return slices.ContainsFunc(classes, func(class *string) bool { return ofClass(s, *class) })
}
