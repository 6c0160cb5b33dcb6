package cri

// Labels on sandboxes and containers, as every Kubernetes tool expects them.
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelPodUID        = "io.kubernetes.pod.uid"
	labelContainerName = "io.kubernetes.container.name"
)

// Annotations on containers, under upstream's names, so that a Kubernetes kubelet that takes the node over finds them.
// Ours reads the hash, the restart count and the policy of termination messages again after a restart.
const (
	annotationHash                     = "io.kubernetes.container.hash"
	annotationRestartCount             = "io.kubernetes.container.restartCount"
	annotationTerminationMessagePath   = "io.kubernetes.container.terminationMessagePath"
	annotationTerminationMessagePolicy = "io.kubernetes.container.terminationMessagePolicy"
	annotationPorts                    = "io.kubernetes.container.ports"
	annotationPreStop                  = "io.kubernetes.container.preStopHandler"
	annotationPodGracePeriod           = "io.kubernetes.pod.terminationGracePeriod"
	annotationPodDeletionGracePeriod   = "io.kubernetes.pod.deletionGracePeriod"
)
