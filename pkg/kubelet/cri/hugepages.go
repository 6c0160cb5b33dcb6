package cri

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// hugepageLimits returns the limits of every size of huge pages: those that are listed, and 0 for the other sizes that
// the node has, because any container could use up a size without a limit. node is the node's capacity.
func hugepageLimits(limits, node corev1.ResourceList) []*runtimeapi.HugepageLimit {
	var names []corev1.ResourceName
	for _, l := range []corev1.ResourceList{limits, node} {
		for n := range l {
			if strings.HasPrefix(string(n), corev1.ResourceHugePagesPrefix) && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	var out []*runtimeapi.HugepageLimit
	for _, n := range names {
		q := limits[n]
		out = append(out, &runtimeapi.HugepageLimit{PageSize: pageSize(n), Limit: uint64(q.Value())})
	}
	return out
}

// pageSize turns "hugepages-2Mi" into the runtime's "2MB".
func pageSize(n corev1.ResourceName) string {
	size := strings.TrimPrefix(string(n), corev1.ResourceHugePagesPrefix)
	if _, err := resource.ParseQuantity(size); err != nil {
		return size
	}
	return strings.TrimSuffix(size, "i") + "B"
}
