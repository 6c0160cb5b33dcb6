package podspec

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/validate"
)

// AppArmorFromAnnotations moves profiles that old clients give in annotations into the containers' security contexts,
// where those say nothing.
func AppArmorFromAnnotations(s *corev1.PodSpec, annotations map[string]string) {
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			if profile, _ := annotatedAppArmor(s, &cs[i], annotations); profile != nil {
				defaults.SetPtr(&cs[i].SecurityContext, corev1.SecurityContext{})
				cs[i].SecurityContext.AppArmorProfile = profile
			}
		}
	}
}

// AppArmorWarnings tells of the annotations that AppArmorFromAnnotations looks at.
func AppArmorWarnings(s *corev1.PodSpec, annotations map[string]string) []string {
	return eachContainer(s, func(c *corev1.Container, _ *field.Path) []string {
		if _, says := annotatedAppArmor(s, c, annotations); !says {
			return nil
		}
		return appArmorWarnings(c, annotations, field.NewPath("metadata", "annotations"))
	}, nil)
}

// annotatedAppArmor is the profile that an annotation gives a container, and whether there is one that says what the
// fields do not. The profile is nil also for one that validation refuses.
func annotatedAppArmor(s *corev1.PodSpec, c *corev1.Container,
	annotations map[string]string) (profile *corev1.AppArmorProfile, says bool) {
	old, named := annotations[appArmorAnnotation+c.Name]
	if !named || s.OS != nil && s.OS.Name == corev1.Windows ||
		c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
		return nil, false
	}
	profile = appArmorProfile(old)
	if profile != nil && s.SecurityContext != nil && reflect.DeepEqual(profile, s.SecurityContext.AppArmorProfile) {
		return nil, false
	}
	return profile, true
}

// ValidateAppArmorMatch: where an annotation and a field both name a container's profile, they name the same. at is the
// path of the pod's spec.
func ValidateAppArmorMatch(annotations map[string]string, s *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	check := func(cs []corev1.Container, at *field.Path) {
		for i := range cs {
			old, named := annotations[appArmorAnnotation+cs[i].Name]
			is := EffectiveAppArmor(s, &cs[i])
			if !named || is == nil {
				continue
			}
			at := at.Index(i).Child("securityContext", "appArmorProfile")
			profile := appArmorProfile(old)
			switch {
			case strings.HasPrefix(old, "localhost/") && is.Type == corev1.AppArmorProfileTypeLocalhost:
				if is.LocalhostProfile != nil && *is.LocalhostProfile != strings.TrimPrefix(old, "localhost/") {
					errs = append(errs, field.Forbidden(at.Child("localhostProfile"),
						"apparmor profile in annotation and field must match"))
				}
			case profile == nil || profile.Type != is.Type:
				errs = append(errs, field.Forbidden(at.Child("type"),
					"apparmor type in annotation and field must match"))
			}
		}
	}
	check(s.InitContainers, at.Child("initContainers"))
	check(s.Containers, at.Child("containers"))
	return errs
}

// EffectiveAppArmor is the profile that the fields give a container; nil for none.
func EffectiveAppArmor(s *corev1.PodSpec, c *corev1.Container) *corev1.AppArmorProfile {
	if c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
		return c.SecurityContext.AppArmorProfile
	}
	if s.SecurityContext != nil {
		return s.SecurityContext.AppArmorProfile
	}
	return nil
}

// ValidateAppArmorUpdate: the annotations stay as they were when the pod was made, as its containers run with what they
// said then.
func ValidateAppArmorUpdate(now, before map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if v, ok := now[key]; strings.HasPrefix(key, appArmorAnnotation) && (!ok || v != before[key]) {
			errs = append(errs, field.Forbidden(path.Key(key), "may not remove or update AppArmor annotations"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, ok := before[key]; strings.HasPrefix(key, appArmorAnnotation) && !ok {
			errs = append(errs, field.Forbidden(path.Key(key), "may not add AppArmor annotations"))
		}
	}
	return errs
}

// appArmorProfile reads a profile in its old form; nil for none or for one that validation refuses.
func appArmorProfile(s string) *corev1.AppArmorProfile {
	switch {
	case s == "runtime/default":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case s == "unconfined":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
	case strings.HasPrefix(s, "localhost/") && s != "localhost/":
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
			return field.ErrorList{field.Invalid(at, p.LocalhostProfile,
				"can only be set when AppArmor type is Localhost")}
		}
		return nil
	}
	return validate.OneOf(path.Child("type"), p.Type, corev1.AppArmorProfileTypeLocalhost,
		corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
}
