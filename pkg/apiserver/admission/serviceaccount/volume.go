package serviceaccount

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The token volume, as Kubernetes shapes it.
const (
	// mountPath is where containers find the files token, ca.crt and namespace.
	mountPath    = "/var/run/secrets/kubernetes.io/serviceaccount"
	volumePrefix = "kube-api-access-"
	// expirationSeconds is how long a token of the volume is good for; the kubelet renews it earlier.
	expirationSeconds = 60*60 + 7
	rootCAConfigMap   = "kube-root-ca.crt"
)

// automount: the pod's word counts before its account's.
func automount(pod *corev1.Pod, account *corev1.ServiceAccount) bool {
	if v := pod.Spec.AutomountServiceAccountToken; v != nil {
		return *v
	}
	if v := account.AutomountServiceAccountToken; v != nil {
		return *v
	}
	return true
}

// mountToken mounts the token volume in all containers that have nothing at mountPath, and adds the volume if one needs
// it.
func mountToken(spec *corev1.PodSpec, suffix func() string) {
	name, exists := existing(spec)
	if !exists {
		name = volumePrefix + suffix()
	}
	used := false
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if !mounted(&list[i]) {
				list[i].VolumeMounts = append(list[i].VolumeMounts,
					corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: mountPath})
				used = true
			}
		}
	}
	if used && !exists {
		spec.Volumes = append(spec.Volumes, tokenVolume(name))
	}
}

// existing finds the token volume of a pod that was read from a server and sent back.
func existing(spec *corev1.PodSpec) (string, bool) {
	for i := range spec.Volumes {
		if spec.Volumes[i].Projected != nil && strings.HasPrefix(spec.Volumes[i].Name, volumePrefix) {
			return spec.Volumes[i].Name, true
		}
	}
	return "", false
}

func mounted(c *corev1.Container) bool {
	for _, m := range c.VolumeMounts {
		if m.MountPath == mountPath {
			return true
		}
	}
	return false
}

func tokenVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token",
				ExpirationSeconds: ptr.To[int64](expirationSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCAConfigMap},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1",
					FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
