package model

import resourcev1 "k8s.io/api/resource/v1"

// ResourceClaims adds the ResourceClaims that the pod names, and the names of those that were made for it.
func (k *Key) ResourceClaims(pod *PodInfo) {
	list := pod.Pod.Spec.ResourceClaims
	k.Num(int64(len(list)))
	if len(list) == 0 {
		return
	}
	k.Str(pod.Pod.Namespace)
	for _, c := range list {
		if c.ResourceClaimName != nil {
			k.Str(*c.ResourceClaimName)
		}
	}
	for _, c := range pod.Pod.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			k.Str(*c.ResourceClaimName)
		}
	}
}

// AllocatedTo adds where the devices of an allocated claim can be used.
func (k *Key) AllocatedTo(c *resourcev1.ResourceClaim) {
	if s := c.Status.Allocation.NodeSelector; s != nil {
		k.proto(s)
	} else {
		k.Num(-1)
	}
}

// DeviceRequests adds what a claim asks for. Its namespace is part of that: administrative access is granted to
// namespaces.
func (k *Key) DeviceRequests(c *resourcev1.ResourceClaim) { k.proto(&c.Spec) }
