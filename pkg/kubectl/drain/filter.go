package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// limits say which pods may be moved away.
type limits struct {
	force, ignoreDaemonSets, deleteEmptyDir bool
	// skipDeleted leaves out pods whose deletion was asked for longer ago than this many seconds; 0 leaves out none.
	skipDeleted int
}

// verdict is the decision about a pod: it is moved or left, maybe with a warning, or its node cannot be drained, for
// the reason.
type verdict struct {
	move            bool
	warning, reason string
}

const (
	daemonFatal   = "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
	daemonWarning = "ignoring DaemonSet-managed Pods"
	localFatal    = "cannot delete Pods with local storage (use --delete-emptydir-data to override)"
	localWarning  = "deleting Pods with local storage"
	aloneFatal    = "cannot delete Pods that declare no controller (use --force to override)"
	aloneWarning  = "deleting Pods that declare no controller"
)

// judge decides about one pod. The order of the rules matters:
//   - A pod that has been terminating for longer than skipDeleted is left: the user asked not to wait
//     for it.
//   - A pod of a DaemonSet is left, or refused without --ignore-daemonsets. Its controller ignores spec.unschedulable
//     and would start it again at once.
//   - A mirror pod is left: its source is a file of the node, and deleting it through the API ends no container.
//   - A pod whose data or whose only copy would be lost is refused without its flag.
//
// A pod that is over needs no flag. A later warning replaces an earlier one.
func (l limits) judge(pod *corev1.Pod, now time.Time) verdict {
	owner := metav1.GetControllerOf(pod)
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if d := pod.DeletionTimestamp; l.skipDeleted > 0 && d != nil &&
		now.Sub(d.Time) > time.Duration(l.skipDeleted)*time.Second {
		return verdict{}
	}
	if owner != nil && owner.Kind == "DaemonSet" && !over {
		if l.ignoreDaemonSets {
			return verdict{warning: daemonWarning}
		}
		return verdict{reason: daemonFatal}
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return verdict{}
	}
	v := verdict{move: true}
	if !over && hasLocalStorage(pod) {
		if !l.deleteEmptyDir {
			return verdict{reason: localFatal}
		}
		v.warning = localWarning
	}
	if !over && owner == nil {
		if !l.force {
			return verdict{reason: aloneFatal}
		}
		v.warning = aloneWarning
	}
	return v
}

func hasLocalStorage(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

// choose returns the pods to move, what to warn about, and why not all may be moved.
func (l limits) choose(pods []corev1.Pod, now time.Time) (move []corev1.Pod, warning string, err error) {
	warnings, reasons := map[string][]string{}, map[string][]string{}
	for i := range pods {
		p := &pods[i]
		name := p.Namespace + "/" + p.Name
		v := l.judge(p, now)
		if v.move {
			move = append(move, *p)
		}
		if v.warning != "" {
			warnings[v.warning] = append(warnings[v.warning], name)
		}
		if v.reason != "" {
			reasons[v.reason] = append(reasons[v.reason], name)
		}
	}
	var errs []error
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		errs = append(errs, fmt.Errorf("%s: %s", r, strings.Join(reasons[r], ", ")))
	}
	var lines []string
	for _, w := range slices.Sorted(maps.Keys(warnings)) {
		lines = append(lines, w+": "+strings.Join(warnings[w], ", "))
	}
	return move, strings.Join(lines, "; "), utilerrors.NewAggregate(errs)
}
