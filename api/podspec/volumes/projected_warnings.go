package volumes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ProjectedWarnings tells of sources of projected volumes that project nothing, and of files of two sources in the same
// place.
func ProjectedWarnings(volumes []corev1.Volume) []string {
	var w []string
	for i := range volumes {
		p := volumes[i].Projected
		if p == nil {
			continue
		}
		name := volumes[i].Name
		taken := map[string]string{}
		for j := range p.Sources {
			source, paths := projectedPaths(&p.Sources[j])
			if source == "" {
				w = append(w, fmt.Sprintf("volume %q (Projected) has no sources provided", name))
			}
			for _, path := range paths {
				if other, ok := taken[path]; ok {
					w = append(w, fmt.Sprintf("volume %q (Projected): overlapping paths: %q (%s) with %q (%s)", name,
						path, source, path, other))
					continue
				}
				taken[path] = source
			}
		}
	}
	return w
}

// projectedPaths names a source as warnings do, with the paths that it is known to fill: those of a pod certificate are
// the rules' to compare.
func projectedPaths(s *corev1.VolumeProjection) (source string, paths []string) {
	items := func(list []corev1.KeyToPath) {
		for _, k := range list {
			paths = append(paths, k.Path)
		}
	}
	switch {
	case s.Secret != nil:
		source = fmt.Sprintf("Secret %q", s.Secret.Name)
		items(s.Secret.Items)
	case s.ConfigMap != nil:
		source = fmt.Sprintf("ConfigMap %q", s.ConfigMap.Name)
		items(s.ConfigMap.Items)
	case s.DownwardAPI != nil:
		source = "DownwardAPI"
		for _, f := range s.DownwardAPI.Items {
			paths = append(paths, f.Path)
		}
	case s.ServiceAccountToken != nil:
		source, paths = "ServiceAccountToken", []string{s.ServiceAccountToken.Path}
	case s.ClusterTrustBundle != nil:
		source, paths = "ClusterTrustBundle", []string{s.ClusterTrustBundle.Path}
	case s.PodCertificate != nil:
		source = "PodCertificate"
	}
	return source, paths
}
