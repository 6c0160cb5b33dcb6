// Package invariants shows what controllers and schedulers never do, however they are killed and take over from one
// another: users change workloads at random, everything that the API server tells of is recorded, and a pure function
// (check) replays it revision by revision. It is a plain reading of the API's documentation and shares no code with
// what it judges.
//
// A controller decides by what it has seen, which may be older than what users have written since. So a limit that
// users change is the widest of those that the controller may still act by: those of the generations from
// status.observedGeneration on.
package invariants

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// event is one change that the API server told of. The object of a deletion is the last state.
type event struct {
	typ watch.EventType
	// version is the change's resourceVersion, which is etcd's revision: one order over all kinds.
	version uint64
	object  metav1.Object
}

// history is all that happened, and what of it others than controllers asked for.
type history struct {
	events []event
	// deleted are objects whose deletion users asked for, evicted pods for whose eviction they got a yes.
	deleted, evicted map[types.UID]bool
	// ended are pods whose node has said that nothing of them runs any more.
	ended map[types.UID]bool
}

// rule names what must never happen.
type rule string

const (
	surge        rule = "more pods than maxSurge allows"
	replicas     rule = "more pods than replicas"
	unavailable  rule = "fewer available than maxUnavailable allows"
	budget       rule = "an eviction beyond the budget"
	indexTwice   rule = "two pods for one index"
	parallelism  rule = "more pods than parallelism"
	ordinalEarly rule = "an ordinal before those below it"
	stillRunning rule = "a pod removed while its node runs it"
	collected    rule = "a live object collected"
	overcommit   rule = "a node given more than it has"
	oncePod      rule = "a ReadWriteOncePod volume for two pods"
	attachTwice  rule = "a volume attached to two nodes"
	detachedUsed rule = "a volume detached that its node uses"
	boundTwice   rule = "a volume with two claims"
	miscounted   rule = "a Job that counts wrong"
)

// violation is a broken rule and where it shows.
type violation struct {
	rule rule
	text string
}

func (v violation) String() string { return string(v.rule) + ": " + v.text }

// check replays the history and returns every broken rule.
func check(h history) []violation {
	w := &world{history: h, pods: map[types.UID]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		mounted: map[string]map[corev1.UniqueVolumeName]bool{}, claims: map[string]*corev1.PersistentVolumeClaim{},
		volumes: map[string]*corev1.PersistentVolume{}, attachments: map[string]*storagev1.VolumeAttachment{},
		budgets:     map[types.UID]*policyv1.PodDisruptionBudget{},
		deployments: map[types.UID]*deployment{}, sets: map[types.UID]*replicaSet{},
		stateful: map[types.UID]*appsv1.StatefulSet{}, jobs: map[types.UID]*job{}, all: map[types.UID]metav1.Object{}}
	slices.SortStableFunc(w.events, func(a, b event) int { return cmp.Compare(a.version, b.version) })
	for _, e := range w.events {
		w.at = e.version
		w.apply(e)
	}
	for _, j := range w.jobs {
		w.checkTally(j)
	}
	return w.found
}

// world is the state at one revision.
type world struct {
	history
	at    uint64
	found []violation

	pods  map[types.UID]*corev1.Pod
	nodes map[string]*corev1.Node
	// mounted are the volumes that a node may have mounted.
	mounted     map[string]map[corev1.UniqueVolumeName]bool
	claims      map[string]*corev1.PersistentVolumeClaim // by namespace/name
	volumes     map[string]*corev1.PersistentVolume
	attachments map[string]*storagev1.VolumeAttachment
	budgets     map[types.UID]*policyv1.PodDisruptionBudget
	deployments map[types.UID]*deployment
	sets        map[types.UID]*replicaSet
	stateful    map[types.UID]*appsv1.StatefulSet
	jobs        map[types.UID]*job
	// all has every object, to report whether an owner lives.
	all map[types.UID]metav1.Object
}

func (w *world) report(r rule, format string, args ...any) {
	w.found = append(w.found, violation{r, fmt.Sprintf("at %d: %s", w.at, fmt.Sprintf(format, args...))})
}

// apply checks a change against the state before it, and takes it into the state.
func (w *world) apply(e event) {
	gone := e.typ == watch.Deleted
	uid := e.object.GetUID()
	before := w.all[uid]
	if ending(before, e.object, gone) && !w.deleted[uid] {
		w.checkCollected(e.object)
	}
	if gone {
		delete(w.all, uid)
	} else {
		w.all[uid] = e.object
	}
	switch o := e.object.(type) {
	case *corev1.Pod:
		w.applyPod(o, gone)
	case *corev1.Node:
		w.applyNode(o, gone)
	case *corev1.PersistentVolumeClaim:
		put(w.claims, o.Namespace+"/"+o.Name, o, gone)
		w.checkBound(o, gone)
	case *corev1.PersistentVolume:
		put(w.volumes, o.Name, o, gone)
	case *storagev1.VolumeAttachment:
		w.applyAttachment(o, gone)
	case *policyv1.PodDisruptionBudget:
		put(w.budgets, uid, o, gone)
	case *appsv1.Deployment:
		w.applyDeployment(o, gone)
	case *appsv1.ReplicaSet:
		w.applySet(o, gone)
	case *appsv1.StatefulSet:
		put(w.stateful, uid, o, gone)
	case *batchv1.Job:
		w.applyJob(o, gone)
	}
}

// ending reports whether with this change somebody has asked for the object's end.
func ending(before, now metav1.Object, gone bool) bool {
	asked := before != nil && before.GetDeletionTimestamp() != nil
	return !asked && (gone || now.GetDeletionTimestamp() != nil)
}

func put[K comparable, T any](m map[K]T, k K, v T, gone bool) {
	if gone {
		delete(m, k)
	} else {
		m[k] = v
	}
}

func name(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// applyPod finds out what happened to a pod.
func (w *world) applyPod(p *corev1.Pod, gone bool) {
	before := w.pods[p.UID]
	if ending(object(before), p, gone) {
		w.checkEnding(p)
	}
	if gone && before != nil && before.Spec.NodeName != "" && !terminal(before) && !w.ended[p.UID] {
		w.report(stillRunning, "pod %s of node %s", name(p), before.Spec.NodeName)
	}
	put(w.pods, p.UID, p, gone)
	if gone {
		return
	}
	if before == nil {
		w.checkCreated(p)
	}
	if p.Spec.NodeName != "" && (before == nil || before.Spec.NodeName == "") {
		w.checkPlaced(p)
	}
	if j := w.jobs[owner(p)]; j != nil {
		j.note(p)
	}
}

// object is p as an interface that is nil if p is.
func object(p *corev1.Pod) metav1.Object {
	if p == nil {
		return nil
	}
	return p
}

// checkCreated holds a new pod against the limits of who controls it.
func (w *world) checkCreated(p *corev1.Pod) {
	if set := w.sets[owner(p)]; set != nil {
		w.checkReplicas(set)
	}
	if s := w.stateful[owner(p)]; s != nil {
		w.checkOrdinal(s, p)
	}
	if j := w.jobs[owner(p)]; j != nil {
		w.checkIndex(j, p)
	}
}

// checkEnding holds a pod whose end was just asked for against what must stay.
func (w *world) checkEnding(p *corev1.Pod) {
	if w.deleted[p.UID] || w.evicted[p.UID] {
		w.disturb(p)
	}
	if w.evicted[p.UID] {
		w.checkBudget(p)
	}
	if set := w.sets[owner(p)]; set != nil && ready(w.pods[p.UID]) {
		w.checkUnavailable(set, p)
	}
}

// owner is the UID of the pod's controller.
func owner(o metav1.Object) types.UID {
	if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
		return ref.UID
	}
	return ""
}

func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// active reports whether the pod does, or will do, work that nobody has asked to end.
func active(p *corev1.Pod) bool { return !terminal(p) && p.DeletionTimestamp == nil }

// ready reports whether the pod serves.
func ready(p *corev1.Pod) bool {
	return p != nil && active(p) && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podsOf are the pods that a controller has, which keep.
func (w *world) podsOf(uid types.UID, keep func(*corev1.Pod) bool) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range w.pods {
		if owner(p) == uid && keep(p) {
			out = append(out, p)
		}
	}
	return out
}
