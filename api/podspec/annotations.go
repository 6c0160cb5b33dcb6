package podspec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// Annotations of long ago that fields have taken the place of.
const (
	seccompPodAnnotation        = "seccomp.security.alpha.kubernetes.io/pod"
	seccompContainerAnnotations = "container.seccomp.security.alpha.kubernetes.io/"
	criticalPodAnnotation       = "scheduler.alpha.kubernetes.io/critical-pod"
)

// DropInitAnnotations drops the annotations that containers of initialization were before they were fields, as
// Kubernetes does when it reads a pod.
func DropInitAnnotations(meta *metav1.ObjectMeta) {
	for _, name := range []string{"pod.alpha.kubernetes.io/init-containers", "pod.beta.kubernetes.io/init-containers",
		"pod.alpha.kubernetes.io/init-container-statuses", "pod.beta.kubernetes.io/init-container-statuses"} {
		delete(meta.Annotations, name)
	}
	if len(meta.Annotations) == 0 {
		meta.Annotations = nil
	}
}

const newSeccomp = `non-functional in v1.27+; use the "seccompProfile" field instead`

// oldAnnotation tells of an annotation, if it is there, what has become of it.
func oldAnnotation(annotations map[string]string, name string, path *field.Path, says string) []string {
	if _, ok := annotations[name]; !ok {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s", path.Key(name), says)}
}

func appArmorWarnings(c *corev1.Container, annotations map[string]string, path *field.Path) []string {
	return oldAnnotation(annotations, appArmorAnnotation+c.Name, path,
		`deprecated since v1.30; use the "appArmorProfile" field instead`)
}

// ValidateAnnotations checks the annotations that mean something to the system.
func ValidateAnnotations(a map[string]string, s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for _, cs := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range cs {
			names.Insert(cs[i].Name)
		}
	}
	if v, ok := a[corev1.PodDeletionCost]; ok && !validCost(v) {
		errs = append(errs, field.Invalid(path.Key(corev1.PodDeletionCost), v, "must be a 32bit integer"))
	}
	for key, profile := range a {
		name, ok := strings.CutPrefix(key, appArmorAnnotation)
		if !ok {
			continue
		}
		if !names.Has(name) {
			errs = append(errs, field.Invalid(path.Key(key), name, "container not found"))
		}
		if profile != "" && profile != "runtime/default" && profile != "unconfined" &&
			!strings.HasPrefix(profile, "localhost/") {
			errs = append(errs, field.Invalid(path.Key(key), profile, "invalid AppArmor profile name: \""+profile+"\""))
		}
	}
	return append(errs, validateSeccompAnnotations(a, path)...)
}

// validateSeccompAnnotations checks profiles that no longer mean anything, the pod's first.
func validateSeccompAnnotations(a map[string]string, path *field.Path) field.ErrorList {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(a)), func(key string) bool {
		return !strings.HasPrefix(key, seccompContainerAnnotations)
	})
	if _, ok := a[seccompPodAnnotation]; ok {
		keys = slices.Insert(keys, 0, seccompPodAnnotation)
	}
	var errs field.ErrorList
	for _, key := range keys {
		at := path.Child(key)
		switch file, local := strings.CutPrefix(a[key], "localhost/"); {
		case local:
			errs = append(errs, validate.LocalPath(file, at)...)
		case a[key] != "runtime/default" && a[key] != "docker/default" && a[key] != "unconfined":
			errs = append(errs, field.Invalid(at, a[key], "must be a valid seccomp profile"))
		}
	}
	return errs
}

// validCost reports whether s is a 32 bit number as it is written by itself: no plus sign, no leading zeros.
func validCost(s string) bool {
	if s == "0" {
		return true
	}
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || digits[0] == '0' || len(digits) > 10 {
		return false
	}
	var n int64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return false
		}
		n = n*10 + int64(d-'0')
	}
	return n <= math.MaxInt32 || (s[0] == '-' && n == -math.MinInt32)
}
