package slim

import "bonsai/pkg/scheduler/framework"

// core returns the fields that are read whichever plug-ins there are: by package model, which computes requests, ports,
// volumes, terms and constraints of every pod; by the queue, the cache and the nominator; for events, conditions and
// the metrics of pods' resources.
func core() framework.Fields {
	return framework.Fields{
		Pod: []string{
			"metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion", "metadata.generation",
			"metadata.labels", "metadata.deletionTimestamp",
			"spec.schedulerName", "spec.nodeName", "spec.priority", "spec.schedulingGates", "spec.tolerations",
			"spec.affinity.podAffinity", "spec.affinity.podAntiAffinity", "spec.topologySpreadConstraints",
			"spec.overhead", "spec.resources", "spec.volumes",
			"spec.containers.name", "spec.containers.resources", "spec.containers.restartPolicy",
			"spec.containers.ports",
			"spec.initContainers.name", "spec.initContainers.resources", "spec.initContainers.restartPolicy",
			"spec.initContainers.ports",
			"status.phase", "status.conditions", "status.nominatedNodeName", "status.resources",
			"status.allocatedResources",
			"status.containerStatuses", "status.initContainerStatuses", "status.resourceClaimStatuses",
		},
		Node: []string{
			"metadata.name", "metadata.uid", "metadata.resourceVersion", "metadata.labels", "status.allocatable",
		},
	}
}
