package env

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Field returns the value of a downward API field of the pod's metadata: metadata.name, metadata.namespace,
// metadata.uid, metadata.labels and metadata.annotations as a whole (one key="value" a line, sorted), or one of them as
// metadata.labels['key'].
func Field(pod *corev1.Pod, path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.annotations":
			if errs := validation.IsQualifiedName(strings.ToLower(key)); len(errs) > 0 {
				return "", fmt.Errorf("invalid key subscript in %s: %s", path, strings.Join(errs, ";"))
			}
			return pod.Annotations[key], nil
		case "metadata.labels":
			if errs := validation.IsQualifiedName(key); len(errs) > 0 {
				return "", fmt.Errorf("invalid key subscript in %s: %s", path, strings.Join(errs, ";"))
			}
			return pod.Labels[key], nil
		}
		return "", fmt.Errorf("fieldPath %q does not support subscript", path)
	}
	switch path {
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %v", path)
}

// field adds to Field those fields which the kubelet knows better than the object: its node, account and addresses.
func (b *builder) field(path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return b.in.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return b.in.Pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(b.in.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(b.in.HostIPs, ","), nil
	case "status.podIP":
		return first(b.in.PodIPs), nil
	case "status.podIPs":
		return strings.Join(b.in.PodIPs, ","), nil
	}
	return Field(b.in.Pod, path)
}

// subscript splits name['key'].
func subscript(path string) (name, key string, ok bool) {
	rest, ok := strings.CutSuffix(path, "']")
	if !ok {
		return "", "", false
	}
	name, key, ok = strings.Cut(rest, "['")
	return name, key, ok && name != ""
}

func lines(m map[string]string) string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%v=%q", k, m[k]))
	}
	return strings.Join(out, "\n")
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}
