package images

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Named are all images that have a name, as the node's status shows them.
func Named(list []runtime.Image) []corev1.ContainerImage {
	var out []corev1.ContainerImage
	for _, i := range list {
		if names := slices.Concat(i.RepoDigests, i.RepoTags); len(names) > 0 {
			out = append(out, corev1.ContainerImage{Names: names, SizeBytes: int64(i.Size)})
		}
	}
	return out
}
