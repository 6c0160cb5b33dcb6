package kubeletproxy

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// chooseContainer returns the container that a request means: the named one, or the only one.
func chooseContainer(pod *corev1.Pod, name string) (string, error) {
	regular, initial, ephemeral := containerNames(pod)
	if name == "" {
		if len(regular) == 1 {
			return regular[0], nil
		}
		msg := fmt.Sprintf("a container name must be specified for pod %s", pod.Name)
		if len(regular) > 0 {
			msg += fmt.Sprintf(", choose one of: %s", regular)
		}
		if len(initial) > 0 {
			msg += fmt.Sprintf(" or one of the init containers: %s", initial)
		}
		if len(ephemeral) > 0 {
			msg += fmt.Sprintf(" or one of the ephemeral containers: %s", ephemeral)
		}
		return "", apierrors.NewBadRequest(msg)
	}
	for _, list := range [][]string{regular, initial, ephemeral} {
		for _, n := range list {
			if n == name {
				return name, nil
			}
		}
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
}

func containerNames(pod *corev1.Pod) (regular, initial, ephemeral []string) {
	for _, c := range pod.Spec.Containers {
		regular = append(regular, c.Name)
	}
	for _, c := range pod.Spec.InitContainers {
		initial = append(initial, c.Name)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		ephemeral = append(ephemeral, c.Name)
	}
	return regular, initial, ephemeral
}
