package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ephemeralContainers checks spec.ephemeralContainers: names are unique in the pod, a target exists, and what would
// need a restart or guaranteed resources is left out.
func (r containerRules) ephemeralContainers(cs []corev1.EphemeralContainer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	targets, names := sets.New[string](), sets.New[string]()
	for i := range r.spec.Containers {
		targets.Insert(r.spec.Containers[i].Name)
	}
	names.Insert(targets.UnsortedList()...)
	for i := range r.spec.InitContainers {
		names.Insert(r.spec.InitContainers[i].Name)
		if IsSidecar(&r.spec.InitContainers[i]) {
			targets.Insert(r.spec.InitContainers[i].Name)
		}
	}
	for i := range cs {
		c, p := corev1.Container(cs[i].EphemeralContainerCommon), path.Index(i)
		errs = append(errs, r.common(&c, p)...)
		errs = append(errs, uniqueName(names, c.Name, p)...)
		if t := cs[i].TargetContainerName; t != "" && !targets.Has(t) {
			errs = append(errs, field.NotFound(p.Child("targetContainerName"), t))
		}
		errs = append(errs, forbiddenForEphemeral(&c, p)...)
		for j, m := range c.VolumeMounts {
			if m.SubPath != "" {
				errs = append(errs, field.Forbidden(p.Child("volumeMounts").Index(j).Child("subPath"),
					"cannot be set for an Ephemeral Container"))
			}
			if m.SubPathExpr != "" {
				errs = append(errs, field.Forbidden(p.Child("volumeMounts").Index(j).Child("subPathExpr"),
					"cannot be set for an Ephemeral Container"))
			}
		}
	}
	return errs
}

// forbiddenForEphemeral finds the fields of a container that an ephemeral one may not have.
func forbiddenForEphemeral(c *corev1.Container, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		name  string
		isSet bool
	}{
		{"ports", len(c.Ports) > 0},
		{"livenessProbe", c.LivenessProbe != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
		{"lifecycle", c.Lifecycle != nil},
		{"resources", len(c.Resources.Limits)+len(c.Resources.Requests)+len(c.Resources.Claims) > 0},
		{"resizePolicy", len(c.ResizePolicy) > 0},
		{"restartPolicy", c.RestartPolicy != nil},
		{"restartPolicyRules", len(c.RestartPolicyRules) > 0},
	} {
		if f.isSet {
			errs = append(errs, field.Forbidden(path.Child(f.name), "cannot be set for an Ephemeral Container"))
		}
	}
	return errs
}
