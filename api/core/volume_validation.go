package core

import (
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes checks a pod's volumes and returns the sources by name.
func validateVolumes(vs []corev1.Volume, path *field.Path) (map[string]*corev1.VolumeSource, field.ErrorList) {
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
			found = append(found, invalid(at.Child("name"), v.Name, msgs)...)
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
			return required(p.Child("claimName"), s.PersistentVolumeClaim.ClaimName)
		}},
		{"downwardAPI", s.DownwardAPI != nil, func(p *field.Path) field.ErrorList { return validateDownwardVolume(s.DownwardAPI, p) }},
		{"configMap", s.ConfigMap != nil, func(p *field.Path) field.ErrorList { return validateConfigMapVolume(s.ConfigMap, p) }},
		{"projected", s.Projected != nil, func(p *field.Path) field.ErrorList { return validateProjected(s.Projected, p) }},
		{"csi", s.CSI != nil, func(p *field.Path) field.ErrorList { return required(p.Child("driver"), s.CSI.Driver) }},
		{"ephemeral", s.Ephemeral != nil, func(p *field.Path) field.ErrorList {
			if s.Ephemeral.VolumeClaimTemplate == nil {
				return field.ErrorList{field.Required(p.Child("volumeClaimTemplate"), "")}
			}
			return ValidateClaimSpec(&s.Ephemeral.VolumeClaimTemplate.Spec, p.Child("volumeClaimTemplate", "spec"))
		}},
		{"image", s.Image != nil, func(p *field.Path) field.ErrorList {
			errs := required(p.Child("reference"), s.Image.Reference)
			return append(errs, oneOfOrEmpty(p.Child("pullPolicy"), s.Image.PullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
		}},
	}, diskChecks(s)...)
}

func required(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

func validateEmptyDir(s *corev1.EmptyDirVolumeSource, path *field.Path) field.ErrorList {
	if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
		return field.ErrorList{field.Forbidden(path.Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")}
	}
	return nil
}

func validateHostPath(s *corev1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	if s.Path == "" {
		return field.ErrorList{field.Required(path.Child("path"), "")}
	}
	errs := noBacksteps(s.Path, path.Child("path"))
	if s.Type == nil {
		return errs
	}
	return append(errs, oneOfOrEmpty(path.Child("type"), *s.Type, corev1.HostPathUnset,
		corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate,
		corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)...)
}

func validateNFS(s *corev1.NFSVolumeSource, path *field.Path) field.ErrorList {
	errs := append(required(path.Child("server"), s.Server), required(path.Child("path"), s.Path)...)
	if !strings.HasPrefix(s.Path, "/") {
		errs = append(errs, field.Invalid(path.Child("path"), s.Path, "must be an absolute path"))
	}
	return errs
}

// modeMessage is what is wrong with a file mode out of range.
const modeMessage = "must be a number between 0 and 0777 (octal), both inclusive"

func validateMode(m *int32, path *field.Path) field.ErrorList {
	if m != nil && (*m < 0 || *m > 0o777) {
		return field.ErrorList{field.Invalid(path, *m, modeMessage)}
	}
	return nil
}

func validateSecretVolume(s *corev1.SecretVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("secretName"), s.SecretName)
	errs = append(errs, validateMode(s.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateKeysToPaths(s.Items, path.Child("items"))...)
}

func validateConfigMapVolume(s *corev1.ConfigMapVolumeSource, path *field.Path) field.ErrorList {
	errs := required(path.Child("name"), s.Name)
	errs = append(errs, validateMode(s.DefaultMode, path.Child("defaultMode"))...)
	return append(errs, validateKeysToPaths(s.Items, path.Child("items"))...)
}

func validateKeysToPaths(items []corev1.KeyToPath, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		k, at := &items[i], path.Index(i)
		errs = append(errs, required(at.Child("key"), k.Key)...)
		errs = append(errs, required(at.Child("path"), k.Path)...)
		errs = append(errs, validateLocalNonReservedPath(k.Path, at.Child("path"))...)
		errs = append(errs, validateMode(k.Mode, at.Child("mode"))...)
	}
	return errs
}

func validateDownwardVolume(s *corev1.DownwardAPIVolumeSource, path *field.Path) field.ErrorList {
	errs := validateMode(s.DefaultMode, path.Child("defaultMode"))
	return append(errs, validateDownwardFiles(s.Items, path)...)
}

func validateDownwardFiles(items []corev1.DownwardAPIVolumeFile, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		f := &items[i]
		errs = append(errs, required(path.Child("path"), f.Path)...)
		errs = append(errs, validateLocalNonReservedPath(f.Path, path.Child("path"))...)
		switch {
		case f.FieldRef != nil:
			errs = append(errs, validateFieldRef(f.FieldRef, volumeFields(), path.Child("fieldRef"))...)
			if f.ResourceFieldRef != nil {
				errs = append(errs, field.Invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"))
			}
		case f.ResourceFieldRef != nil:
			errs = append(errs, validateResourceFieldRef(f.ResourceFieldRef, true, path.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(path, "one of fieldRef and resourceFieldRef is required"))
		}
		errs = append(errs, validateMode(f.Mode, path.Child("mode"))...)
	}
	return errs
}

// validateLocalPath checks a relative path that stays below its root.
func validateLocalPath(p string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if filepath.IsAbs(p) {
		errs = append(errs, field.Invalid(path, p, "must be a relative path"))
	}
	return append(errs, noBacksteps(p, path)...)
}

// validateLocalNonReservedPath is validateLocalPath for files of a volume, whose names may not start with "..".
func validateLocalNonReservedPath(p string, path *field.Path) field.ErrorList {
	errs := validateLocalPath(p, path)
	if strings.HasPrefix(p, "..") && !strings.HasPrefix(p, "../") {
		errs = append(errs, field.Invalid(path, p, "must not start with '..'"))
	}
	return errs
}

func noBacksteps(p string, path *field.Path) field.ErrorList {
	if sets.New(strings.Split(filepath.ToSlash(p), "/")...).Has("..") {
		return field.ErrorList{field.Invalid(path, p, "must not contain '..'")}
	}
	return nil
}
