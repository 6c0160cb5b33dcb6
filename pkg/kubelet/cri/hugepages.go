package cri

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func hugepages(l corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for n := range l {
		if strings.HasPrefix(string(n), corev1.ResourceHugePagesPrefix) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// pageSize turns "hugepages-2Mi" into the runtime's "2MB".
func pageSize(n corev1.ResourceName) string {
	size := strings.TrimPrefix(string(n), corev1.ResourceHugePagesPrefix)
	if _, err := resource.ParseQuantity(size); err != nil {
		return size
	}
	return strings.TrimSuffix(size, "i") + "B"
}
