package objects

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type kind int

const (
	configMap kind = iota
	secret
)

// singular is the name that errors use: configmap "x" not found.
func (k kind) singular() string {
	if k == configMap {
		return "configmap"
	}
	return "secret"
}

// plural is the resource's name.
func (k kind) plural() string { return k.singular() + "s" }

// ref names one object.
type ref struct {
	kind            kind
	namespace, name string
}

func (r ref) get(ctx context.Context, c Client) (metav1.Object, error) {
	if r.kind == configMap {
		return c.ConfigMap(ctx, r.namespace, r.name)
	}
	return c.Secret(ctx, r.namespace, r.name)
}

// refsOf returns every ConfigMap and Secret the pod's volumes, environment and pull secrets name, each once. A mirror
// pod's are not readable for the node and not needed: static pods refer to none.
func refsOf(pod *corev1.Pod) []ref {
	var refs []ref
	add := func(k kind, name string) {
		if r := (ref{k, pod.Namespace, name}); name != "" && !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	for i := range pod.Spec.Volumes {
		volumeRefs(&pod.Spec.Volumes[i].VolumeSource, add)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			containerRefs(list[i].EnvFrom, list[i].Env, add)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		containerRefs(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env, add)
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		add(secret, s.Name)
	}
	return refs
}

func volumeRefs(v *corev1.VolumeSource, add func(kind, string)) {
	switch {
	case v.ConfigMap != nil:
		add(configMap, v.ConfigMap.Name)
	case v.Secret != nil:
		add(secret, v.Secret.SecretName)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add(configMap, s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add(secret, s.Secret.Name)
			}
		}
	}
}

func containerRefs(from []corev1.EnvFromSource, vars []corev1.EnvVar, add func(kind, string)) {
	for _, f := range from {
		if f.ConfigMapRef != nil {
			add(configMap, f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			add(secret, f.SecretRef.Name)
		}
	}
	for _, v := range vars {
		if v.ValueFrom == nil {
			continue
		}
		if r := v.ValueFrom.ConfigMapKeyRef; r != nil {
			add(configMap, r.Name)
		}
		if r := v.ValueFrom.SecretKeyRef; r != nil {
			add(secret, r.Name)
		}
	}
}
