package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// validateOS checks that a pod that names its operating system asks for nothing of the other one.
func validateOS(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if s.OS == nil {
		return nil
	}
	errs := validate.Required(path.Child("os", "name"), string(s.OS.Name))
	errs = append(errs, validate.OneOfOrEmpty(path.Child("os"), s.OS.Name, corev1.Linux, corev1.Windows)...)
	switch s.OS.Name {
	case corev1.Linux:
		errs = append(errs, onlyLinux(s, path)...)
	case corev1.Windows:
		errs = append(errs, onlyWindows(s, path)...)
	}
	return errs
}

// setting is a field by name, and whether it is set.
type setting struct {
	name  string
	isSet bool
}

func forbidden(settings []setting, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, s := range settings {
		if s.isSet {
			errs = append(errs, field.Forbidden(path.Child(s.name), "cannot be set for a windows pod"))
		}
	}
	return errs
}

func onlyWindows(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	errs := forbidden([]setting{
		{"hostPID", s.HostPID}, {"hostIPC", s.HostIPC}, {"hostUsers", s.HostUsers != nil},
		{"shareProcessNamespace", s.ShareProcessNamespace != nil},
	}, path)
	if c := s.SecurityContext; c != nil {
		errs = append(errs, forbidden([]setting{
			{"appArmorProfile", c.AppArmorProfile != nil}, {"seLinuxOptions", c.SELinuxOptions != nil},
			{"seLinuxChangePolicy", c.SELinuxChangePolicy != nil},
			{"seccompProfile", c.SeccompProfile != nil},
			{"fsGroup", c.FSGroup != nil}, {"fsGroupChangePolicy", c.FSGroupChangePolicy != nil},
			{"sysctls", len(c.Sysctls) > 0},
			{"runAsUser", c.RunAsUser != nil}, {"runAsGroup", c.RunAsGroup != nil},
			{"supplementalGroups", c.SupplementalGroups != nil},
			{"supplementalGroupsPolicy", c.SupplementalGroupsPolicy != nil},
		}, path.Child("securityContext"))...)
	}
	eachContext(s, path, func(c *corev1.SecurityContext, at *field.Path) {
		errs = append(errs, forbidden([]setting{
			{"appArmorProfile", c.AppArmorProfile != nil}, {"seLinuxOptions", c.SELinuxOptions != nil},
			{"seccompProfile", c.SeccompProfile != nil},
			{"capabilities", c.Capabilities != nil}, {"readOnlyRootFilesystem", c.ReadOnlyRootFilesystem != nil},
			{"privileged", c.Privileged != nil},
			{"allowPrivilegeEscalation", c.AllowPrivilegeEscalation != nil}, {"procMount", c.ProcMount != nil},
			{"runAsUser", c.RunAsUser != nil}, {"runAsGroup", c.RunAsGroup != nil},
		}, at)...)
	})
	return errs
}

func onlyLinux(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const says = "windows options cannot be set for a linux pod"
	if s.SecurityContext != nil && s.SecurityContext.WindowsOptions != nil {
		errs = append(errs, field.Forbidden(path.Child("securityContext", "windowsOptions"), says))
	}
	eachContext(s, path, func(c *corev1.SecurityContext, at *field.Path) {
		if c.WindowsOptions != nil {
			errs = append(errs, field.Forbidden(at.Child("windowsOptions"), says))
		}
	})
	return errs
}

// eachContext calls f with the security context of every container that has one.
func eachContext(s *corev1.PodSpec, path *field.Path, f func(*corev1.SecurityContext, *field.Path)) {
	visit := func(c *corev1.SecurityContext, at *field.Path) {
		if c != nil {
			f(c, at.Child("securityContext"))
		}
	}
	for i := range s.InitContainers {
		visit(s.InitContainers[i].SecurityContext, path.Child("initContainers").Index(i))
	}
	for i := range s.Containers {
		visit(s.Containers[i].SecurityContext, path.Child("containers").Index(i))
	}
	for i := range s.EphemeralContainers {
		visit(s.EphemeralContainers[i].SecurityContext, path.Child("ephemeralContainers").Index(i))
	}
}
