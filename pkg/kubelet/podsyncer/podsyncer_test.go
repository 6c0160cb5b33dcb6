package podsyncer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/kubelet/volume"
)

// parts are all that a Syncer works with. They note what is done, in order, and fail where fail says so, by the note's
// first word.
type parts struct {
	mu    sync.Mutex
	notes []string
	fail  map[string]error
	// rt is what the runtime has; act changes it.
	rt  runtime.PodStatus
	act func(plan lifecycle.Plan)
	// killing, if not nil, holds up the end of containers.
	killing chan struct{}
	told    *corev1.Pod
	status  corev1.PodStatus // as last set
	said    string           // the last event's message
	ends    []int32          // exit codes that were counted
	verdict admission.Verdict
	why     *admission.Rejection
	ending  *runtime.Ending
	started int           // how often it was told that a pod runs that did not
	created time.Duration // how old it was then, and how much of that was for its images and init containers
	images  time.Duration
	facts   int // how often they were gathered
	resize  runtime.Resizing
	// allocated and freed count what pods were given of what the node has few of.
	allocated, freed int
}

func (p *parts) note(format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := fmt.Sprintf(format, args...)
	p.notes = append(p.notes, n)
	what, _, _ := strings.Cut(n, " ")
	return p.fail[what]
}

// took returns the notes so far and starts over.
func (p *parts) took() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := strings.Join(p.notes, ", ")
	p.notes = nil
	return n
}

func (p *parts) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rt := p.rt
	rt.Containers = slices.Clone(p.rt.Containers)
	return &rt, p.fail["look"]
}

// set changes what the runtime has.
func (p *parts) set(f func(*runtime.PodStatus)) { p.mu.Lock(); defer p.mu.Unlock(); f(&p.rt) }

func (p *parts) RemoveContainer(_ context.Context, id string) error {
	return p.note("container- %s", id)
}
func (p *parts) RemoveSandbox(_ context.Context, id string) error { return p.note("sandbox- %s", id) }

func (p *parts) RetryPulls(context.Context, *corev1.Pod, *executor.Pod) {}
func (p *parts) BackOff(*corev1.Pod, *executor.Pod, *runtime.PodStatus) map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts++
	return nil
}
func (p *parts) HoldBack(lifecycle.Facts, *executor.Pod, lifecycle.Plan) {}
func (p *parts) PrepareRunning(context.Context, *corev1.Pod, *executor.Pod, *runtime.PodStatus) error {
	return p.note("prepare")
}
func (p *parts) Act(_ context.Context, _ lifecycle.Facts, _ *executor.Pod, plan lifecycle.Plan) error {
	if p.act != nil {
		p.act(plan)
	}
	return p.note("act sandbox=%v start=%d", plan.NewSandbox, len(plan.Start))
}
func (p *parts) KillPod(ctx context.Context, _ *corev1.Pod, _ *runtime.PodStatus, grace time.Duration) error {
	if p.killing != nil {
		select {
		case <-p.killing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.note("kill %s", grace)
}

func (p *parts) Begin(types.UID) *corev1.Pod { p.note("begin"); return p.told }
func (p *parts) Shown(pod *corev1.Pod) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := *pod
	shown.Status = *p.status.DeepCopy()
	return &shown
}
func (p *parts) Forget(*corev1.Pod) { p.note("forget") }

func (p *parts) Set(_ types.UID, st corev1.PodStatus) {
	p.note("status %s %s", st.Phase, st.Reason)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = st
}
func (p *parts) Delete(types.UID) { p.note("delete") }

func (p *parts) Admit(*corev1.Pod) (admission.Verdict, *admission.Rejection) { return p.verdict, p.why }
func (p *parts) Allocation(pod *corev1.Pod) (*corev1.Pod, runtime.Resizing) {
	if p.resize.Containers == nil {
		return pod, runtime.Resizing{}
	}
	return p.resize.Of(pod), p.resize
}
func (p *parts) Release(types.UID) { p.note("release") }

func (p *parts) Requested(runtime.Resources, runtime.Resources) { p.note("requested") }
func (p *parts) Infeasible(static bool)                         { p.note("infeasible %v", static) }
func (p *parts) States(types.UID, string, bool)                 {}
func (p *parts) Done(_ time.Duration, err error)                { p.note("done %v", err) }

func (p *parts) Update(_ *corev1.Pod, targets map[string]prober.Target) {
	p.note("probes %d", len(targets))
}
func (p *parts) Result(string, prober.Kind) runtime.ProbeResult { return runtime.ProbeSuccess }
func (p *parts) StopLivenessAndStartup(types.UID)               { p.note("readiness only") }

func (p *parts) Unmount(context.Context, types.UID) error   { return p.note("unmount") }
func (p *parts) UpdateQoS(pods []*corev1.Pod) error         { return p.note("qos %d", len(pods)) }
func (p *parts) Unprepare(context.Context, types.UID) error { return p.note("unprepare") }
func (p *parts) Track(*corev1.Pod)                          { p.note("track") }
func (p *parts) Untrack(types.UID)                          { p.note("untrack") }
func (p *parts) Pod(_ *corev1.Pod, _, reason, message string) {
	p.note("event %s", reason)
	p.said = message
}

// What has other methods of the same names.
type (
	probes  struct{ *parts }
	volumes struct{ *parts }
	// resources says only what fails.
	resources struct{ *parts }
	logs      struct{ *parts }
)

func (r resources) Admit(context.Context, *corev1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allocated++
	return r.fail["allocate"]
}
func (r resources) Release(types.UID) { r.mu.Lock(); defer r.mu.Unlock(); r.freed++ }
func (r resources) Health(*corev1.Pod) map[string][]corev1.ResourceStatus {
	return map[string][]corev1.ResourceStatus{"c": {{Name: "example.com/foo"}}}
}
func (p probes) Remove(types.UID)                         { p.note("probes-") }
func (v volumes) Remove(context.Context, types.UID) error { return v.note("directory-") }
func (l logs) RemovePod(namespace, name string, _ types.UID) error {
	return l.note("logs- %s %s", namespace, name)
}

// setup returns a Syncer of a node where a pod is admitted and nothing runs.
func setup() (*Syncer, *parts) {
	p := &parts{verdict: admission.Admitted, fail: map[string]error{}}
	return New(Config{Runtime: p, Executor: p, Pods: p, Status: p, Admission: p, Probes: probes{p}, Volumes: volumes{p},
		Cgroups: p, Resources: resources{p}, Objects: p,
		Logs: logs{p}, Events: p, Changes: NewChanges(), Resizes: p, Terminated: func(_ runtime.Kind, exit int32) {
			p.ends = append(p.ends, exit)
		}, Evicted: func(signal string) {
			p.note("evicted %s", signal)
		}, Running: func(_, created, images time.Duration) {
			p.started, p.created, p.images = p.started+1, created, images
		}, HostIPs: func() []string { return []string{"192.0.2.1"} },
		Active: func() []*corev1.Pod { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}), p
}

func onePod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
}

// runs is a pod whose only container runs.
func runs(rt *runtime.PodStatus) {
	rt.Sandboxes = []runtime.Sandbox{{ID: "s1", Ready: true, IPs: []string{"10.0.0.1"}}}
	rt.Containers = []runtime.Container{
		{ID: runtime.ContainerID{Type: "r", ID: "c1"}, Name: "c", SandboxID: "s1", State: runtime.StateRunning,
			StartedAt: time.Now(),
			Hash:      lifecycle.Hash(&corev1.Container{Name: "c"})}}
}

// ended is one whose container and sandbox have ended.
func ended(rt *runtime.PodStatus) {
	rt.Sandboxes[0].Ready = false
	rt.Containers[0].State, rt.Containers[0].FinishedAt = runtime.StateExited, time.Now()
}

func expect(t *testing.T, what string, p *parts, want string) {
	t.Helper()
	if got := p.took(); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// Round by round: look, report, act, until there is nothing to do. The facts are gathered once for each look.
func TestSync(t *testing.T) {
	t.Parallel()
	s, p := setup()
	p.told = onePod()
	p.act = func(plan lifecycle.Plan) {
		p.set(func(rt *runtime.PodStatus) {
			if runs(rt); plan.NewSandbox {
				rt.Containers = nil
			}
		})
	}
	out, err := s.Sync(t.Context(), onePod())
	if err != nil || out != (podworker.Outcome{}) {
		t.Errorf("%+v %v", out, err)
	}
	expect(t, "a new pod", p, "begin, track, qos 0, probes 0, status Pending , prepare, act sandbox=true start=0, "+
		"probes 0, status Pending , prepare, act sandbox=false start=1, probes 1, status Running , prepare")
	if p.facts != 3 {
		t.Errorf("facts gathered %d times in 3 rounds", p.facts)
	}
	if _, err := s.Sync(t.Context(), onePod()); err != nil {
		t.Error(err)
	}
	expect(t, "again", p, "probes 1, status Running , prepare")
	p.fail["look"] = errors.New("down")
	if _, err := s.Sync(t.Context(), onePod()); !errors.Is(err, p.fail["look"]) {
		t.Error(err)
	}
	expect(t, "a runtime that is down", p, "")
}

// TestEndsAreCountedOnce: containers that end are, and not those of an earlier kubelet's time.
func TestEndsAreCountedOnce(t *testing.T) {
	t.Parallel()
	s, p := setup()
	name := onePod().Spec.Containers[0].Name
	end := func(id string, exit int32, at time.Time) {
		p.set(func(rt *runtime.PodStatus) {
			runs(rt)
			rt.Containers = append(rt.Containers,
				runtime.Container{Name: name, ID: runtime.ContainerID{Type: "containerd", ID: id},
					State: runtime.StateExited, ExitCode: exit, FinishedAt: at})
		})
	}
	end("earlier", 1, time.Now().Add(-time.Hour))
	for range 2 {
		if _, err := s.Sync(t.Context(), onePod()); err != nil {
			t.Fatal(err)
		}
	}
	end("now", 139, time.Now().Add(time.Hour))
	for range 2 {
		if _, err := s.Sync(t.Context(), onePod()); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.ends) != 1 || p.ends[0] != 139 {
		t.Errorf("counted %v", p.ends)
	}
}

// A plan that never gets empty does not keep the worker for good.
func TestSyncSettles(t *testing.T) {
	t.Parallel()
	s, p := setup()
	if _, err := s.Sync(t.Context(), onePod()); err == nil || err.Error() != "pod ns/p did not settle in 50 rounds" {
		t.Error(err)
	}
	if got := strings.Count(p.took(), "act"); got != maxRounds {
		t.Errorf("%d rounds", got)
	}
}

// What ends a pod before its plan is asked for, and what its status says then.
func TestWhyAPodEnds(t *testing.T) {
	t.Parallel()
	limit := int64(5)
	for name, c := range map[string]struct {
		change func(p *parts, pod *corev1.Pod)
		grace  time.Duration
		notes  string
	}{
		"it waits for its place": {func(p *parts, _ *corev1.Pod) { p.verdict = admission.Waiting }, -1, "begin"},
		"it gets no place": {func(p *parts, _ *corev1.Pod) {
			p.verdict, p.why = admission.Rejected, &admission.Rejection{Reason: "OutOfcpu"}
		}, 0,
			"begin, event OutOfcpu, release, status Failed OutOfcpu"},
		"it loses its place": {func(p *parts, _ *corev1.Pod) {
			p.verdict, p.why = admission.Preempted, &admission.Rejection{Reason: "Preempting"}
			runs(&p.rt)
		}, 0, "begin, event Preempting, status Running Preempting"},
		"it ended in an earlier life": {func(p *parts, _ *corev1.Pod) {
			p.status.Phase = corev1.PodSucceeded
		}, 0, "begin, release, status Succeeded "},
		"it fills the disk": {func(p *parts, _ *corev1.Pod) {
			p.ending = &runtime.Ending{Reason: "Evicted", Signal: "emptydirfs.limit", Message: "why",
				Grace: time.Second}
			runs(&p.rt)
		}, time.Second, "begin, qos 0, probes 1, evicted emptydirfs.limit, event Evicted, status Running Evicted"},
		"it has used up its time": {func(p *parts, pod *corev1.Pod) {
			pod.Spec.ActiveDeadlineSeconds = &limit
			p.status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Minute)}
			runs(&p.rt)
		}, 0, "begin, qos 0, probes 1, event DeadlineExceeded, status Running DeadlineExceeded"},
	} {
		s, p := setup()
		pod := onePod()
		c.change(p, pod)
		if p.ending != nil {
			s.state(pod.UID)
			if s.End("another", *p.ending) || !s.End(pod.UID, *p.ending) ||
				s.End(pod.UID, runtime.Ending{Reason: "Later"}) {
				t.Error("a pod that is not there ends, or one does not, or twice")
			}
		}
		out, err := s.Sync(t.Context(), pod)
		if err != nil || out.Ended != (c.grace >= 0) || (out.Grace != nil) != (c.grace > 0) ||
			out.Grace != nil && *out.Grace != c.grace {
			t.Errorf("%s: %+v %v", name, out, err)
		}
		expect(t, name, p, c.notes)
	}
}

// A pod whose volume is one more than the node can have waits for a while, then fails with upstream's reason.
func TestBeyondLimit(t *testing.T) {
	t.Parallel()
	s, p := setup()
	now := time.Now()
	s.cfg.Now = func() time.Time { return now }
	p.fail["act"] = fmt.Errorf("mount the volumes: %w", &volume.LimitError{Err: errors.New("no slot is left")})
	for range 2 {
		if out, err := s.Sync(t.Context(), onePod()); !errors.Is(err, p.fail["act"]) || out.Ended {
			t.Errorf("at first: %+v %v", out, err)
		}
		now = now.Add(attachPatience - time.Second)
	}
	p.took()
	now = now.Add(time.Second)
	out, err := s.Sync(t.Context(), onePod())
	if err != nil || !out.Ended || p.status.Message != "mount the volumes: no slot is left" {
		t.Errorf("later: %+v %v, %q", out, err, p.status.Message)
	}
	expect(t, "later", p, "probes 0, status Pending , prepare, act sandbox=true start=0, event VolumeAttachmentLimitExceeded, release, status Failed VolumeAttachmentLimitExceeded")
}

// A pod that the node refuses shows why in kubectl's column STATUS, which the state of a container would hide.
func TestARefusedPodTellsOfNoContainers(t *testing.T) {
	t.Parallel()
	s, p := setup()
	st := s.state("u")
	st.rejected = &admission.Rejection{Reason: "OutOfpods"}
	s.report(s.facts(onePod(), st, &runtime.PodStatus{}, false), st, true)
	if p.status.Phase != corev1.PodFailed || p.status.Reason != "OutOfpods" || len(p.status.ContainerStatuses) != 0 {
		t.Errorf("refused: %+v", p.status)
	}
	taken := s.state("taken")
	taken.rejected, taken.admitted = &admission.Rejection{Reason: "Evicted"}, true
	s.report(s.facts(onePod(), taken, &runtime.PodStatus{}, false), taken, true)
	if len(p.status.ContainerStatuses) != 1 {
		t.Errorf("taken: %+v", p.status)
	}
}

// A pod that loses its place fails with upstream's reason when its containers have ended, not before: its place is not
// free.
func TestPreempted(t *testing.T) {
	t.Parallel()
	s, p := setup()
	p.verdict, p.why = admission.Preempted,
		&admission.Rejection{Reason: "Preempting", Message: "Preempted in order to admit critical pod"}
	p.rt.Containers = []runtime.Container{{Name: "c", State: runtime.StateUnknown}}
	if out, err := s.Sync(t.Context(), onePod()); err != nil || !out.Ended {
		t.Fatal(out, err)
	}
	expect(t, "while a container may run", p, "begin, event Preempting, status Pending Preempting")
	p.rt.Containers = nil
	if err := s.Terminate(t.Context(), onePod(), time.Second); err != nil {
		t.Fatal(err)
	}
	if p.status.Phase != corev1.PodFailed || p.status.Reason != "Preempting" ||
		p.status.Message != "Preempted in order to admit critical pod" {
		t.Errorf("status %s %s: %s", p.status.Phase, p.status.Reason, p.status.Message)
	}
	if !slices.ContainsFunc(p.status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue &&
			c.Reason == "TerminationByKubelet" &&
			c.Message == "Pod was preempted by Kubelet to accommodate a critical pod."
	}) {
		t.Errorf("conditions %v", p.status.Conditions)
	}
	if got := p.took(); !strings.HasSuffix(got, "probes-, release, status Failed Preempting") {
		t.Error(got)
	}
}

// While containers use their grace period the status is kept fresh by what happens to them, and costs no looks
// otherwise.
func TestTerminate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p := setup()
		p.killing = make(chan struct{})
		runs(&p.rt)
		done := make(chan error)
		go func() { done <- s.Terminate(t.Context(), onePod(), 7*time.Second) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		expect(t, "at first", p, "readiness only, status Running ")
		for range 2 {
			s.cfg.Changes.Notify("u")
			s.cfg.Changes.Notify("other")
			synctest.Wait()
			expect(t, "after a change", p, "status Running ")
		}
		if len(s.states) != 1 {
			t.Error("a pod that is not known is remembered")
		}
		p.set(ended)
		close(p.killing)
		if err := <-done; err != nil {
			t.Error(err)
		}
		expect(t, "at the end", p, "kill 7s, probes-, release, status Succeeded ")
	})
}

// A pod counts as ended only when the runtime says so.
func TestTerminateFails(t *testing.T) {
	t.Parallel()
	s, p := setup()
	runs(&p.rt)
	if err := s.Terminate(t.Context(), onePod(),
		0); err == nil || err.Error() != "pod ns/p still has running containers" {
		t.Error(err)
	}
	expect(t, "containers that do not end", p, "readiness only, status Running , kill 0s, probes-")
	p.fail["kill"] = errors.New("hung")
	if err := s.Terminate(t.Context(), onePod(), 0); !errors.Is(err, p.fail["kill"]) {
		t.Error(err)
	}
	expect(t, "a kill that fails", p, "readiness only, status Running , kill 0s")
}

// What is left of a pod goes in an order in which nothing is lost that a step, tried again, needs.
func TestTheEnd(t *testing.T) {
	t.Parallel()
	s, p := setup()
	pod := onePod()
	p.fail["unprepare"] = errors.New("busy")
	if err := s.Cleanup(t.Context(), pod); !errors.Is(err, p.fail["unprepare"]) {
		t.Error(err)
	}
	expect(t, "what does not go", p, "unmount, unprepare")
	delete(p.fail, "unprepare")
	if err := s.Cleanup(t.Context(), pod); err != nil {
		t.Error(err)
	}
	expect(t, "cleanup", p, "unmount, unprepare, untrack")
	if err := s.Finish(t.Context(), pod); err != nil {
		t.Error(err)
	}
	expect(t, "a pod that ended by itself", p, "")
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	static := pod.DeepCopy()
	static.Annotations = map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}
	if err := errors.Join(s.Finish(t.Context(), pod), s.Finish(t.Context(), static)); err != nil {
		t.Error(err)
	}
	expect(t, "a deleted pod and a static one", p, "delete")
	s.state("u")
	runs(&p.rt)
	for _, what := range []string{"sandbox-", "container-", "directory-", "logs-"} {
		p.fail[what] = errors.New("busy")
		if err := s.Forget(t.Context(), pod); !errors.Is(err, p.fail[what]) || len(s.states) != 1 {
			t.Error(err, len(s.states))
		}
		expect(t, what+" does not go, the rest does", p, "sandbox- s1, container- c1, directory-, logs- ns p")
		delete(p.fail, what)
	}
	if err := s.Forget(t.Context(), pod); err != nil || len(s.states) != 0 {
		t.Error(err, len(s.states))
	}
	expect(t, "forgetting", p, "sandbox- s1, container- c1, directory-, logs- ns p, untrack, forget")
}

// Every condition that lifecycle computes reaches the API: one that status.Own does not name is taken for somebody
// else's and dropped.
func TestEveryConditionIsOurs(t *testing.T) {
	t.Parallel()
	rules := []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn,
			Values: []int32{42}}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", RestartPolicyRules: rules}}}}
	rt := &runtime.PodStatus{Sandboxes: []runtime.Sandbox{{ID: "s", Ready: true}},
		Containers: []runtime.Container{
			{ID: runtime.ContainerID{ID: "x"}, Name: "c", SandboxID: "s", State: runtime.StateExited, ExitCode: 42}}}
	got := lifecycle.Status(lifecycle.Facts{Pod: pod, Runtime: rt, Now: time.Now()},
		lifecycle.Report{Disruption: "evicted"})
	has := func(kind corev1.PodConditionType) bool {
		return slices.ContainsFunc(got.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	}
	if !has(corev1.DisruptionTarget) {
		t.Errorf("the kubelet ends the pod, and its conditions do not say so: %v", got.Conditions)
	}
	if !has(corev1.AllContainersRestarting) {
		t.Errorf("the pod's containers are to be restarted, and its conditions do not say so: %v", got.Conditions)
	}
	for _, c := range got.Conditions {
		if !status.Own(c.Type) {
			t.Errorf("condition %s is computed, and never written", c.Type)
		}
	}
}

// The status of a pod that the node does not take says so before the reason, and its event the reason alone, whatever
// it is.
func TestWordsOfARejection(t *testing.T) {
	t.Parallel()
	for _, verdict := range []admission.Verdict{admission.Rejected, admission.Preempted} {
		s, p := setup()
		p.verdict, p.why = verdict, &admission.Rejection{Reason: "Why", Message: "no room."}
		if _, err := s.Sync(t.Context(), onePod()); err != nil {
			t.Fatal(err)
		}
		want := "Pod was rejected: no room."
		if verdict == admission.Preempted { // it was taken once
			want = "no room."
		}
		if p.status.Message != want || p.said != "no room." {
			t.Errorf("status %q, event %q; want %q, %q", p.status.Message, p.said, want, "no room.")
		}
	}
}

// A pod that begins is given what the node has few of, once; one for which that is not there is refused. One that runs
// has it.
func TestAllocation(t *testing.T) {
	t.Parallel()
	s, p := setup()
	p.fail["allocate"] = &cm.Refusal{Reason: "UnexpectedAdmissionError",
		Message: "Allocate failed due to x, which is unexpected"}
	if out, err := s.Sync(t.Context(), onePod()); err != nil || !out.Ended {
		t.Error(out, err)
	}
	expect(t, "refused", p, "begin, event UnexpectedAdmissionError, release, status Failed UnexpectedAdmissionError")
	if p.status.Message != "Pod was rejected: Allocate failed due to x, which is unexpected" ||
		len(p.status.ContainerStatuses) > 0 || p.freed != 1 {
		t.Errorf("%+v, freed %d times", p.status, p.freed)
	}

	s, p = setup()
	p.fail["allocate"] = errors.New("the kubelet ends")
	if _, err := s.Sync(t.Context(), onePod()); !errors.Is(err, p.fail["allocate"]) || p.status.Phase != "" {
		t.Error("what was broken off is no refusal:", err, p.status.Phase)
	}

	s, p = setup()
	p.act = func(lifecycle.Plan) { p.set(runs) }
	for range 3 {
		if _, err := s.Sync(t.Context(), onePod()); err != nil {
			t.Fatal(err)
		}
	}
	if p.allocated != 1 || p.status.ContainerStatuses[0].AllocatedResourcesStatus[0].Name != "example.com/foo" {
		t.Errorf("given %d times, %+v", p.allocated, p.status.ContainerStatuses)
	}

	s, p = setup()
	p.set(runs)
	if _, err := s.Sync(t.Context(), onePod()); err != nil || p.allocated != 0 {
		t.Errorf("a pod that ran before is given something %d times, %v", p.allocated, err)
	}
}

// That a pod runs is told once, and only of one that did not when the kubelet began.
func TestTellsOnceThatAPodRuns(t *testing.T) {
	t.Parallel()
	for before, want := range map[corev1.PodPhase]int{corev1.PodPending: 1, corev1.PodRunning: 0} {
		s, p := setup()
		now := time.Now()
		s.cfg.Now = func() time.Time { return now }
		runs(&p.rt)
		p.rt.Containers = append(p.rt.Containers,
			runtime.Container{Name: "init", State: runtime.StateExited, StartedAt: now.Add(-7 * time.Second),
				FinishedAt: now.Add(-2 * time.Second)})
		p.status.Phase = before
		pod := onePod()
		pod.CreationTimestamp = metav1.NewTime(now.Add(-9 * time.Second))
		pod.Spec.InitContainers = []corev1.Container{{Name: "init"}}
		for range 3 {
			if _, err := s.Sync(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
		if p.started != want || want > 0 && (p.created != 9*time.Second || p.images != 5*time.Second) {
			t.Errorf("%s before: told %d times, of %s with %s for what comes first", before, p.started, p.created,
				p.images)
		}
	}
}
