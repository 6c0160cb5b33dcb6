package env

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/runtime"
)

// ResourceOf is Resource for the container of that name.
func ResourceOf(pod *corev1.Pod, container string, sel *corev1.ResourceFieldSelector,
	allocatable corev1.ResourceList) (string, error) {
	c := runtime.ContainerSpec(pod, container)
	if c == nil {
		return "", fmt.Errorf("container %q not found", container)
	}
	return resourceValue(c, sel, allocatable)
}

// resourceValue returns a request or limit of the container in units of the selector's divisor (1 if it has none),
// rounded up. A limit of cpu, memory or ephemeral-storage that is not set is what the node can allocate.
func resourceValue(c *corev1.Container, sel *corev1.ResourceFieldSelector, allocatable corev1.ResourceList) (string,
	error) {
	kind, name, ok := strings.Cut(sel.Resource, ".")
	r := corev1.ResourceName(name)
	if !ok || (kind != "limits" && kind != "requests") || !supported(r) {
		return "", fmt.Errorf("unsupported container resource : %v", sel.Resource)
	}
	var q resource.Quantity
	if kind == "requests" {
		q = c.Resources.Requests[r]
	} else if l, ok := c.Resources.Limits[r]; ok && !l.IsZero() {
		q = l
	} else {
		q = allocatable[r]
	}
	divisor := sel.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if r == corev1.ResourceCPU {
		return ceil(q.MilliValue(), divisor.MilliValue()), nil
	}
	return ceil(q.Value(), divisor.Value()), nil
}

func supported(r corev1.ResourceName) bool {
	return r == corev1.ResourceCPU || r == corev1.ResourceMemory || r == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(r), corev1.ResourceHugePagesPrefix)
}

func ceil(a, b int64) string {
	n := a / b
	if a%b > 0 {
		n++
	}
	return strconv.FormatInt(n, 10)
}
