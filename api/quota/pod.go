package quota

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// The prefixes of the names that bound what pods ask for.
const (
	requestsPrefix = corev1.DefaultResourceRequestsPrefix
	limitsPrefix   = "limits."
)

// compute tells the resources that are counted by the names cpu, requests.cpu and limits.cpu alike.
func compute(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// extended resources have a domain that is not Kubernetes' own, except those that each device class has.
func extended(name corev1.ResourceName) bool {
	s := string(name)
	if class, ok := strings.CutPrefix(s, resourcev1.ResourceDeviceClassPrefix); ok {
		return class != ""
	}
	return strings.Contains(s, "/") && !strings.Contains(s, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(s, countPrefix)
}

func countsPods(name corev1.ResourceName) bool {
	if name == corev1.ResourcePods || compute(name) || hugePages(name) {
		return true
	}
	if rest, ok := strings.CutPrefix(string(name), requestsPrefix); ok {
		r := corev1.ResourceName(rest)
		return compute(r) || hugePages(r) || extended(r)
	}
	rest, ok := strings.CutPrefix(string(name), limitsPrefix)
	return ok && compute(corev1.ResourceName(rest))
}

// addPod counts a pod's requests and limits while it lives.
func addPod(used corev1.ResourceList, p *corev1.Pod, now time.Time) {
	if over(p, now) {
		return
	}
	used[corev1.ResourcePods] = one()
	opts := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	addCompute(used, resourcehelper.PodRequests(p, opts), resourcehelper.PodLimits(p, opts))
}

// over reports whether a pod has ended, or should have: one that is stuck after its grace period, as on a lost node,
// must not keep its successors out.
func over(p *corev1.Pod, now time.Time) bool {
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return true
	}
	if p.DeletionTimestamp == nil || p.DeletionGracePeriodSeconds == nil {
		return false
	}
	return now.After(p.DeletionTimestamp.Add(time.Duration(*p.DeletionGracePeriodSeconds) * time.Second))
}

// addCompute files requests and limits under all the names that quotas have for them.
func addCompute(used, requests, limits corev1.ResourceList) {
	for name, q := range requests {
		if compute(name) || hugePages(name) {
			used[name] = q
		}
		if compute(name) || hugePages(name) || extended(name) {
			used[requestsPrefix+name] = q
		}
	}
	for name, q := range limits {
		if compute(name) {
			used[limitsPrefix+name] = q
		}
	}
}

// mandatory tells the resources that every container must ask for once a quota bounds them.
func mandatory(name corev1.ResourceName) bool {
	s := strings.TrimPrefix(strings.TrimPrefix(string(name), requestsPrefix), limitsPrefix)
	return s == string(corev1.ResourceCPU) || s == string(corev1.ResourceMemory)
}

// Unspecified tells what a pod must say before a quota that bounds the resources names can count it: each container its
// cpu and memory, unless the pod says it for all of them. nil if nothing is missing.
func Unspecified(p *corev1.Pod, names []corev1.ResourceName) error {
	if resourcehelper.IsPodLevelResourcesSet(p) {
		return nil
	}
	var missing []string
	for _, name := range slices.Sorted(slices.Values(names)) {
		if !mandatory(name) {
			continue
		}
		var silent []string
		for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
			for i := range list {
				said := corev1.ResourceList{}
				addCompute(said, list[i].Resources.Requests, list[i].Resources.Limits)
				if _, ok := said[name]; !ok {
					silent = append(silent, list[i].Name)
				}
			}
		}
		if len(silent) > 0 {
			slices.Sort(silent)
			missing = append(missing, fmt.Sprintf("%s for: %s", name, strings.Join(silent, ",")))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("must specify %s", strings.Join(missing, "; "))
}
