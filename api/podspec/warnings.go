package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec/volumes"
)

// Warnings lists common mistakes in a pod or a pod template that are no errors; root is the template's path, nil for a pod.
func Warnings(s *corev1.PodSpec, annotations map[string]string, root *field.Path) []string {
	var w []string
	path := root.Child("spec")
	for _, f := range deprecatedNodeLabels() {
		if _, ok := s.NodeSelector[f[0]]; ok {
			w = append(w, fmt.Sprintf("%s: deprecated since %s; use %q instead", path.Child("nodeSelector").Key(f[0]), f[1], f[2]))
		}
	}
	for i := range s.Volumes {
		w = append(w, volumes.Deprecated(&s.Volumes[i].VolumeSource, path.Child("volumes").Index(i))...)
	}
	w = append(w, annotationWarnings(annotations, root.Child("metadata", "annotations"))...)
	w = append(w, volumes.ProjectedWarnings(s.Volumes)...)
	w = append(w, selectorWarnings(s, path)...)
	w = append(w, duplicateWarnings(s, path)...)
	if s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds < 0 {
		w = append(w, fmt.Sprintf("%s: must be >= 0; negative values are invalid and will be treated as 1", path.Child("terminationGracePeriodSeconds")))
	}
	return append(w, containerWarnings(s, path)...)
}

// deprecatedNodeLabels are old label, version, and new label.
func deprecatedNodeLabels() [][3]string {
	return [][3]string{
		{corev1.LabelFailureDomainBetaZone, "v1.17", corev1.LabelTopologyZone},
		{corev1.LabelFailureDomainBetaRegion, "v1.17", corev1.LabelTopologyRegion},
		{corev1.LabelInstanceType, "v1.17", corev1.LabelInstanceTypeStable},
		{"beta.kubernetes.io/arch", "v1.14", corev1.LabelArchStable},
		{"beta.kubernetes.io/os", "v1.14", corev1.LabelOSStable},
	}
}

func duplicateWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	hosts := map[string]bool{}
	for i, a := range s.HostAliases {
		if hosts[a.IP] {
			w = append(w, fmt.Sprintf("%s: duplicate ip %q", path.Child("hostAliases").Index(i).Child("ip"), a.IP))
		}
		hosts[a.IP] = true
	}
	secrets := sets.New[string]()
	for i, r := range s.ImagePullSecrets {
		at := path.Child("imagePullSecrets").Index(i).Child("name")
		switch {
		case r.Name == "":
			w = append(w, fmt.Sprintf("%s: invalid empty name %q", at, r.Name))
		case secrets.Has(r.Name):
			w = append(w, fmt.Sprintf("%s: duplicate name %q", at, r.Name))
		}
		secrets.Insert(r.Name)
	}
	return w
}

// containerWarnings looks for variables and ports that are named twice, and fractions of bytes.
func containerWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	var ports portWarner
	for _, group := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", s.InitContainers}, {"containers", s.Containers}} {
		for i := range group.containers {
			c, at := &group.containers[i], path.Child(group.name).Index(i)
			for _, l := range []struct {
				name string
				list corev1.ResourceList
			}{{"limits", c.Resources.Limits}, {"requests", c.Resources.Requests}} {
				for _, r := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
					if q, ok := l.list[r]; ok && q.MilliValue()%1000 != 0 {
						w = append(w, fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", at.Child("resources").Child(l.name).Key(string(r)), q.String()))
					}
				}
			}
			w = append(w, envWarnings(c, at)...)
			w = append(w, ports.warn(c, at)...)
		}
	}
	return w
}

// envWarnings: a later variable hides an earlier one of its name, unless it refers to it.
func envWarnings(c *corev1.Container, path *field.Path) []string {
	var w []string
	first := map[string]int{}
	for i, e := range c.Env {
		if _, ok := first[e.Name]; ok {
			w = append(w, fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply", path.Child("env").Index(i), e.Name))
		} else {
			first[e.Name] = i
		}
	}
	return w
}
