package emptydir

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/volume"
)

// hugePages is a file system of huge pages: of the size that the medium names ("HugePages-2Mi"), which the pod must
// request, or of the only size that it requests ("HugePages"). The kernel bounds it by the pod's cgroup.
func hugePages(pod *corev1.Pod, medium corev1.StorageMedium) (*volume.FileSystem, error) {
	named := strings.TrimPrefix(string(medium), string(corev1.StorageMediumHugePagesPrefix))
	var want resource.Quantity
	if medium != corev1.StorageMediumHugePages {
		var err error
		if want, err = resource.ParseQuantity(named); err != nil {
			return nil, fmt.Errorf("medium %q names no size of huge pages: %w", medium, err)
		}
	}
	var size resource.Quantity
	for _, text := range requestedPages(pod) {
		q, err := resource.ParseQuantity(text)
		switch {
		case err != nil:
		case medium != corev1.StorageMediumHugePages:
			if q.Cmp(want) == 0 {
				size = q
			}
		case !size.IsZero() && size.Cmp(q) != 0:
			return nil, fmt.Errorf("medium: %s can't be used if container requests multiple huge page sizes", medium)
		default:
			size = q
		}
	}
	if size.IsZero() {
		return nil, fmt.Errorf("medium: %s can't be used: the pod requests no huge pages of that size", medium)
	}
	return &volume.FileSystem{Type: "hugetlbfs", Options: fmt.Sprintf("pagesize=%d", size.Value())}, nil
}

// requestedPages are the sizes of huge pages that the pod or its containers request, as their resources name them:
// "2Mi".
func requestedPages(pod *corev1.Pod) (sizes []string) {
	add := func(list corev1.ResourceList) {
		for name := range list {
			if size, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); ok {
				sizes = append(sizes, size)
			}
		}
	}
	if pod.Spec.Resources != nil {
		add(pod.Spec.Resources.Requests)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			add(list[i].Resources.Requests)
		}
	}
	return sizes
}
