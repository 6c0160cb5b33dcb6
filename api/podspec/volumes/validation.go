// Package volumes holds the sources of volumes and the claims on them, as pods, pod templates, persistent volumes,
// claims and claim templates have them: defaults, validation and warnings, as pure functions.
package volumes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// Validate checks the volumes of a pod or of a template, and returns the sources by name.
func Validate(vs []corev1.Volume, path *field.Path) (map[string]*corev1.VolumeSource, field.ErrorList) {
	var errs field.ErrorList
	sources := make(map[string]*corev1.VolumeSource, len(vs))
	for i := range vs {
		v, at := &vs[i], path.Index(i)
		found := validateVolumeSource(v, at)
		switch _, taken := sources[v.Name]; {
		case v.Name == "":
			found = append(found, field.Required(at.Child("name"), ""))
		default:
			msgs := validation.IsDNS1123Label(v.Name)
			found = append(found, validate.Invalid(at.Child("name"), v.Name, msgs)...)
			if len(msgs) == 0 && taken {
				found = append(found, field.Duplicate(at.Child("name"), v.Name))
			}
		}
		if len(found) == 0 {
			sources[v.Name] = &v.VolumeSource
		}
		errs = append(errs, found...)
	}
	return sources, errs
}

// validateVolumeSource checks that there is exactly one source, and that source.
func validateVolumeSource(v *corev1.Volume, path *field.Path) field.ErrorList {
	return validateOneSource(volumeChecks(&v.VolumeSource), path)
}

// validateOneSource checks that exactly one of the sources is there, and that one.
func validateOneSource(checks []volumeCheck, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	n := 0
	for _, c := range checks {
		if !c.isSet {
			continue
		}
		n++
		if n > 1 {
			errs = append(errs, field.Forbidden(path.Child(c.name), "may not specify more than 1 volume type"))
			continue
		}
		name := c.name
		if name == "gcePersistentDisk" {
			name = "persistentDisk" // as Kubernetes' errors call it
		}
		errs = append(errs, c.check(path.Child(name))...)
	}
	if n == 0 {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	return errs
}

// volumeCheck is one source by its field's name: whether it is set, and its check.
type volumeCheck struct {
	name  string
	isSet bool
	check func(*field.Path) field.ErrorList
}

// volumeChecks lists the sources in the order they are looked at.
func volumeChecks(s *corev1.VolumeSource) []volumeCheck {
	return append([]volumeCheck{
		{"emptyDir", s.EmptyDir != nil, func(p *field.Path) field.ErrorList { return validateEmptyDir(s.EmptyDir, p) }},
		{"hostPath", s.HostPath != nil, func(p *field.Path) field.ErrorList { return validateHostPath(s.HostPath, p) }},
		{"secret", s.Secret != nil, func(p *field.Path) field.ErrorList { return validateSecretVolume(s.Secret, p) }},
		{"nfs", s.NFS != nil, func(p *field.Path) field.ErrorList { return validateNFS(s.NFS, p) }},
		{"persistentVolumeClaim", s.PersistentVolumeClaim != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("claimName"), s.PersistentVolumeClaim.ClaimName)
		}},
		{"downwardAPI", s.DownwardAPI != nil, func(p *field.Path) field.ErrorList {
			return validateDownwardVolume(s.DownwardAPI, p)
		}},
		{"configMap", s.ConfigMap != nil, func(p *field.Path) field.ErrorList {
			return validateConfigMapVolume(s.ConfigMap, p)
		}},
		{"projected", s.Projected != nil, func(p *field.Path) field.ErrorList {
			return validateProjected(s.Projected, p)
		}},
		{"csi", s.CSI != nil, func(p *field.Path) field.ErrorList {
			return validate.Required(p.Child("driver"), s.CSI.Driver)
		}},
		{"ephemeral", s.Ephemeral != nil, func(p *field.Path) field.ErrorList {
			if s.Ephemeral.VolumeClaimTemplate == nil {
				return field.ErrorList{field.Required(p.Child("volumeClaimTemplate"), "")}
			}
			return ValidateClaim(&s.Ephemeral.VolumeClaimTemplate.Spec, p.Child("volumeClaimTemplate", "spec"))
		}},
		{"image", s.Image != nil, func(p *field.Path) field.ErrorList {
			errs := validate.Required(p.Child("reference"), s.Image.Reference)
			return append(errs, validate.OneOfOrEmpty(p.Child("pullPolicy"), s.Image.PullPolicy, corev1.PullAlways,
				corev1.PullIfNotPresent, corev1.PullNever)...)
		}},
	}, diskChecks(s)...)
}

func validateEmptyDir(s *corev1.EmptyDirVolumeSource, path *field.Path) field.ErrorList {
	if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
		return field.ErrorList{field.Forbidden(path.Child("sizeLimit"),
			"SizeLimit field must be a valid resource quantity")}
	}
	return nil
}

func validateHostPath(s *corev1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	if s.Path == "" {
		return field.ErrorList{field.Required(path.Child("path"), "")}
	}
	errs := validate.NoBacksteps(s.Path, path.Child("path"))
	if s.Type == nil {
		return errs
	}
	return append(errs, validate.OneOfOrEmpty(path.Child("type"), *s.Type, corev1.HostPathUnset,
		corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate,
		corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)...)
}

func validateNFS(s *corev1.NFSVolumeSource, path *field.Path) field.ErrorList {
	errs := append(validate.Required(path.Child("server"), s.Server), validate.Required(path.Child("path"), s.Path)...)
	if !strings.HasPrefix(s.Path, "/") {
		errs = append(errs, field.Invalid(path.Child("path"), s.Path, "must be an absolute path"))
	}
	return errs
}
