// Package status writes pods' statuses to the API server: each change at once, or soon if a pod is only on its way to
// its start. It sends a patch of what differs from the newest known object, so that the writes of others survive. The
// newest status always wins over those that wait. It also deletes the API object of a pod that has ended and been
// cleaned up.
package status

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/util/workqueue"

	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// workers is how many statuses are written at the same time.
const workers = 8

// startingDelay is how long the status of a pod waits while none of its containers runs. Only a person who watches
// needs such a status, and most pods are a step further within that time, so that one write covers both. It is short
// enough for people not to notice.
const startingDelay = 500 * time.Millisecond

// Client is the API server as the writer needs it.
type Client interface {
	PatchPodStatus(ctx context.Context, namespace, name string, patch []byte) (*corev1.Pod, error)
	DeletePod(ctx context.Context, namespace, name string, o metav1.DeleteOptions) error
}

// Writer keeps the statuses of all pods of the node. Its methods are safe for concurrent use and do not block.
type Writer struct {
	client Client
	tracer *trace.Tracer
	log    *slog.Logger
	// synced receives how long a change took to be stored, for the first of several that are stored together.
	synced func(took time.Duration)
	// changed is notified when Shown may return something else.
	changed notify.Fan
	queue   workqueue.TypedRateLimitingInterface[types.UID]

	mu   sync.Mutex // not held while a patch is under way: its answer is compared with what is wanted then
	pods map[types.UID]*entry
}

// entry is what is known about one pod. For a static pod, object is its mirror pod.
type entry struct {
	// want is the status to be reported; nil: none yet.
	want *corev1.PodStatus
	// object is the newest object known from the API server, nil for a static pod without a mirror.
	object *corev1.Pod
	// told is the object that the watch sent last. It may be older than object, which an answer to our own write
	// brought.
	told *corev1.Pod
	// reached: the pod has been Ready, or has ended, at the API server.
	reached bool
	// since is since when want says that; zero: it does not.
	since time.Time
	// remove: the object is to be deleted after the status was written.
	remove bool
	// set is when want was set and not yet written; zero: it is written.
	set time.Time
}

// New returns a Writer that writes once Run is called; synced receives how long each change took to be stored. The
// goroutine of its queue runs until Run ends, or until Close. The tracer, which may be nil, records the writes.
func New(client Client, synced func(took time.Duration), tracer *trace.Tracer, log *slog.Logger) *Writer {
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](100*time.Millisecond, 10*time.Second)
	return &Writer{client: client, synced: synced, tracer: tracer, log: log,
		queue: workqueue.NewTypedRateLimitingQueue(limit), pods: map[types.UID]*entry{}}
}

// Close ends a Writer that may never have run. It has no effect after Run.
func (w *Writer) Close() { w.queue.ShutDown() }

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	wg.Wait()
	return nil
}

func (w *Writer) entry(uid types.UID) *entry {
	e := w.pods[uid]
	if e == nil {
		e = &entry{}
		w.pods[uid] = e
	}
	return e
}

// Observe receives a pod's object from the watch; uid is the pod's own, object may be its mirror. Objects come in the
// order of their changes. An object that is older than the one before comes from an etcd that was restored from a
// snapshot: what was written since is gone, and is written again.
func (w *Writer) Observe(uid types.UID, object *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entry(uid)
	if e.told != nil && e.told.UID == object.UID && restored(e.told, object) {
		e.object = nil
	}
	e.told = object
	w.observeLocked(e, uid, object)
}

// restored reports whether now, which the watch sent after before, is from an earlier history of the same object.
func restored(before, now *corev1.Pod) bool {
	if before.ResourceVersion == now.ResourceVersion {
		return !equality.Semantic.DeepEqual(before.Status, now.Status)
	}
	return !newer(now, before)
}

// observeLocked records an object unless it is older than the known one: the watch may show a change after the answer
// to a later one.
func (w *Writer) observeLocked(e *entry, uid types.UID, object *corev1.Pod) {
	if e.object != nil && e.object.UID == object.UID && !newer(object, e.object) {
		return
	}
	mirror := object.UID != uid && (e.object == nil || e.object.UID != object.UID)
	e.object = object
	e.reached = e.reached || reached(&object.Status)
	if e.want != nil && (mirror || differs(e.want, &object.Status)) {
		w.enqueueLocked(e, uid)
	}
}

// enqueueLocked schedules the write of a pod's status. A delayed one that is overtaken by an immediate one is still
// looked at later, and then found written.
func (w *Writer) enqueueLocked(e *entry, uid types.UID) {
	if starting(e.want) {
		w.queue.AddAfter(uid, startingDelay)
		return
	}
	w.queue.Add(uid)
}

// starting reports whether a pod is on its way to its start: nothing of it has run, and nothing is known to keep it
// from running.
func starting(st *corev1.PodStatus) bool {
	if st.Phase != corev1.PodPending || st.Reason != "" || st.Message != "" {
		return false
	}
	for _, statuses := range [][]corev1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses,
		st.EphemeralContainerStatuses} {
		for i := range statuses {
			c := &statuses[i]
			if w := c.State.Waiting; w == nil || w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" ||
				c.LastTerminationState.Terminated != nil {
				return false
			}
		}
	}
	return true
}

// Unobserve receives that the API server has no object of the pod any more.
func (w *Writer) Unobserve(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.pods[uid]; e != nil {
		e.object, e.told = nil, nil
	}
}

// newer compares resource versions, which are numbers that grow; anything else counts as newer.
func newer(a, b *corev1.Pod) bool {
	x, err1 := strconv.ParseUint(a.ResourceVersion, 10, 64)
	y, err2 := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return err1 != nil || err2 != nil || x > y
}

// Changed is notified when what Shown returns may have changed.
func (w *Writer) Changed() *notify.Fan { return &w.changed }

// Set reports a status.
func (w *Writer) Set(uid types.UID, st corev1.PodStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entry(uid)
	if e.want != nil && equality.Semantic.DeepEqual(*e.want, st) {
		return
	}
	e.want = &st
	now := time.Now()
	if e.set.IsZero() {
		e.set = now
	}
	switch is := reached(&st); {
	case !is:
		e.since = time.Time{}
	case e.since.IsZero():
		e.since = now
	}
	w.enqueueLocked(e, uid)
	w.changed.Notify()
}

// Shown returns the pod with its newest status: the one that was set last; before that, for a static pod, its mirror's.
// Conditions of other writers come from the pod's object.
func (w *Writer) Shown(pod *corev1.Pod) *corev1.Pod {
	p := *pod
	w.mu.Lock()
	if e := w.pods[pod.UID]; e != nil {
		switch {
		case e.want != nil:
			p.Status = *e.want.DeepCopy()
		case e.object != nil && e.object.UID != pod.UID:
			p.Status = *e.object.Status.DeepCopy()
		}
		if e.object != nil {
			p.Status.Conditions = conditions(p.Status.Conditions, e.object.Status.Conditions)
		}
	}
	w.mu.Unlock()
	if p.Status.QOSClass == "" {
		p.Status.QOSClass = runtime.QOSClass(pod)
	}
	return &p
}

// Delete deletes the pod's object at the API server after its last status was written.
func (w *Writer) Delete(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.pods[uid]; e != nil && e.object != nil {
		e.remove = true
		w.queue.Add(uid)
	}
}

// Forget drops what is known of a pod.
func (w *Writer) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, uid)
}

func (w *Writer) next(ctx context.Context) bool {
	uid, down := w.queue.Get()
	if down {
		return false
	}
	defer w.queue.Done(uid)
	if err := w.write(ctx, uid); err != nil && ctx.Err() == nil {
		w.log.Warn("pod status not written, it will be tried again", "uid", uid, "err", err)
		w.queue.AddRateLimited(uid)
		return true
	}
	w.queue.Forget(uid)
	return true
}

// write writes what is wanted of one pod. A conflict is tried again like any error: another pod may have the name by
// now, then the watch takes this one's object away; or others wrote at the same time.
func (w *Writer) write(ctx context.Context, uid types.UID) error {
	w.mu.Lock()
	e := w.pods[uid]
	if e == nil || e.object == nil {
		w.mu.Unlock()
		return nil
	}
	object, want, remove, set, since, early := e.object, e.want, e.remove, e.set, e.since, !e.reached
	e.set = time.Time{}
	w.mu.Unlock()
	if want != nil && differs(want, &object.Status) {
		begun := time.Now()
		got, err := w.patch(ctx, object, want)
		switch {
		case apierrors.IsNotFound(err):
			return nil // the pod is gone; the watch will tell
		case err != nil && remove && refused(err) && w.queue.NumRequeues(uid) >= refusals:
			w.log.Error("a pod is deleted without its last status, which the API server refuses", "pod",
				object.Namespace+"/"+object.Name, "err", err)
		case err != nil:
			return err
		default:
			if !set.IsZero() {
				now := time.Now()
				w.synced(now.Sub(set))
				w.did(object, "kubelet.status", begun, now)
			}
			if early && !since.IsZero() {
				w.didReach(object, want, since)
			}
			w.written(uid, e, got)
		}
	}
	if !remove {
		return nil
	}
	zero, begun := int64(0), time.Now()
	err := w.client.DeletePod(ctx, object.Namespace, object.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &object.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", object.Namespace, object.Name, err)
	}
	w.did(object, "kubelet.delete", begun, time.Now())
	return nil
}

// refusals is how often the last status of a pod that is to be deleted may be refused, within some seconds, before it
// is deleted without it.
const refusals = 6

// refused reports whether the API server, or a webhook, rejects such a status, and will do so again. A deleted pod is
// then deleted without its last status: otherwise it could never be.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err)
}

// written takes the answer of a patch, unless the pod was forgotten or came back meanwhile, or its object is gone.
func (w *Writer) written(uid types.UID, e *entry, got *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.reached = e.reached || reached(&got.Status)
	if w.pods[uid] == e && e.object != nil {
		w.observeLocked(e, uid, got)
	}
}

func (w *Writer) patch(ctx context.Context, object *corev1.Pod, want *corev1.PodStatus) (*corev1.Pod, error) {
	body, err := newPatch(object, want)
	if err != nil {
		return nil, err
	}
	got, err := w.client.PatchPodStatus(ctx, object.Namespace, object.Name, body)
	if err != nil {
		return nil, fmt.Errorf("patch the status of pod %s/%s: %w", object.Namespace, object.Name, err)
	}
	return got, nil
}

// merged is want with what only others write, as the object has it.
func merged(want, have *corev1.PodStatus) corev1.PodStatus {
	out := *want.DeepCopy()
	out.Conditions = conditions(out.Conditions, have.Conditions)
	if out.QOSClass == "" {
		out.QOSClass = have.QOSClass
	}
	out.NominatedNodeName, out.ResourceClaimStatuses, out.Resize = have.NominatedNodeName, have.ResourceClaimStatuses,
		have.Resize
	out.ExtendedResourceClaimStatus = have.ExtendedResourceClaimStatus
	return out
}

// conditions are ours, and of those that an object has the others' and what ours lack, but of no resize that is over.
// The others' that the object does not have, or not any more, are left out. It returns a new list.
func conditions(ours, object []corev1.PodCondition) []corev1.PodCondition {
	out := make([]corev1.PodCondition, 0, len(ours)+len(object))
	for _, c := range ours {
		if Own(c.Type) || has(object, c.Type) {
			out = append(out, c)
		}
	}
	for _, c := range object {
		if !Own(c.Type) || !has(out, c.Type) && !runtime.ResizeCondition(c.Type) {
			out = replace(out, c)
		}
	}
	return out
}

// Own reports whether the kubelet writes conditions of that type. What it computes and Own does not name never reaches
// the API: it is taken for somebody else's, and dropped where the object has none.
func Own(t corev1.PodConditionType) bool {
	switch t {
	case corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
		corev1.PodScheduled,
		corev1.AllContainersRestarting, corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress:
		return true
	}
	return false
}

func has(cs []corev1.PodCondition, t corev1.PodConditionType) bool {
	for i := range cs {
		if cs[i].Type == t {
			return true
		}
	}
	return false
}

func replace(cs []corev1.PodCondition, c corev1.PodCondition) []corev1.PodCondition {
	for i := range cs {
		if cs[i].Type == c.Type {
			cs[i] = c
			return cs
		}
	}
	return append(cs, c)
}

func differs(want, have *corev1.PodStatus) bool {
	m := merged(want, have)
	a, err1 := json.Marshal(sorted(m))
	b, err2 := json.Marshal(sorted(*have.DeepCopy()))
	return err1 != nil || err2 != nil || string(a) != string(b)
}

// newPatch is the strategic merge patch that turns the object's status into the wanted one, bound to the object's uid.
func newPatch(object *corev1.Pod, want *corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: object.Status})
	if err != nil {
		return nil, fmt.Errorf("encode the old status: %w", err)
	}
	after, err := json.Marshal(
		corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: object.UID}, Status: merged(want, &object.Status)})
	if err != nil {
		return nil, fmt.Errorf("encode the new status: %w", err)
	}
	p, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compute the patch of the status: %w", err)
	}
	return p, nil
}

// sorted puts the conditions into one order, so that only their content is compared.
func sorted(st corev1.PodStatus) corev1.PodStatus {
	cs := st.Conditions
	for i := 1; i < len(cs); i++ {
		for j := i; j > 0 && cs[j].Type < cs[j-1].Type; j-- {
			cs[j], cs[j-1] = cs[j-1], cs[j]
		}
	}
	return st
}
