package core

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// appArmorFromAnnotations moves profiles that old clients give in annotations into the containers' security contexts, where
// those say nothing.
func appArmorFromAnnotations(p *corev1.Pod) {
	for _, cs := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range cs {
			profile := appArmorProfile(p.Annotations[appArmorAnnotation+cs[i].Name])
			if profile == nil || cs[i].SecurityContext != nil && cs[i].SecurityContext.AppArmorProfile != nil {
				continue
			}
			setPtr(&cs[i].SecurityContext, corev1.SecurityContext{})
			cs[i].SecurityContext.AppArmorProfile = profile
		}
	}
}

// appArmorProfile reads a profile in its old form; nil for none or for one that validation refuses.
func appArmorProfile(s string) *corev1.AppArmorProfile {
	switch {
	case s == "runtime/default":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case s == "unconfined":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case strings.HasPrefix(s, "localhost/"):
		name := strings.TrimPrefix(s, "localhost/")
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
	}
	return nil
}
