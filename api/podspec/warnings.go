package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec/volumes"
	"bonsai/api/quantity"
	"bonsai/api/validate"
)

// Warnings lists common mistakes in a pod or a pod template that are no errors, in Kubernetes' order; root is the
// template's path, nil for a pod.
func Warnings(s *corev1.PodSpec, annotations map[string]string, root *field.Path) []string {
	path, annotated := root.Child("spec"), root.Child("metadata", "annotations")
	w := nodeWarnings(s, path)
	w = append(w, spreadWarnings(s, path)...)
	w = append(w, oldAnnotation(annotations, criticalPodAnnotation, annotated,
		`non-functional in v1.16+; use the "priorityClassName" field instead`)...)
	for i := range s.Volumes {
		w = append(w, volumes.Warnings(&s.Volumes[i].VolumeSource, path.Child("volumes").Index(i))...)
	}
	w = append(w, volumes.ProjectedWarnings(s.Volumes)...)
	w = append(w, duplicateWarnings(s, path)...)
	w = append(w, quantity.Fractions(s.Overhead, corev1.ResourceMemory, path.Child("overhead"))...)
	w = append(w, oldAnnotation(annotations, seccompPodAnnotation, annotated, newSeccomp)...)
	w = append(w, eachContainer(s, func(c *corev1.Container, at *field.Path) []string {
		w := oldAnnotation(annotations, seccompContainerAnnotations+c.Name, annotated, newSeccomp)
		if root != nil && EffectiveAppArmor(s, c) == nil { // for a pod, AppArmorWarnings
			w = append(w, appArmorWarnings(c, annotations, annotated)...)
		}
		return append(w, containerWarnings(c, at)...)
	}, path)...)
	var ports portWarner
	w = append(w, eachContainer(s, ports.warn, path)...)
	w = append(w, eachContainer(s, portNames{}.warn, path)...)
	if s.TerminationGracePeriodSeconds != nil && *s.TerminationGracePeriodSeconds < 0 {
		w = append(w, fmt.Sprintf("%s: must be >= 0; negative values are invalid and will be treated as 1",
			path.Child("terminationGracePeriodSeconds")))
	}
	w = append(w, affinityWarnings(s, path)...)
	return append(w, addressWarnings(s, path)...)
}

// eachContainer collects what of says of the containers in their order, those of initialization first.
func eachContainer(s *corev1.PodSpec, of func(*corev1.Container, *field.Path) []string, path *field.Path) []string {
	var w []string
	for i := range s.InitContainers {
		w = append(w, of(&s.InitContainers[i], path.Child("initContainers").Index(i))...)
	}
	for i := range s.Containers {
		w = append(w, of(&s.Containers[i], path.Child("containers").Index(i))...)
	}
	return w
}

// addressWarnings tells of addresses that are not as they would be shown.
func addressWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	if s.DNSConfig != nil {
		for i, a := range s.DNSConfig.Nameservers {
			w = append(w, validate.IPWarnings(path.Child("dnsConfig", "nameservers").Index(i), a)...)
		}
	}
	for i, a := range s.HostAliases {
		w = append(w, validate.IPWarnings(path.Child("hostAliases").Index(i).Child("ip"), a.IP)...)
	}
	return w
}

// duplicateWarnings looks for hosts and Secrets that are named twice, or not at all.
func duplicateWarnings(s *corev1.PodSpec, path *field.Path) []string {
	var w []string
	hosts, secrets := sets.New[string](), sets.New[string]()
	for i, a := range s.HostAliases {
		if hosts.Has(a.IP) {
			w = append(w, fmt.Sprintf("%s: duplicate ip %q", path.Child("hostAliases").Index(i).Child("ip"), a.IP))
		}
		hosts.Insert(a.IP)
	}
	at := path.Child("imagePullSecrets")
	for i, r := range s.ImagePullSecrets {
		if secrets.Has(r.Name) {
			w = append(w, fmt.Sprintf("%s: duplicate name %q", at.Index(i).Child("name"), r.Name))
		}
		secrets.Insert(r.Name)
	}
	for i, r := range s.ImagePullSecrets {
		if r.Name == "" {
			w = append(w, fmt.Sprintf("%s: invalid empty name %q", at.Index(i).Child("name"), r.Name))
		}
	}
	return w
}

// containerWarnings looks for fractions of bytes, and variables that are named twice.
func containerWarnings(c *corev1.Container, path *field.Path) []string {
	var w []string
	for _, r := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		w = append(w, quantity.Fractions(c.Resources.Limits, r, path.Child("resources", "limits"))...)
		w = append(w, quantity.Fractions(c.Resources.Requests, r, path.Child("resources", "requests"))...)
	}
	return append(w, envWarnings(c, path)...)
}

// envWarnings: a later variable hides an earlier one of its name, unless it refers to it.
func envWarnings(c *corev1.Container, path *field.Path) []string {
	var w []string
	first := map[string]int{}
	for i, e := range c.Env {
		if _, ok := first[e.Name]; ok {
			w = append(w, fmt.Sprintf("%s: hides previous definition of %q, which may be dropped when using apply",
				path.Child("env").Index(i), e.Name))
		} else {
			first[e.Name] = i
		}
	}
	return w
}
