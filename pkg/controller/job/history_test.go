package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"bonsai/api/batch"
	"bonsai/api/batch/indexes"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/controller/owned"
)

// world is a server with one job and its pods, that loses answers and refuses requests now and then, a kubelet, and a
// user; and a controller that sees all of it late and is killed at any time. What really happened to each pod is
// written down beside.
type world struct {
	t    *testing.T
	r    *rand.Rand
	fake *controllertest.Fake

	mu      sync.Mutex
	version int
	job     *batchv1.Job
	pods    map[string]*corev1.Pod
	trouble int // of a hundred requests
	created int
	outcome map[types.UID]corev1.PodPhase // of the pods whose end the job must count
	events  []event                       // that the controller has not seen yet, of jobs and of pods in their order
	byIndex map[types.UID]string

	now time.Time
	c   *Controller
}

type event struct {
	job     *batchv1.Job
	pod     *corev1.Pod
	deleted bool
}

func newWorld(t *testing.T, seed uint64, j *batchv1.Job) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 7)), pods: map[string]*corev1.Pod{},
		outcome: map[types.UID]corev1.PodPhase{}, byIndex: map[types.UID]string{}, now: time.Unix(1_000_000, 0)}
	w.job = j
	w.job.ResourceVersion = w.next()
	w.fake = &controllertest.Fake{Answer: w.answer}
	w.restart()
	return w
}

func (w *world) next() string {
	w.version++
	return strconv.Itoa(w.version)
}

// restart is kill -9 and a new leader, which begins with complete lists.
func (w *world) restart() {
	d := w.fake.Deps(w.t, w.now)
	d.Now = func() time.Time { return w.now }
	d.Events = &record.FakeRecorder{}
	d.Workers = 1
	c, err := New(d)
	if err != nil {
		w.t.Fatal(err)
	}
	w.c, w.events = c, nil
	controllertest.Put(w.t, c.jobs, w.job.DeepCopy())
	for _, p := range w.pods {
		controllertest.Put(w.t, c.pods, p.DeepCopy())
	}
}

// told notes a change that the controller will see.
func (w *world) told(e event) { w.events = append(w.events, e) }

func (w *world) changed(p *corev1.Pod) {
	p.ResourceVersion = w.next()
	if p.DeletionTimestamp != nil && len(p.Finalizers) == 0 && controller.PodTerminal(p) {
		delete(w.pods, p.Name)
		w.told(event{pod: p.DeepCopy(), deleted: true})
		return
	}
	w.told(event{pod: p.DeepCopy()})
}

// see shows the controller the next of jobs' or of pods' changes: each kind comes in order, but not the two together.
func (w *world) see() {
	ofJob := w.r.IntN(2) == 0
	i := slices.IndexFunc(w.events, func(e event) bool { return (e.job != nil) == ofJob })
	if i < 0 {
		return
	}
	e := w.events[i]
	w.events = slices.Delete(w.events, i, i+1)
	if e.job != nil {
		controllertest.Put(w.t, w.c.jobs, e.job)
		return
	}
	h := owned.Pods{Kind: kind(), Expect: w.c.expect, Wake: func(controller.Key) {},
		Adopters: func(*corev1.Pod) []controller.Key {
			return nil
		}}.Handlers()
	old, known := w.c.pods.Get(controller.KeyOf(e.pod))
	switch {
	case e.deleted:
		_ = w.c.pods.Raw().GetIndexer().Delete(e.pod)
		h.Delete(e.pod)
		return
	case known && old.UID == e.pod.UID:
		h.Update(old, e.pod)
	default:
		h.Add(e.pod)
	}
	controllertest.Put(w.t, w.c.pods, e.pod)
}

var errLost = apierrors.NewTimeoutError("the answer is lost", 1)

// answer is the server. It may do nothing and say so, or do it and not say so.
func (w *world) answer(call controllertest.Call) (runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	luck := w.r.IntN(100)
	if luck < w.trouble/2 {
		return nil, apierrors.NewInternalError(errors.New("nothing done"))
	}
	out, err := w.do(call)
	if luck < w.trouble {
		return nil, errLost
	}
	return out, err
}

func (w *world) do(call controllertest.Call) (runtime.Object, error) {
	name := call.Path[strings.LastIndex(call.Path, "/")+1:]
	p := w.pods[name]
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	switch {
	case strings.HasSuffix(call.Path, "/jobs/j/status"):
		j := call.Object.(*batchv1.Job)
		if j.ResourceVersion != w.job.ResourceVersion {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "jobs"}, "j", errors.New("stale"))
		}
		w.checkStatus(&j.Status)
		w.job = w.job.DeepCopy()
		w.job.Status, w.job.ResourceVersion = j.Status, w.next()
		w.told(event{job: w.job.DeepCopy()})
		return w.job.DeepCopy(), nil
	case call.Method == "GET" && strings.HasSuffix(call.Path, "/jobs/j"):
		return w.job.DeepCopy(), nil
	case call.Method == "GET" && name == "pods":
		list := &corev1.PodList{}
		for _, p := range w.pods {
			list.Items = append(list.Items, *p)
		}
		return list, nil
	case call.Method == "GET" && name == "jobs":
		return &batchv1.JobList{Items: []batchv1.Job{*w.job}}, nil
	case call.Method == "POST":
		return w.create(call.Object.(*corev1.Pod))
	case p == nil:
		return nil, missing
	case call.Method == "GET":
		return p.DeepCopy(), nil
	case call.Method == "DELETE":
		if !strings.Contains(string(call.Body), string(p.UID)) {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, errors.New("another uid"))
		}
		w.remove(p)
		return p.DeepCopy(), nil
	case call.Method == "PATCH":
		if !strings.Contains(string(call.Body), string(p.UID)) {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, errors.New("another uid"))
		}
		if body := string(call.Body); strings.Contains(body, "resourceVersion") &&
			!strings.Contains(body, fmt.Sprintf("%q", p.ResourceVersion)) {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, name, errors.New("changed"))
		}
		w.loseFinalizer(p)
		return p.DeepCopy(), nil
	}
	return nil, fmt.Errorf("unexpected %s", call.Name())
}

func (w *world) create(p *corev1.Pod) (runtime.Object, error) {
	if w.pods[p.Name] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, p.Name)
	}
	p = p.DeepCopy()
	w.created++
	p.Namespace, p.UID, p.Status.Phase = "ns", types.UID(fmt.Sprint("pod-", w.created)), corev1.PodPending
	p.CreationTimestamp = metav1.NewTime(w.now)
	w.pods[p.Name] = p
	w.changed(p)
	w.checkLive()
	return p.DeepCopy(), nil
}

func (w *world) remove(p *corev1.Pod) {
	if p.DeletionTimestamp == nil {
		p.DeletionTimestamp = new(metav1.NewTime(w.now))
		w.changed(p)
	}
}

// loseFinalizer must come only when the job counts the pod, or when nobody has to.
func (w *world) loseFinalizer(p *corev1.Pod) {
	if !tracked(p) {
		return
	}
	if end, ended := w.outcome[p.UID]; ended && !w.counts(p, end) {
		w.t.Errorf("pod %s, which is %s, loses its finalizer uncounted: %+v", p.Name, end, w.job.Status)
	}
	p.Finalizers = nil
	w.changed(p)
}

// counts reports whether the stored status counts the end of a pod.
func (w *world) counts(p *corev1.Pod, end corev1.PodPhase) bool {
	u := w.job.Status.UncountedTerminatedPods
	if u != nil && (slices.Contains(u.Succeeded, p.UID) || slices.Contains(u.Failed, p.UID)) {
		return true
	}
	if end == corev1.PodSucceeded && batch.Indexed(&w.job.Spec) {
		i, _ := indexOf(p, int(*w.job.Spec.Completions))
		return indexes.Read(w.job.Status.CompletedIndexes, int(*w.job.Spec.Completions)).Has(i)
	}
	return false
}

// checkLive: never two live pods for an index, and never more than parallelism.
func (w *world) checkLive() {
	live, by := 0, map[int]string{}
	for _, p := range w.pods {
		if !controller.PodActive(p) {
			continue
		}
		live++
		if i, ok := indexOf(p, 1000); ok {
			if by[i] != "" {
				w.t.Errorf("index %d has two live pods: %s and %s", i, by[i], p.Name)
			}
			by[i] = p.Name
		}
	}
	if live > int(*w.job.Spec.Parallelism) {
		w.t.Errorf("%d live pods, %d at most", live, *w.job.Spec.Parallelism)
	}
}

// checkStatus: no status counts more than what happened.
func (w *world) checkStatus(st *batchv1.JobStatus) {
	succeeded, failed := w.truth()
	waiting := batchv1.UncountedTerminatedPods{}
	if st.UncountedTerminatedPods != nil {
		waiting = *st.UncountedTerminatedPods
	}
	if n := int(st.Succeeded) + len(waiting.Succeeded); n > succeeded {
		w.t.Errorf("the status counts %d successes, there were %d: %+v", n, succeeded, st)
	}
	if n := int(st.Failed) + len(waiting.Failed); n > failed {
		w.t.Errorf("the status counts %d failures, there were %d: %+v", n, failed, st)
	}
}

// truth is the plain count of what happened.
func (w *world) truth() (succeeded, failed int) {
	done := map[string]bool{}
	for uid, end := range w.outcome {
		switch {
		case end == corev1.PodFailed:
			failed++
		case !batch.Indexed(&w.job.Spec):
			succeeded++
		default:
			done[w.byIndex[uid]] = true
		}
	}
	return succeeded + len(done), failed
}

// end is a pod's, by the kubelet.
func (w *world) end(p *corev1.Pod, phase corev1.PodPhase) {
	if controller.PodTerminal(p) {
		return
	}
	p.Status.Phase = phase
	if tracked(p) {
		w.outcome[p.UID] = phase
		w.byIndex[p.UID] = p.Annotations[batchv1.JobCompletionIndexAnnotation]
	}
	w.changed(p)
}

func (w *world) somePod(f func(*corev1.Pod) bool) *corev1.Pod {
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[name]; f(p) && w.r.IntN(2) == 0 {
			return p
		}
	}
	return nil
}

func (w *world) step() {
	switch n := w.r.IntN(20); {
	case n < 8:
		w.see()
	case n < 14:
		_, _ = w.c.Reconcile(context.Background(), controller.Key{Namespace: "ns", Name: "j"})
	case n < 17:
		if p := w.somePod(controller.PodActive); p != nil {
			phase := corev1.PodSucceeded
			if w.r.IntN(3) == 0 {
				phase = corev1.PodFailed
			}
			w.end(p, phase)
		}
	case n == 17:
		if p := w.somePod(terminating); p != nil {
			w.end(p, corev1.PodFailed)
		}
	case n == 18:
		if w.r.IntN(4) == 0 {
			w.restart()
		} else {
			w.now = w.now.Add(time.Duration(w.r.IntN(30)) * time.Second)
		}
	default:
		if p := w.somePod(controller.PodActive); p != nil && w.r.IntN(4) == 0 {
			w.remove(p)
			w.now = w.now.Add(time.Second)
		}
	}
}

// TestHistories: whatever is lost, late or killed, no pod is counted twice or not at all, no index has two live pods,
// there are never more than parallelism, and the job comes to its end.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "job"},
				Spec: batchv1.JobSpec{
					Completions: new(int32(6)), Parallelism: new(int32(3)), BackoffLimit: new(int32(1000)),
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
						Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}},
				}}
			// A pod that is deleted before its end counts only when it has come to it: what happened is then known.
			j.Spec.PodReplacementPolicy = new(batchv1.Failed)
			if seed%2 == 0 {
				j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
			}
			w := newWorld(t, seed, j)
			w.trouble = int(seed % 3 * 10)
			for range 400 {
				w.step()
				if t.Failed() {
					t.FailNow()
				}
			}
			w.settle()
		})
	}
}

// settle lets everything come to its end without trouble.
func (w *world) settle() {
	w.trouble = 0
	for range 400 {
		for len(w.events) > 0 {
			w.see()
		}
		if batch.Finished(&w.job.Status) != nil {
			break
		}
		_, _ = w.c.Reconcile(context.Background(), controller.Key{Namespace: "ns", Name: "j"})
		for _, p := range w.pods {
			if terminating(p) {
				w.end(p, corev1.PodFailed)
			} else if controller.PodActive(p) {
				w.end(p, corev1.PodSucceeded)
			}
		}
		w.now = w.now.Add(time.Minute)
	}
	succeeded, failed := w.truth()
	st := &w.job.Status
	if !batch.IsTrue(st, batchv1.JobComplete) || int(st.Succeeded) != succeeded || int(st.Failed) != failed ||
		succeeded < 6 {
		w.t.Errorf("in the end the status is %+v, and %d succeeded, %d failed", st, succeeded, failed)
	}
}
