package limitranger

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// annotation says what was filled in.
const annotation = "kubernetes.io/limit-ranger"

// fillIn gives each container the requests and limits that l has defaults for and that it has not, and says so in an
// annotation.
func fillIn(pod *corev1.Pod, l *corev1.LimitRange) {
	defaults := defaultsOf(l)
	var did []string
	for i := range pod.Spec.Containers {
		did = append(did, complete(&pod.Spec.Containers[i], "container", defaults)...)
	}
	for i := range pod.Spec.InitContainers {
		did = append(did, complete(&pod.Spec.InitContainers[i], "init container", defaults)...)
	}
	if len(did) == 0 {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotation] = "LimitRanger plugin set: " + strings.Join(did, "; ")
}

func defaultsOf(l *corev1.LimitRange) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for name, q := range item.DefaultRequest {
			r.Requests[name] = q
		}
		for name, q := range item.Default {
			r.Limits[name] = q
		}
	}
	return r
}

// complete returns what it set, in words.
func complete(c *corev1.Container, kind string, defaults corev1.ResourceRequirements) []string {
	var did []string
	note := func(what string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			did = append(did, strings.Join(names, ", ")+" "+what+" for "+kind+" "+c.Name)
		}
	}
	note("request", merge(&c.Resources.Requests, defaults.Requests))
	note("limit", merge(&c.Resources.Limits, defaults.Limits))
	return did
}

// merge adds what is missing in l and returns its names.
func merge(l *corev1.ResourceList, defaults corev1.ResourceList) []string {
	var names []string
	for name, q := range defaults {
		if _, ok := (*l)[name]; ok {
			continue
		}
		if *l == nil {
			*l = corev1.ResourceList{}
		}
		(*l)[name] = q.DeepCopy()
		names = append(names, string(name))
	}
	return names
}
