package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// validateFileKeyRef checks what can be said of a reference alone. An absolute path is valid: it is one below the
// volume.
func validateFileKeyRef(r *corev1.FileKeySelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Key == "" {
		errs = append(errs, field.Required(path.Child("key"), ""))
	} else {
		errs = append(errs, validate.Invalid(path.Child("key"), r.Key, validation.IsRelaxedEnvVarName(r.Key))...)
	}
	if r.VolumeName == "" {
		errs = append(errs, field.Required(path.Child("volumeName"), ""))
	} else {
		at := path.Child("volumeName")
		errs = append(errs, validate.Invalid(at, r.VolumeName, validation.IsDNS1123Label(r.VolumeName))...)
	}
	if r.Path == "" {
		return append(errs, field.Required(path.Child("path"), ""))
	}
	return append(errs, validate.NoBacksteps(r.Path, path.Child("path"))...)
}

// validateFileKeyVolumes checks that the files that variables come from are in emptyDirs of the pod, optional ones too.
func validateFileKeyVolumes(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	volumes := map[string]*corev1.Volume{}
	for i := range s.Volumes {
		volumes[s.Volumes[i].Name] = &s.Volumes[i]
	}
	var errs field.ErrorList
	check := func(vars []corev1.EnvVar, path *field.Path) {
		for i := range vars {
			if vars[i].ValueFrom == nil || vars[i].ValueFrom.FileKeyRef == nil {
				continue
			}
			name := vars[i].ValueFrom.FileKeyRef.VolumeName
			at := path.Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			if v, ok := volumes[name]; !ok {
				errs = append(errs, field.NotFound(at, name))
			} else if v.EmptyDir == nil {
				errs = append(errs, field.Invalid(at, name, "referenced volume must be of type emptyDir"))
			}
		}
	}
	for i := range s.InitContainers {
		check(s.InitContainers[i].Env, path.Child("initContainers").Index(i).Child("env"))
	}
	for i := range s.Containers {
		check(s.Containers[i].Env, path.Child("containers").Index(i).Child("env"))
	}
	for i := range s.EphemeralContainers {
		check(s.EphemeralContainers[i].Env, path.Child("ephemeralContainers").Index(i).Child("env"))
	}
	return errs
}
