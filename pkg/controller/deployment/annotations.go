package deployment

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The annotations by which a rollout's state lives on its ReplicaSets.
//
// revision and revision-history are what kubectl rollout history reads. desired-replicas and max-replicas are the size
// for which a ReplicaSet was last resized, from which the controller sees a change of size in the middle of a rollout.
// maxHistoryLength bounds revision-history, in bytes.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
	rollbackAnnotation = "deprecated.deployment.rollback.to"
	maxHistoryLength   = 2000
)

// own reports whether an annotation is not to be copied from the Deployment to its ReplicaSets. These are about the
// object that carries them: a copy would make a ReplicaSet claim the revision of its Deployment, or a configuration
// that nobody applied to it.
func own(key string) bool {
	switch key {
	case corev1.LastAppliedConfigAnnotation, revisionAnnotation, historyAnnotation, desiredAnnotation, maxAnnotation,
		rollbackAnnotation:
		return true
	}
	return false
}

// revisionOf returns 0 for a ReplicaSet without a readable revision; real ones begin at 1.
func revisionOf(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func maxRevision(sets []*appsv1.ReplicaSet) (n int64) {
	for _, rs := range sets {
		n = max(n, revisionOf(rs))
	}
	return n
}

// annotate copies the Deployment's annotations to its new ReplicaSet and raises the revision to rev if that is higher,
// keeping the former in the history. It reports whether anything changed.
//
// Annotations that the Deployment lost stay on the ReplicaSet: nothing says who set them.
func annotate(rs *appsv1.ReplicaSet, d *appsv1.Deployment, rev int64, exists bool) bool {
	changed := false
	set := func(k, v string) {
		if old, ok := rs.Annotations[k]; ok && old == v {
			return
		}
		if rs.Annotations == nil {
			rs.Annotations = map[string]string{}
		}
		rs.Annotations[k] = v
		changed = true
	}
	for k, v := range d.Annotations {
		if _, has := rs.Annotations[k]; !own(k) && !has || !own(k) && rs.Annotations[k] != v {
			set(k, v)
		}
	}
	if former := revisionOf(rs); former < rev {
		set(revisionAnnotation, strconv.FormatInt(rev, 10))
		if former > 0 {
			set(historyAnnotation, appendHistory(rs.Annotations[historyAnnotation], former))
		}
	}
	if !exists {
		return annotateSize(rs, d) || changed
	}
	return changed
}

// appendHistory adds a revision to the comma-separated list and drops the oldest while the list is too long.
func appendHistory(history string, rev int64) string {
	var all []string
	if history != "" {
		all = strings.Split(history, ",")
	}
	all = append(all, strconv.FormatInt(rev, 10))
	for len(all) > 1 && len(strings.Join(all, ",")) > maxHistoryLength {
		all = all[1:]
	}
	return strings.Join(all, ",")
}

// annotateSize remembers the Deployment's size, and its maximum while rolling, on a ReplicaSet.
//
// scaled compares desired-replicas with the Deployment: without the annotation a change of size in the middle of a
// rollout would look like a step of it.
func annotateSize(rs *appsv1.ReplicaSet, d *appsv1.Deployment) bool {
	surge, _ := limits(d)
	desired, most := strconv.Itoa(int(*d.Spec.Replicas)), strconv.Itoa(int(*d.Spec.Replicas+surge))
	if rs.Annotations[desiredAnnotation] == desired && rs.Annotations[maxAnnotation] == most {
		return false
	}
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	rs.Annotations[desiredAnnotation], rs.Annotations[maxAnnotation] = desired, most
	return true
}

func sizeOf(rs *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseInt(rs.Annotations[annotation], 10, 32)
	return int32(n), err == nil
}

// setRevision writes the revision on the Deployment and reports whether it changed.
func setRevision(d *appsv1.Deployment, rev string) bool {
	if d.Annotations[revisionAnnotation] == rev {
		return false
	}
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[revisionAnnotation] = rev
	return true
}
