package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var epoch = time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)

// jobWith is a job that began at epoch.
func jobWith(change func(*batchv1.JobSpec)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j", UID: "u"}, Spec: batchv1.JobSpec{
		Parallelism: new(int32(2)), Completions: new(int32(3)), BackoffLimit: new(int32(6)),
		Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "c"}}}},
	}}
	j.Status.StartTime = new(metav1.NewTime(epoch))
	if change != nil {
		change(&j.Spec)
	}
	return j
}

func indexedJob(change func(*batchv1.JobSpec)) *batchv1.Job {
	return jobWith(func(s *batchv1.JobSpec) {
		s.CompletionMode = new(batchv1.IndexedCompletion)
		if change != nil {
			change(s)
		}
	})
}

// podOf reads "name phase@index/failures exit=n", with "deleting", "free" of its finalizer and "disrupted" as further
// words.
func podOf(text string) *corev1.Pod {
	words := strings.Fields(text)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: words[0], UID: types.UID(words[0]),
		CreationTimestamp: metav1.NewTime(epoch), Finalizers: []string{batchv1.JobTrackingFinalizer},
		Annotations: map[string]string{}}}
	phase, index, placed := strings.Cut(words[1], "@")
	if p.Status.Phase = corev1.PodPhase(phase); p.Status.Phase == corev1.PodRunning {
		p.Spec.NodeName = "n"
	}
	if placed {
		at, failures, counted := strings.Cut(index, "/")
		p.Annotations[batchv1.JobCompletionIndexAnnotation] = at
		if counted {
			p.Annotations[batchv1.JobIndexFailureCountAnnotation] = failures
		}
	}
	for _, w := range words[2:] {
		switch code, exit := strings.CutPrefix(w, "exit="); {
		case exit:
			n, _ := strconv.Atoi(code)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "c", State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(n),
						FinishedAt: metav1.NewTime(epoch)}}}}
		case w == "deleting":
			p.DeletionTimestamp = new(metav1.NewTime(epoch))
		case w == "free":
			p.Finalizers = nil
		case w == "disrupted":
			p.Status.Conditions = append(p.Status.Conditions,
				corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
		case w == "ready":
			p.Status.Conditions = append(p.Status.Conditions,
				corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		}
	}
	return p
}

// told is a plan in words.
func told(p plan) string {
	var out []string
	names := func(what string, pods []*corev1.Pod) {
		if len(pods) == 0 {
			return
		}
		var all []string
		for _, p := range pods {
			name := p.Name
			if what == "create" {
				name = "new"
				if i := p.Annotations[batchv1.JobCompletionIndexAnnotation]; i != "" {
					name = i
				}
				if n := p.Annotations[batchv1.JobIndexFailureCountAnnotation]; n != "" {
					name += "/" + n
				}
			}
			all = append(all, name)
		}
		slices.Sort(all)
		out = append(out, what+" "+strings.Join(all, " "))
	}
	names("create", p.create)
	names("withdraw", p.withdraw)
	names("stop", p.stop)
	names("release", p.release)
	st := p.status
	counts := fmt.Sprintf("%da %ds %df", st.Active, st.Succeeded, st.Failed)
	if u := st.UncountedTerminatedPods; len(u.Succeeded)+len(u.Failed) > 0 {
		counts += fmt.Sprintf(" waiting %v %v", u.Succeeded, u.Failed)
	}
	if st.CompletedIndexes != "" {
		counts += " done=" + st.CompletedIndexes
	}
	if deref(st.FailedIndexes) != "" {
		counts += " lost=" + *st.FailedIndexes
	}
	out = append(out, counts)
	for _, c := range st.Conditions {
		if c.Status == corev1.ConditionTrue {
			out = append(out, string(c.Type)+"("+c.Reason+")")
		}
	}
	if p.wait > 0 {
		out = append(out, "wait "+p.wait.String())
	}
	return strings.Join(out, ", ")
}

// TestDecide: the next step of jobs as kube-controller-manager v1.36.3 takes it.
func TestDecide(t *testing.T) {
	t.Parallel()
	policy := func(action batchv1.PodFailurePolicyAction) *batchv1.PodFailurePolicy {
		return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}},
			{Action: batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
					{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}},
		}}
	}
	suspended := jobWith(func(s *batchv1.JobSpec) { s.Suspend = new(true) })
	resumed := jobWith(nil)
	resumed.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended"}}
	waiting := jobWith(nil)
	waiting.Status.Succeeded, waiting.Status.UncountedTerminatedPods = 1,
		&batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a", "b"}, Failed: []types.UID{"gone"}}
	met := jobWith(nil)
	met.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, Reason: "CompletionsReached"}}
	met.Status.Succeeded = 3
	target := jobWith(nil)
	target.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: "Why"}}
	shrunk := indexedJob(func(s *batchv1.JobSpec) { s.Completions, s.Parallelism = new(int32(2)), new(int32(2)) })
	shrunk.Status.CompletedIndexes, shrunk.Status.Succeeded = "3", 1
	leaving := jobWith(nil)
	leaving.DeletionTimestamp = new(metav1.NewTime(epoch))
	for _, c := range []struct {
		name string
		job  *batchv1.Job
		pods string
		at   time.Duration
		want string
	}{
		{"new", jobWith(nil), "", 0, "create new new, 2a 0s 0f"},
		{"the last ones", jobWith(nil), "a Succeeded, b Succeeded", 0,
			"create new, release a b, 1a 0s 0f waiting [a b] []"},
		{"a limit of nothing", jobWith(func(s *batchv1.JobSpec) { s.Parallelism = new(int32(0)) }), "", 0, "0a 0s 0f"},
		{"counted", waiting, "a Succeeded free, b Succeeded, c Running ready", 0,
			"withdraw c, release b, 0a 2s 1f waiting [b] []"},
		{"reached", jobWith(nil), "a Succeeded, b Succeeded, c Succeeded", 0,
			"release a b c, 0a 0s 0f waiting [a b c] [], SuccessCriteriaMet(CompletionsReached)"},
		{"complete", met, "a Succeeded free", 0,
			"0a 3s 0f, SuccessCriteriaMet(CompletionsReached), Complete(CompletionsReached)"},
		{"complete but for one that leaves", met, "a Running deleting free", 0,
			"0a 3s 0f, SuccessCriteriaMet(CompletionsReached)"},
		{"after a failure", jobWith(nil), "a Failed exit=1, b Running", 4 * time.Second,
			"release a, 1a 0s 0f waiting [] [a], wait 6s"},
		{"after two failures", jobWith(nil), "a Failed exit=1, b Failed exit=1", 4 * time.Second,
			"release a b, 0a 0s 0f waiting [] [a b], wait 16s"},
		{"a success ends the wait", jobWith(nil), "a Failed exit=1, b Succeeded", 4 * time.Second,
			"create new new, release a b, 2a 0s 0f waiting [b] [a]"},
		{"too many failures", jobWith(func(s *batchv1.JobSpec) {
			s.BackoffLimit = new(int32(0))
		}), "a Failed exit=1, b Running", 0,
			"stop b, release a, 0a 0s 0f waiting [] [a], FailureTarget(BackoffLimitExceeded)"},
		{"stopped pods have failed", target, "b Running deleting", 0,
			"release b, 0a 0s 0f waiting [] [b], FailureTarget(Why)"},
		{"failed", target, "b Running free deleting, c Failed free", 0, "0a 0s 0f, FailureTarget(Why)"},
		{"failed for good", target, "c Failed free", 0, "0a 0s 0f, FailureTarget(Why), Failed(Why)"},
		{"deadline", jobWith(func(s *batchv1.JobSpec) {
			s.ActiveDeadlineSeconds = new(int64(30))
		}), "a Running, b Running", 30 * time.Second, "stop a b, 0a 0s 0f, FailureTarget(DeadlineExceeded)"},
		{"before the deadline", jobWith(func(s *batchv1.JobSpec) {
			s.ActiveDeadlineSeconds = new(int64(30))
		}), "a Running, b Running", 20 * time.Second, "2a 0s 0f, wait 10s"},
		{"suspended", suspended, "a Running, b Pending", 0, "withdraw a b, 0a 0s 0f, Suspended(JobSuspended)"},
		{"resumed", resumed, "", 0, "0a 0s 0f"},
		{"less at a time", jobWith(func(s *batchv1.JobSpec) {
			s.Parallelism = new(int32(1))
		}), "a Running ready, b Pending", 0, "withdraw b, 1a 0s 0f"},
		{"any success", jobWith(func(s *batchv1.JobSpec) {
			s.Completions = nil
		}), "a Succeeded, b Running", 0, "release a, 1a 0s 0f waiting [a] []"},
		{"replaced as it leaves", jobWith(nil), "a Running deleting, b Running", time.Hour,
			"create new, release a, 2a 0s 0f waiting [] [a]"},
		{"replaced when gone", jobWith(func(s *batchv1.JobSpec) {
			s.PodReplacementPolicy = new(batchv1.Failed)
		}), "a Running deleting, b Running", time.Hour, "1a 0s 0f"},
		{"deleted", leaving, "a Running, b Succeeded", 0, "release a b, 1a 0s 0f waiting [b] []"},

		{"indexes", indexedJob(nil), "a Succeeded@0", 0, "create 1 2, release a, 2a 1s 0f done=0"},
		{"two for an index", indexedJob(nil), "a Running@0 ready, b Pending@0", 0, "withdraw b, 1a 0s 0f"},
		{"an index that is done", indexedJob(nil), "a Succeeded@0, b Running@0", 0,
			"withdraw b, release a, 0a 1s 0f done=0"},
		{"shrunk", shrunk, "a Running@0, b Running@1, c Running@2, d Succeeded@3 free", 0, "withdraw c, 2a 0s 0f"},
		{"kept until its successor is there", indexedJob(func(s *batchv1.JobSpec) {
			s.BackoffLimitPerIndex = new(int32(1))
		}), "a Failed@0/0 exit=1, b Running@1", 4 * time.Second, "1a 0s 0f, wait 6s"},
		{"successor", indexedJob(func(s *batchv1.JobSpec) {
			s.BackoffLimitPerIndex = new(int32(1))
		}), "a Failed@0/0 exit=1, b Running@1", 10 * time.Second, "create 0/1, 2a 0s 0f"},
		{"let go", indexedJob(func(s *batchv1.JobSpec) {
			s.BackoffLimitPerIndex = new(int32(1))
		}), "a Failed@0/0 exit=1, c Running@0/1, b Running@1", 10 * time.Second, "release a, 2a 0s 0f waiting [] [a]"},
		{"an index lost", indexedJob(func(s *batchv1.JobSpec) {
			s.BackoffLimitPerIndex = new(int32(1))
		}), "c Failed@0/1 exit=1, b Running@1", 10 * time.Second,
			"create 2/0, release c, 2a 0s 0f waiting [] [c] lost=0"},
		{"too many indexes lost", indexedJob(func(s *batchv1.JobSpec) {
			s.BackoffLimitPerIndex, s.MaxFailedIndexes = new(int32(0)), new(int32(0))
		}), "c Failed@0/0 exit=1, b Running@1", 0,
			"stop b, release c, 0a 0s 0f waiting [] [c] lost=0, FailureTarget(MaxFailedIndexesExceeded)"},
		{"all indexes ended", indexedJob(func(s *batchv1.JobSpec) {
			s.BackoffLimitPerIndex = new(int32(0))
		}), "a Succeeded@0, b Succeeded@1, c Failed@2/0 exit=1", 0,
			"release a b c, 0a 2s 0f waiting [] [c] done=0,1 lost=2, FailureTarget(FailedIndexes)"},
		{"success policy", indexedJob(func(s *batchv1.JobSpec) {
			s.SuccessPolicy = &batchv1.SuccessPolicy{
				Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0-1"), SucceededCount: new(int32(1))}}}
		}), "a Succeeded@1, b Running@0", 0,
			"withdraw b, release a, 0a 1s 0f done=1, SuccessCriteriaMet(SuccessPolicy)"},

		{"fail the job", jobWith(func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = policy(batchv1.PodFailurePolicyActionFailJob)
		}), "a Failed exit=42, b Running", 0,
			"stop b, release a, 0a 0s 0f waiting [] [a], FailureTarget(PodFailurePolicy)"},
		{"a withdrawn pod fails nothing", jobWith(func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = policy(batchv1.PodFailurePolicyActionFailJob)
		}), "a Failed exit=42 free deleting, b Running, c Running", 0, "2a 0s 0f"},
		{"ignored", jobWith(func(s *batchv1.JobSpec) {
			s.PodFailurePolicy = policy(batchv1.PodFailurePolicyActionFailJob)
		}), "a Failed exit=1 disrupted, b Running", 10 * time.Second, "create new, release a, 2a 0s 0f"},
		{"fail the index", indexedJob(func(s *batchv1.JobSpec) {
			s.PodFailurePolicy, s.BackoffLimitPerIndex = policy(batchv1.PodFailurePolicyActionFailIndex), new(int32(9))
		}), "a Failed@0/0 exit=42, b Running@1", 0, "create 2/0, release a, 2a 0s 0f waiting [] [a] lost=0"},
	} {
		s := &state{rules: rules{c.job.DeepCopy()}, now: epoch.Add(c.at), upToDate: true}
		var pods []*corev1.Pod
		for text := range strings.SplitSeq(c.pods, ",") {
			if text != "" {
				pods = append(pods, podOf(text))
			}
		}
		s.see(pods)
		s.failures = failures{}.with(s)
		if got := told(s.decide()); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestRestarts: where containers are started again in their pods, the restarts are the failures.
func TestRestarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, restarts int32
		over            bool
	}{{0, 0, false}, {0, 1, true}, {2, 1, false}, {2, 2, true}} {
		j := jobWith(func(s *batchv1.JobSpec) {
			s.BackoffLimit, s.Template.Spec.RestartPolicy = new(c.limit), corev1.RestartPolicyOnFailure
		})
		p := podOf("a Running")
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: c.restarts}}
		s := &state{rules: rules{j}, now: epoch, upToDate: true}
		s.see([]*corev1.Pod{p})
		if got := s.decide().status.Conditions; (len(got) > 0) != c.over {
			t.Errorf("limit %d, %d restarts: %v", c.limit, c.restarts, got)
		}
	}
}

// TestPodOfIndex: what a pod is told of its index, and that the same pod gets the same name until it is there.
func TestPodOfIndex(t *testing.T) {
	t.Parallel()
	s := &state{rules: rules{indexedJob(nil)}, now: epoch, upToDate: true}
	s.job.Spec.Template.Spec.Hostname = "mine" // makes way for the index's
	s.see(nil)
	first, again := s.decide().create, s.decide().create
	if len(first) != 2 || first[0].Name != again[0].Name || first[1].Name != again[1].Name {
		t.Fatalf("%v, then %v", first, again)
	}
	p := first[1]
	field := p.Spec.Containers[0].Env[0].ValueFrom.FieldRef.FieldPath
	if !strings.HasPrefix(p.Name, "j-1-") || len(p.Name) != len("j-1-")+suffixLength || p.GenerateName != "j-1-" ||
		p.Spec.Hostname != "j-1" ||
		p.Labels[batchv1.JobCompletionIndexAnnotation] != "1" ||
		field != "metadata.labels['batch.kubernetes.io/job-completion-index']" || !tracked(p) {
		t.Errorf("%+v", p)
	}
	s.salt++
	if other := s.decide().create; other[1].Name == p.Name {
		t.Error("a name that a stranger has is tried again")
	}
}
