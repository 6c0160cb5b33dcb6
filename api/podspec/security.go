package podspec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// validatePodSecurity checks the pod's security context and what of the host it shares.
func validatePodSecurity(s *corev1.PodSpec, specPath *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.HostUsers != nil && !*s.HostUsers {
		for _, f := range []struct {
			name  string
			isSet bool
		}{{"hostNetwork", s.HostNetwork}, {"HostPID", s.HostPID}, {"HostIPC", s.HostIPC}} {
			if f.isSet {
				errs = append(errs, field.Forbidden(specPath.Child(f.name), "when `hostUsers` is false"))
			}
		}
		for _, list := range []struct {
			name       string
			containers []corev1.Container
		}{{"containers", s.Containers}, {"initContainers", s.InitContainers}} {
			for i := range list.containers {
				if len(list.containers[i].VolumeDevices) > 0 { // block devices belong to users of the host
					errs = append(errs, field.Forbidden(specPath.Child(list.name).Index(i).Child("volumeDevices"),
						"when `hostUsers` is false"))
				}
			}
		}
	}
	if s.HostPID && s.ShareProcessNamespace != nil && *s.ShareProcessNamespace {
		errs = append(errs, field.Invalid(specPath.Child("shareProcessNamespace"),
			*s.ShareProcessNamespace, "ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	c := s.SecurityContext
	if c == nil {
		return errs
	}
	path := specPath.Child("securityContext")
	errs = append(errs, validateID(c.FSGroup, validation.IsValidGroupID, path.Child("fsGroup"))...)
	errs = append(errs, validateID(c.RunAsUser, validation.IsValidUserID, path.Child("runAsUser"))...)
	errs = append(errs, validateID(c.RunAsGroup, validation.IsValidGroupID, path.Child("runAsGroup"))...)
	for i := range c.SupplementalGroups {
		errs = append(errs, validateID(&c.SupplementalGroups[i], validation.IsValidGroupID,
			path.Child("supplementalGroups").Index(i))...)
	}
	if p := c.SupplementalGroupsPolicy; p != nil {
		errs = append(errs, validate.OneOf(path.Child("supplementalGroupsPolicy"), *p,
			corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)...)
	}
	if p := c.FSGroupChangePolicy; p != nil {
		errs = append(errs, validate.OneOf(path.Child("fsGroupChangePolicy"), *p, corev1.FSGroupChangeAlways,
			corev1.FSGroupChangeOnRootMismatch)...)
	}
	if p := c.SELinuxChangePolicy; p != nil {
		known := []corev1.PodSELinuxChangePolicy{corev1.SELinuxChangePolicyMountOption,
			corev1.SELinuxChangePolicyRecursive}
		if !slices.Contains(known, *p) {
			errs = append(errs, field.NotSupported(path.Child("seLinuxChangePolicy"), *p, known))
		}
	}
	errs = append(errs, validateSysctls(c.Sysctls, s, path.Child("sysctls"))...)
	errs = append(errs, validateSeccomp(c.SeccompProfile, path.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(c.AppArmorProfile, path.Child("appArmorProfile"))...)
	errs = append(errs, validateWindows(c.WindowsOptions, path.Child("windowsOptions"))...)
	return errs
}

func validateID(id *int64, check func(int64) []string, path *field.Path) field.ErrorList {
	if id == nil {
		return nil
	}
	return validate.Invalid(path, *id, check(*id))
}

// maxSysctlName is the longest name of a kernel parameter.
const maxSysctlName = 253

func validateSysctls(cs []corev1.Sysctl, s *corev1.PodSpec, path *field.Path) field.ErrorList {
	if len(cs) == 0 {
		return nil // most pods; compiling the expression is costly
	}
	var errs field.ErrorList
	segment := regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)
	seen := sets.New[string]()
	for i, c := range cs {
		at := path.Index(i).Child("name")
		if c.Name == "" {
			errs = append(errs, field.Required(at, ""))
		} else if len(c.Name) > maxSysctlName || !segment.MatchString(c.Name) {
			errs = append(errs, field.Invalid(at, c.Name,
				fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctlName, segment)))
		}
		name := strings.ReplaceAll(c.Name, "/", ".")
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(at, c.Name))
		}
		seen.Insert(name)
		errs = append(errs, hostSysctl(name, s, at)...)
	}
	return errs
}

// hostSysctl: parameters of a namespace that the pod shares with the host would change the host.
func hostSysctl(name string, s *corev1.PodSpec, path *field.Path) field.ErrorList {
	switch {
	case s.HostNetwork && (strings.HasPrefix(name, "net.")):
		return field.ErrorList{field.Invalid(path, name, "may not be specified when 'hostNetwork' is true")}
	case s.HostIPC && (strings.HasPrefix(name, "kernel.shm") || strings.HasPrefix(name, "kernel.msg") ||
		name == "kernel.sem" || strings.HasPrefix(name, "fs.mqueue.")):
		return field.ErrorList{field.Invalid(path, name, "may not be specified when 'hostIPC' is true")}
	}
	return nil
}

func validateSeccomp(p *corev1.SeccompProfile, path *field.Path) field.ErrorList {
	if p == nil {
		return nil
	}
	at := path.Child("localhostProfile")
	switch p.Type {
	case corev1.SeccompProfileTypeLocalhost:
		if p.LocalhostProfile == nil {
			return field.ErrorList{field.Required(at, "must be set when seccomp type is Localhost")}
		}
		return validate.LocalPath(strings.TrimPrefix(*p.LocalhostProfile, "localhost/"), at)
	case corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined:
		if p.LocalhostProfile != nil {
			return field.ErrorList{field.Invalid(at, p, "can only be set when seccomp type is Localhost")}
		}
		return nil
	}
	if p.Type == "" {
		return field.ErrorList{field.Required(path.Child("type"), "type is required when seccompProfile is set")}
	}
	return validate.OneOf(path.Child("type"), p.Type, corev1.SeccompProfileTypeLocalhost,
		corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
}

// validateSecurityContext checks a container's security context.
func validateSecurityContext(c *corev1.SecurityContext, hostUsers bool, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	errs := validateID(c.RunAsUser, validation.IsValidUserID, path.Child("runAsUser"))
	errs = append(errs, validateID(c.RunAsGroup, validation.IsValidGroupID, path.Child("runAsGroup"))...)
	if p := c.ProcMount; p != nil {
		errs = append(errs, validate.OneOf(path.Child("procMount"), *p, corev1.DefaultProcMount,
			corev1.UnmaskedProcMount)...)
		if hostUsers && *p == corev1.UnmaskedProcMount {
			errs = append(errs, field.Invalid(path.Child("procMount"), p,
				"`hostUsers` must be false to use `Unmasked`"))
		}
	}
	errs = append(errs, validateSeccomp(c.SeccompProfile, path.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(c.AppArmorProfile, path.Child("appArmorProfile"))...)
	if c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation {
		if c.Privileged != nil && *c.Privileged {
			errs = append(errs, field.Invalid(path, c,
				"cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if c.Capabilities != nil {
			for _, added := range c.Capabilities.Add {
				if string(added) == "CAP_SYS_ADMIN" {
					errs = append(errs, field.Invalid(path, c,
						"cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"))
				}
			}
		}
	}
	return append(errs, validateWindows(c.WindowsOptions, path.Child("windowsOptions"))...)
}

// Longest texts in the options of Windows containers.
const (
	maxGMSASpec     = 64 * 1024
	maxRunAsUserLen = 256 + 20 + 1
)

func validateWindows(o *corev1.WindowsSecurityContextOptions, path *field.Path) field.ErrorList {
	if o == nil {
		return nil
	}
	var errs field.ErrorList
	if n := o.GMSACredentialSpecName; n != nil {
		errs = append(errs, validate.Invalid(path.Child("gmsaCredentialSpecName"), *n,
			validation.IsDNS1123Subdomain(*n))...)
	}
	if s := o.GMSACredentialSpec; s != nil {
		if *s == "" {
			errs = append(errs, field.Invalid(path.Child("gmsaCredentialSpec"), *s,
				"gmsaCredentialSpec cannot be an empty string"))
		} else if len(*s) > maxGMSASpec {
			errs = append(errs, field.Invalid(path.Child("gmsaCredentialSpec"), *s,
				fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", maxGMSASpec/1024)))
		}
	}
	if u := o.RunAsUserName; u != nil {
		switch {
		case *u == "":
			errs = append(errs, field.Invalid(path.Child("runAsUserName"), u,
				"runAsUserName cannot be an empty string"))
		case len(*u) > maxRunAsUserLen:
			errs = append(errs, field.TooLong(path.Child("runAsUserName"), *u, maxRunAsUserLen))
		case strings.ContainsFunc(*u, func(r rune) bool { return r < ' ' || r == 0x7f }):
			errs = append(errs, field.Invalid(path.Child("runAsUserName"), u,
				"runAsUserName cannot contain control characters"))
		}
	}
	return errs
}

// ForbidPrivileged refuses privileged containers of the pod at path; a nil spec has none.
func ForbidPrivileged(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s == nil {
		return nil
	}
	check := func(list string, i int, c *corev1.SecurityContext) {
		if c != nil && c.Privileged != nil && *c.Privileged {
			errs = append(errs, field.Forbidden(path.Child(list).Index(i).Child("securityContext", "privileged"),
				"disallowed by cluster policy"))
		}
	}
	for i := range s.Containers {
		check("containers", i, s.Containers[i].SecurityContext)
	}
	for i := range s.InitContainers {
		check("initContainers", i, s.InitContainers[i].SecurityContext)
	}
	for i := range s.EphemeralContainers {
		check("ephemeralContainers", i, s.EphemeralContainers[i].SecurityContext)
	}
	return errs
}
