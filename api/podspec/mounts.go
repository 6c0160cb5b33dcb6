package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// mounts checks where a container mounts its volumes.
func (r containerRules) mounts(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	devices, devicePaths := sets.New[string](), sets.New[string]()
	for _, d := range c.VolumeDevices {
		devices.Insert(d.Name)
		devicePaths.Insert(d.DevicePath)
	}
	points := sets.New[string]()
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], path.Index(i)
		if m.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if _, ok := r.volumes[m.Name]; !ok {
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		errs = append(errs, validate.Required(at.Child("mountPath"), m.MountPath)...)
		if points.Has(m.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		points.Insert(m.MountPath)
		if devicePaths.Has(m.MountPath) {
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath,
				"must not already exist as a path in volumeDevices"))
		}
		if devices.Has(m.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), m.Name, "must not already exist in volumeDevices"))
		}
		errs = append(errs, validateSubPaths(m, path, at)...)
		errs = append(errs, validatePropagation(m, c, path)...)
		errs = append(errs, validateRecursiveReadOnly(m, path)...)
	}
	return errs
}

// validateSubPaths reports a wrong subPath without the mount's index, as the API always has.
func validateSubPaths(m *corev1.VolumeMount, list, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if m.SubPath != "" {
		errs = append(errs, validate.LocalPath(m.SubPath, list.Child("subPath"))...)
	}
	if m.SubPathExpr != "" {
		if m.SubPath != "" {
			errs = append(errs, field.Invalid(path.Child("subPathExpr"), m.SubPathExpr,
				"subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, validate.LocalPath(m.SubPathExpr, list.Child("subPathExpr"))...)
	}
	return errs
}

// validatePropagation: mounts of a container reach the host only from a privileged one.
func validatePropagation(m *corev1.VolumeMount, c *corev1.Container, path *field.Path) field.ErrorList {
	if m.MountPropagation == nil {
		return nil
	}
	at := path.Child("mountPropagation")
	errs := validate.OneOf(at, *m.MountPropagation, corev1.MountPropagationBidirectional,
		corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
	privileged := c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
	if *m.MountPropagation == corev1.MountPropagationBidirectional && !privileged {
		errs = append(errs, field.Forbidden(at,
			"Bidirectional mount propagation is available only to privileged containers"))
	}
	return errs
}

func validateRecursiveReadOnly(m *corev1.VolumeMount, path *field.Path) field.ErrorList {
	if m.RecursiveReadOnly == nil {
		return nil
	}
	at := path.Child("recursiveReadOnly")
	errs := validate.OneOf(at, *m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled,
		corev1.RecursiveReadOnlyIfPossible)
	if len(errs) > 0 || *m.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return errs
	}
	if !m.ReadOnly {
		errs = append(errs, field.Forbidden(at, "may only be specified when readOnly is true"))
	}
	if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
		errs = append(errs, field.Forbidden(at, "may only be specified when mountPropagation is None or not specified"))
	}
	return errs
}

// devices checks which raw block volumes a container gets.
func (r containerRules) devices(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names, points := sets.New[string](), sets.New[string]()
	mounts, mountPaths := sets.New[string](), sets.New[string]()
	for _, m := range c.VolumeMounts {
		mounts.Insert(m.Name)
		mountPaths.Insert(m.MountPath)
	}
	for i, d := range c.VolumeDevices {
		at := path.Index(i)
		if d.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if names.Has(d.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must be unique"))
		}
		if src, ok := r.volumes[d.Name]; !ok {
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		} else if src.PersistentVolumeClaim == nil && src.Ephemeral == nil {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name,
				"can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		errs = append(errs, validate.Required(at.Child("devicePath"), d.DevicePath)...)
		if d.DevicePath != "" {
			errs = append(errs, validate.NoBacksteps(d.DevicePath, at.Child("devicePath"))...)
		}
		if points.Has(d.DevicePath) {
			errs = append(errs, field.Invalid(at.Child("devicePath"), d.DevicePath, "must be unique"))
		}
		if mountPaths.Has(d.DevicePath) && d.DevicePath != "" {
			errs = append(errs, field.Invalid(at.Child("devicePath"), d.DevicePath,
				"must not already exist as a path in volumeMounts"))
		}
		if mounts.Has(d.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must not already exist in volumeMounts"))
		}
		names.Insert(d.Name)
		points.Insert(d.DevicePath)
	}
	return errs
}
