package node

import corev1 "k8s.io/api/core/v1"

// object names one namespaced object a pod needs, by its resource.
type object struct{ resource, namespace, name string }

// references returns what a pod's node must read to run it: its secrets, config maps, claims and service account. An object
// may be there more than once.
func references(p *corev1.Pod) []object {
	r := refs{namespace: p.Namespace}
	r.add("serviceaccounts", p.Spec.ServiceAccountName)
	for _, s := range p.Spec.ImagePullSecrets {
		r.add("secrets", s.Name)
	}
	for i := range p.Spec.InitContainers {
		r.environment(p.Spec.InitContainers[i].EnvFrom, p.Spec.InitContainers[i].Env)
	}
	for i := range p.Spec.Containers {
		r.environment(p.Spec.Containers[i].EnvFrom, p.Spec.Containers[i].Env)
	}
	for i := range p.Spec.EphemeralContainers {
		r.environment(p.Spec.EphemeralContainers[i].EnvFrom, p.Spec.EphemeralContainers[i].Env)
	}
	for i := range p.Spec.Volumes {
		r.volume(p.Name, &p.Spec.Volumes[i])
	}
	return r.list
}

type refs struct {
	namespace string
	list      []object
}

func (r *refs) add(resource, name string) {
	if name != "" {
		r.list = append(r.list, object{resource, r.namespace, name})
	}
}

func (r *refs) environment(from []corev1.EnvFromSource, env []corev1.EnvVar) {
	for _, f := range from {
		if f.SecretRef != nil {
			r.add("secrets", f.SecretRef.Name)
		}
		if f.ConfigMapRef != nil {
			r.add("configmaps", f.ConfigMapRef.Name)
		}
	}
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if k := e.ValueFrom.SecretKeyRef; k != nil {
			r.add("secrets", k.Name)
		}
		if k := e.ValueFrom.ConfigMapKeyRef; k != nil {
			r.add("configmaps", k.Name)
		}
	}
}

func (r *refs) volume(pod string, v *corev1.Volume) {
	switch {
	case v.Secret != nil:
		r.add("secrets", v.Secret.SecretName)
	case v.ConfigMap != nil:
		r.add("configmaps", v.ConfigMap.Name)
	case v.PersistentVolumeClaim != nil:
		r.add("persistentvolumeclaims", v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		r.add("persistentvolumeclaims", pod+"-"+v.Name)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret != nil {
				r.add("secrets", s.Secret.Name)
			}
			if s.ConfigMap != nil {
				r.add("configmaps", s.ConfigMap.Name)
			}
		}
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		r.add("secrets", v.CSI.NodePublishSecretRef.Name)
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		r.add("secrets", v.ISCSI.SecretRef.Name)
	case v.FlexVolume != nil && v.FlexVolume.SecretRef != nil:
		r.add("secrets", v.FlexVolume.SecretRef.Name)
	}
}
