package statefulset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller/podtemplate"
)

func podName(set *appsv1.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// ordinalOf reads a pod's ordinal from its name. ok is false for pods whose name is not the set's, and for "web-01":
// every ordinal has one name, so that no two pods claim it.
func ordinalOf(set *appsv1.StatefulSet, p *corev1.Pod) (ordinal int, ok bool) {
	digits, ok := strings.CutPrefix(p.Name, set.Name+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), err == nil && podName(set, int(n)) == p.Name
}

// identity are the labels that name a pod.
func identity(set *appsv1.StatefulSet, ordinal int) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: podName(set, ordinal),
		appsv1.PodIndexLabel:           strconv.Itoa(ordinal),
	}
}

// identified reports whether the pod has the labels that name it. A pod that lost them stays in the set by its name and
// owner, but a Service that selects it no longer finds it.
func identified(set *appsv1.StatefulSet, p *corev1.Pod) bool {
	n, _ := ordinalOf(set, p)
	for k, v := range identity(set, n) {
		if p.Labels[k] != v {
			return false
		}
	}
	return true
}

// identityPatch is the merge patch that gives the pod its labels, if it is still the same pod.
func identityPatch(set *appsv1.StatefulSet, p *corev1.Pod) ([]byte, error) {
	n, _ := ordinalOf(set, p)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID, "labels": identity(set, n)}})
	if err != nil {
		return nil, fmt.Errorf("encoding labels: %w", err)
	}
	return patch, nil
}

// revisionOf is the name of the revision that a pod was made from; "" is unknown.
func revisionOf(p *corev1.Pod) string { return p.Labels[appsv1.StatefulSetRevisionLabel] }

// podFor makes the pod of a number from a revision.
func podFor(set *appsv1.StatefulSet, r revision, ordinal int) *corev1.Pod {
	p := podtemplate.PodOf(set, kind(), r.template)
	p.Name = podName(set, ordinal)
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, set.Spec.ServiceName
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	for k, v := range identity(set, ordinal) {
		p.Labels[k] = v
	}
	p.Labels[appsv1.StatefulSetRevisionLabel] = r.name
	mountClaims(set, p)
	return p
}

// mountClaims adds a volume for each claim template; it takes the place of the pod template's volume of that name.
func mountClaims(set *appsv1.StatefulSet, p *corev1.Pod) {
	var claims []corev1.Volume
	for i := range set.Spec.VolumeClaimTemplates {
		name := set.Spec.VolumeClaimTemplates[i].Name
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		claims = append(claims, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(name, p.Name)},
		}})
	}
	p.Spec.Volumes = append(claims, p.Spec.Volumes...)
}
