// Package resource gives access to the kinds of resource.k8s.io/v1 that components use.
package resource

import (
	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/apiclient"
)

// ResourceClaims gives access to resourceclaims.
func ResourceClaims(c *apiclient.Client) *apiclient.Resource[*resourcev1.ResourceClaim] {
	return apiclient.NewResource(c, resourcev1.SchemeGroupVersion, "resourceclaims", &resourcev1.ResourceClaim{})
}

// ResourceClaimTemplates gives access to resourceclaimtemplates.
func ResourceClaimTemplates(c *apiclient.Client) *apiclient.Resource[*resourcev1.ResourceClaimTemplate] {
	return apiclient.NewResource(c, resourcev1.SchemeGroupVersion, "resourceclaimtemplates",
		&resourcev1.ResourceClaimTemplate{})
}

// ResourceSlices gives access to resourceslices.
func ResourceSlices(c *apiclient.Client) *apiclient.Resource[*resourcev1.ResourceSlice] {
	return apiclient.NewResource(c, resourcev1.SchemeGroupVersion, "resourceslices", &resourcev1.ResourceSlice{})
}

// DeviceClasses gives access to deviceclasses.
func DeviceClasses(c *apiclient.Client) *apiclient.Resource[*resourcev1.DeviceClass] {
	return apiclient.NewResource(c, resourcev1.SchemeGroupVersion, "deviceclasses", &resourcev1.DeviceClass{})
}

// DeviceTaintRules gives access to devicetaintrules.
func DeviceTaintRules(c *apiclient.Client) *apiclient.Resource[*resourcev1.DeviceTaintRule] {
	return apiclient.NewResource(c, resourcev1.SchemeGroupVersion, "devicetaintrules", &resourcev1.DeviceTaintRule{})
}
