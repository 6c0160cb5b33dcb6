package podsyncer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/kubelet/volume"
)

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
			"begin, event OutOfcpu, rejected OutOfcpu, release, status Failed OutOfcpu"},
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
	expect(t, "refused", p,
		"begin, event UnexpectedAdmissionError, rejected UnexpectedAdmissionError, release, status Failed UnexpectedAdmissionError")
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
