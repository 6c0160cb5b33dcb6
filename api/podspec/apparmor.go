package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/validate"
)

// AppArmorFromAnnotations moves profiles that old clients give in annotations into the containers' security contexts, where
// those say nothing.
func AppArmorFromAnnotations(s *corev1.PodSpec, annotations map[string]string) {
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			profile := appArmorProfile(annotations[appArmorAnnotation+cs[i].Name])
			if profile == nil || cs[i].SecurityContext != nil && cs[i].SecurityContext.AppArmorProfile != nil {
				continue
			}
			defaults.SetPtr(&cs[i].SecurityContext, corev1.SecurityContext{})
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

// appArmorAnnotation is the old place of a container's AppArmor profile: the prefix, then the container's name.
const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"

func validateAppArmor(p *corev1.AppArmorProfile, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	at := path.Child("localhostProfile")
	switch p.Type {
	case corev1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile == nil {
			return field.ErrorList{field.Required(at, "must be set when AppArmor type is Localhost")}
		}
		name := strings.TrimSpace(*p.LocalhostProfile)
		switch {
		case name != *p.LocalhostProfile:
			return field.ErrorList{field.Invalid(at, *p.LocalhostProfile, "must not be padded with whitespace")}
		case name == "":
			return field.ErrorList{field.Required(at, "must be set when AppArmor type is Localhost")}
		case len(name) > 4095:
			return field.ErrorList{field.TooLong(at, name, 4095)}
		}
		return nil
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		if p.LocalhostProfile != nil {
			return field.ErrorList{field.Invalid(at, p.LocalhostProfile, "can only be set when AppArmor type is Localhost")}
		}
		return nil
	}
	return validate.OneOf(path.Child("type"), p.Type, corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
}
