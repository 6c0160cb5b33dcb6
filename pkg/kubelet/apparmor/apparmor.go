// Package apparmor says which pods want AppArmor, and whether the node has it.
//
// The rules: https://kubernetes.io/docs/tutorials/security/apparmor/.
package apparmor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
)

// errDisabled is why a pod that wants AppArmor cannot run on a node without it.
var errDisabled = errors.New("Cannot enforce AppArmor: AppArmor is not enabled on the host")

// Enabled reports whether containers can be confined on the machine whose file system is at root: the kernel enforces
// profiles, and there is what container runtimes load theirs with. containerd looks at the same, and would create no
// container of a pod that asks for a profile.
func Enabled(root string) bool {
	for _, needed := range []string{"sys/kernel/security/apparmor", "sbin/apparmor_parser"} {
		if _, err := os.Stat(filepath.Join(root, needed)); err != nil {
			return false
		}
	}
	enabled, err := os.ReadFile(filepath.Join(root, "sys/module/apparmor/parameters/enabled"))
	return err == nil && strings.HasPrefix(string(enabled), "Y")
}

// Check returns ErrDisabled if AppArmor is not enabled and a container of the pod is to be confined by a profile, its
// own or the pod's.
func Check(enabled bool, pod *corev1.Pod) error {
	if enabled {
		return nil
	}
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for _, e := range pod.Spec.EphemeralContainers {
		containers = append(containers, corev1.Container(e.EphemeralContainerCommon))
	}
	for i := range containers {
		if p := podspec.EffectiveAppArmor(&pod.Spec,
			&containers[i]); p != nil && p.Type != corev1.AppArmorProfileTypeUnconfined {
			return errDisabled
		}
	}
	return nil
}
