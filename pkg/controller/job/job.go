// Package job runs the pods of each Job until enough of them have succeeded
// (https://kubernetes.io/docs/concepts/workloads/controllers/job/). Which pods have ended and how (tally), how the job
// will end (verdict), which pods to create and delete (manage) and the status (report) are pure functions of one state.
//
// Each pod is counted exactly once, whoever crashes when: a finalizer keeps it until its uid is in the stored status,
// and its uid is there until the finalizer is off. Pods whose job is gone or finished lose their finalizer uncounted
// (orphans).
//
// Two loops work on different keys. The loop of jobs counts and creates; the loop of orphans, with one worker, only
// takes finalizers off pods that no job counts any more. Without it such a pod could never be deleted.
//
// The rules come from KEP-2307 (tracking with finalizers), KEP-2214 (indexes), KEP-2232 (suspension), KEP-3329 (failure
// policy), KEP-3850 (backoff limit for each index), KEP-3998 (success policy), KEP-3939 (replacement of pods) and
// KEP-4368 (managedBy).
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"bonsai/api/batch"
	"bonsai/pkg/apiclient"
	batchclient "bonsai/pkg/apiclient/batch"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/owned"
	"bonsai/pkg/controller/podcontrol"
)

// Controller reconciles Jobs.
//
// mu guards memory. The queues and caches lock themselves.
type Controller struct {
	controller.Deps
	jobs      *controller.Informer[*batchv1.Job]
	pods      *controller.Informer[*corev1.Pod]
	writeJobs *apiclient.Resource[*batchv1.Job]
	expect    *owned.Expectations
	control   podcontrol.Control
	metrics   *metrics
	loop      *controller.Loop[controller.Key]
	orphans   *controller.Loop[controller.Key]

	mu     sync.Mutex
	memory map[types.UID]memory // by job
}

// memory is what is known of a job that no object says. All of it can be lost: then names are tried again, and failures
// of pods that are gone no longer delay the next one.
//
// A worker of the loop reads and changes it for the job that it reconciles. A handler of the watch may drop it
// meanwhile, when the job goes.
type memory struct {
	failures failures
	salt     int
	// wrote is the version of the last status that was written: an older one in the cache does not know what was
	// counted.
	wrote string
	// unsure says that a write has failed and may have been done all the same.
	unsure bool
	// unseen are pods that were counted when the server had them no more, but before the cache of pods has shown that
	// they ever were.
	unseen map[types.UID]bool
}

// know returns what is known of a job. The copy is the caller's: learn may change the original map later.
func (c *Controller) know(job types.UID) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memory[job]
	m.unseen = maps.Clone(m.unseen)
	return m
}

// learn changes what is known of a job. f runs under the mutex and must not call know or learn.
func (c *Controller) learn(job types.UID, f func(*memory)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memory[job]
	f(&m)
	c.memory[job] = m
}

// New returns the controller; its caches fill when d.Informers run.
func New(d controller.Deps) (*Controller, error) {
	pods := controller.InformerFor(d.Informers, core.Pods)
	c := &Controller{
		Deps: d,
		jobs: controller.InformerFor(d.Informers, batchclient.Jobs), writeJobs: batchclient.Jobs(d.Client),
		pods:   pods,
		expect: owned.NewExpectations(d.Now, pods.Seen), metrics: newMetrics(d.Metrics), memory: map[types.UID]memory{},
	}
	c.control = podcontrol.Control{Pods: core.Pods(d.Client), Expect: c.expect, Events: d.Events, Words: words}
	c.loop = controller.NewLoop(controller.LoopConfig{Name: "job", Workers: d.Workers, Log: d.Log, Metrics: d.Metrics},
		c.Reconcile)
	c.orphans = controller.NewLoop(
		controller.LoopConfig{Name: "job_orphan_pod", Workers: 1, Log: d.Log, Metrics: d.Metrics}, c.Release)
	return c, errors.Join(
		owned.WatchOwners(c.loop, c.jobs, c.expect),
		controller.Watch(c.loop, c.pods,
			owned.Pods{Kind: kind(), Expect: c.expect, Wake: c.loop.Add, Adopters: c.adopters}.Handlers()),
		controller.Watch(c.orphans, c.jobs,
			controller.Handlers[*batchv1.Job]{Add: c.jobSeen, Update: func(_, j *batchv1.Job) {
				c.jobEnded(j)
			}, Delete: c.jobGone}),
		controller.Watch(c.orphans, c.pods,
			controller.Handlers[*corev1.Pod]{Add: c.podSeen, Update: func(_, p *corev1.Pod) {
				c.podSeen(p)
			}}),
	)
}

// Run reconciles until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var orphans sync.WaitGroup
	defer orphans.Wait()
	// A loop's Run returns no error but that of its context.
	orphans.Go(func() { _ = c.orphans.Run(ctx) })
	return c.loop.Run(ctx)
}

// adopters are the Jobs that select the pod.
func (c *Controller) adopters(p *corev1.Pod) (keys []controller.Key) {
	for _, j := range c.jobs.InNamespace(p.Namespace) {
		if sel, err := metav1.LabelSelectorAsSelector(j.Spec.Selector); err == nil &&
			sel.Matches(labels.Set(p.Labels)) {
			keys = append(keys, controller.KeyOf(j))
		}
	}
	return keys
}

// mine reports whether this controller works on the job, and knows what it asks for.
func mine(j *batchv1.Job) bool {
	mode := deref(j.Spec.CompletionMode)
	known := mode == "" || mode == batchv1.NonIndexedCompletion || mode == batchv1.IndexedCompletion
	return known && !external(j)
}

// external reports whether another controller says that the job is its.
func external(j *batchv1.Job) bool {
	return j.Spec.ManagedBy != nil && *j.Spec.ManagedBy != batchv1.JobControllerName
}

// Reconcile counts the pods that have ended, creates and deletes pods, and reports.
//
// A worker of the loop calls it. A job that is finished, or another controller's, is left as it is: its pods lose their
// finalizer through the loop of orphans.
func (c *Controller) Reconcile(ctx context.Context, key controller.Key) (controller.Result, error) {
	j, ok := c.jobs.Get(key)
	if !ok {
		return controller.Result{}, nil
	}
	if batch.Finished(&j.Status) != nil || !mine(j) {
		c.forget(j.UID)
		return controller.Result{}, nil
	}
	j, err := c.newest(ctx, j)
	if j == nil || err != nil {
		return controller.Result{}, err
	}
	sel, err := metav1.LabelSelectorAsSelector(j.Spec.Selector)
	if err != nil {
		return controller.Result{}, controller.TerminalError(fmt.Errorf("reading the selector of Job %s: %w", key, err))
	}
	// One clock for the whole round: every delay, deadline and condition of this step is measured from the same moment.
	began := c.Now()
	// Asked before the cache is read: what is seen later than the answer does no harm, what is seen earlier would.
	s := &state{rules: rules{j}, now: began, upToDate: c.expect.Satisfied(j.UID)}
	if err := c.observe(ctx, s, sel); err != nil {
		return controller.Result{}, err
	}
	todo := s.decide()
	err = c.carryOut(ctx, s, &todo)
	c.metrics.synced(s, &todo, err, c.Now().Sub(began))
	return controller.Result{RequeueAfter: todo.wait}, err
}

// newest returns the job as it is after this controller's last write of its status, or nil if the cache does not show
// that write yet. An older status would not name the pods that were counted since, and these, without their finalizer,
// look like pods that never were the job's.
//
// After a failed write the answer alone does not say which status is stored, hence one read. Otherwise nothing is
// asked: the event that the cache lacks brings the job back.
func (c *Controller) newest(ctx context.Context, j *batchv1.Job) (*batchv1.Job, error) {
	m := c.know(j.UID)
	if m.unsure {
		now, err := c.writeJobs.Get(ctx, j.Namespace, j.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading Job %s/%s after a failed write: %w", j.Namespace, j.Name, err)
		case now.UID != j.UID:
			return nil, nil
		}
		c.learn(j.UID, func(m *memory) { m.unsure, m.wrote = false, now.ResourceVersion })
		return now, nil
	}
	if order, err := resourceversion.CompareResourceVersion(j.ResourceVersion, m.wrote); m.wrote != "" && err == nil &&
		order < 0 {
		return nil, nil
	}
	return j, nil
}

// observe fills s with the job's pods.
//
// It changes the server only at the border: a pod with a matching label and no owner is adopted, one that no longer
// matches is released. Adopted pods get the finalizer in the same write, so that they can be counted.
func (c *Controller) observe(ctx context.Context, s *state, sel labels.Selector) error {
	// Before the pods are read: they may be newer than this version, never older.
	seen := c.pods.Seen()
	claim := owned.Claim[*corev1.Pod]{
		Owner: s.job, Kind: kind(), Selector: sel, Children: c.control.Pods, Finalizer: batchv1.JobTrackingFinalizer,
		Fresh: func(ctx context.Context) (metav1.Object, error) {
			return c.writeJobs.Get(ctx, s.job.Namespace, s.job.Name)
		},
	}
	pods, err := claim.Settle(ctx, append(c.pods.OwnedBy(s.job.UID), c.pods.Orphans(s.job.Namespace)...))
	if err != nil {
		return err
	}
	unseen := c.know(s.job.UID).unseen
	s.see(slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return unseen[p.UID] }))
	if err := c.confirm(ctx, s, sel, seen); err != nil {
		return err
	}
	c.learn(s.job.UID, func(m *memory) {
		m.failures = m.failures.with(s)
		s.failures, s.salt = m.failures, m.salt
	})
	return nil
}

// confirm asks the server for pods that the status waits for, if they may be missing only because the cache of pods is
// older than that of jobs: taken for gone they would be counted, and when they come, once more.
//
// Only a pod that the status waits for, that the cache lacks, and that the cache could not have seen yet costs the
// request. What the server does not have either is remembered (unseen), because the cache may still report it later,
// from before its end.
func (c *Controller) confirm(ctx context.Context, s *state, sel labels.Selector, seen string) error {
	untold := s.untold()
	if len(untold) == 0 {
		return nil
	}
	if order, err := resourceversion.CompareResourceVersion(seen, s.job.ResourceVersion); err == nil && order >= 0 {
		return nil
	}
	all, err := c.control.Pods.List(ctx, s.job.Namespace, metav1.ListOptions{LabelSelector: sel.String()})
	if err != nil {
		return fmt.Errorf("looking for pods of Job %s/%s: %w", s.job.Namespace, s.job.Name, err)
	}
	s.coming = make(map[types.UID]bool, len(all))
	for _, p := range all {
		s.coming[p.UID] = true
	}
	c.learn(s.job.UID, func(m *memory) {
		for _, uid := range untold {
			if s.coming[uid] {
				continue
			}
			if m.unseen == nil {
				m.unseen = map[types.UID]bool{}
			}
			m.unseen[uid] = true
		}
	})
	return nil
}

// carryOut creates and deletes, stores the status, and then lets go of the pods that it counts.
//
// The order is the promise of the package: a finalizer comes off only after the status that counts the pod is stored.
// Ended pods are counted even if creating or deleting failed, or a quota that refuses new pods would also keep the
// finished ones.
func (c *Controller) carryOut(ctx context.Context, s *state, todo *plan) error {
	acted := c.act(ctx, s, todo)
	if acted != nil && s.upToDate {
		s.countPods(&todo.status, &plan{}) // what came of it is seen later
	}
	if err := c.store(ctx, s, todo); err != nil {
		return errors.Join(acted, err)
	}
	released := podcontrol.Together(len(todo.release), func(i int) error {
		p := todo.release[i]
		return c.untrack(ctx, p, !controller.PodTerminal(p)) // one that comes to its end now may have to be counted
	})
	return errors.Join(acted, released)
}

// act creates and deletes pods. Withdrawn pods lose their finalizer first, so that they are never counted.
//
// A plan has either withdrawn or stopped pods, never both (manage, end).
func (c *Controller) act(ctx context.Context, s *state, todo *plan) error {
	victims := todo.stop
	if len(todo.withdraw) > 0 {
		err := podcontrol.Together(len(todo.withdraw), func(i int) error {
			return c.untrack(ctx, todo.withdraw[i], true)
		})
		if err != nil {
			return err
		}
		victims = todo.withdraw
	}
	if len(todo.create)+len(victims) == 0 {
		return nil
	}
	err := c.control.Change(ctx, s.job, todo.create, victims)
	c.metrics.created(s, todo, err)
	return c.taken(ctx, s, err)
}

// taken handles a create that failed because the name exists. If the pod is the job's own, an earlier create succeeded
// and the cache will show it. If it is not, the next round uses other names (salt): the same name would fail forever.
//
// The error is returned in every case: the create did not do what the plan says, and the loop tries again with
// back-off.
func (c *Controller) taken(ctx context.Context, s *state, err error) error {
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	p, getErr := c.control.Pods.Get(ctx, s.job.Namespace, status.Status().Details.Name)
	if getErr != nil {
		return err
	}
	if ref := metav1.GetControllerOfNoCopy(p); ref == nil || ref.UID != s.job.UID {
		c.learn(s.job.UID, func(m *memory) { m.salt++ })
	}
	return err
}

// words are the plain events, except for a pod that exists: an earlier create made it, so there is nothing to report.
func words(verb podcontrol.Verb, owner apiclient.Object, pod string, err error) podcontrol.Words {
	if verb == podcontrol.VerbCreate && apierrors.IsAlreadyExists(err) {
		return podcontrol.Words{}
	}
	return podcontrol.PlainWords(verb, owner, pod, err)
}

// store writes the status if it changes, and then records the events that belong to it. After a failed write nobody
// knows which status is stored: the next round reads the job from the server (newest).
//
// Events follow the write. In the other order a conflict would record the same event once for each try.
func (c *Controller) store(ctx context.Context, s *state, todo *plan) error {
	if equality.Semantic.DeepEqual(s.job.Status, todo.status) {
		return nil
	}
	j := s.job.DeepCopy()
	j.Status = todo.status
	stored, err := c.writeJobs.UpdateStatus(ctx, j)
	if err != nil {
		c.learn(j.UID, func(m *memory) { m.unsure = true })
		return fmt.Errorf("updating the status of Job %s/%s: %w", j.Namespace, j.Name, err)
	}
	c.learn(j.UID, func(m *memory) { m.wrote = stored.ResourceVersion })
	for _, e := range todo.says {
		c.Events.Event(s.job, e.kind, e.reason, e.message)
	}
	c.metrics.stored(s, todo)
	return nil
}

// untrack takes the finalizer off a pod, if it is still there; unchanged makes sure that the pod has not ended
// meanwhile.
//
// The patch takes one entry off the list, so that finalizers of others that were added since stay. Its uid keeps a pod
// of the same name that was made since.
func (c *Controller) untrack(ctx context.Context, p *corev1.Pod, unchanged bool) error {
	if !tracked(p) {
		return nil
	}
	metadata := map[string]any{"uid": p.UID,
		"$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer}}
	if unchanged {
		metadata["resourceVersion"] = p.ResourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = c.control.Pods.Patch(ctx, p.Namespace, p.Name, types.StrategicMergePatchType, patch)
	if err == nil {
		c.metrics.untracked()
		return nil
	}
	// Another pod of the name is a conflict, too: this one is gone.
	if apierrors.IsNotFound(err) || !unchanged && apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("removing the finalizer of pod %s/%s: %w", p.Namespace, p.Name, err)
}

func (c *Controller) forget(job types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memory, job)
}
