package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// restartAllOn gives container name of p the rule that exit code 42 restarts all containers.
func restartAllOn(p *corev1.Pod, name string) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name != name {
				continue
			}
			if list[i].RestartPolicy == nil {
				list[i].RestartPolicy = new(corev1.ContainerRestartPolicyNever)
			}
			list[i].RestartPolicyRules = []corev1.ContainerRestartRule{{
				Action: corev1.ContainerRestartRuleActionRestartAllContainers,
				ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn,
					Values: []int32{42}},
			}}
		}
	}
}

// TestRestartAll: an exit code whose rule says RestartAllContainers restarts the pod's containers in place, whatever
// kind of container it was and whatever became of the others (KEP-5532, "Restart Phases").
func TestRestartAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, pod, rule, world, plan, status string }{
		{"a regular container", "Never init:i a b", "a", "sandbox a=42 b=running i=0", "restart-all", "Running"},
		{"the others have ended", "Never a b", "a", "sandbox a=42 b=0", "restart-all", "Running"},
		{"a sidecar, after its pod's work", "Never side:s a", "s", "sandbox s=42 a=0", "restart-all", "Running"},
		{"a sidecar while others run", "Never side:s a", "s", "sandbox s=42 a=running", "restart-all", "Running"},
		{"an init container", "Never init:i a", "i", "sandbox i=42", "restart-all", "Pending"},
		{"another exit code", "Never a b", "a", "sandbox a=1 b=running", "", "Running"},
		{"a newer instance runs", "Never a b", "a", "sandbox a=running a=42 b=running", "", "Running"},
		{"the exit was in an earlier sandbox", "Always a", "a", "sandbox old:a=42", "start:a#1", "Running"},
		{"all removed", "Never init:i a", "a", "sandbox", "start:i#0", "Pending"},
		{"an ephemeral container stays", "Never a ephemeral:e", "a", "sandbox e=0", "start:a#0", "Pending"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := Facts{Pod: pod(c.pod), Runtime: world(c.world), Probes: map[string]Probes{},
				BackOff: map[string]time.Time{}, Now: now}
			restartAllOn(f.Pod, c.rule)
			if got := text(Next(f)); got != c.plan {
				t.Errorf("plan %q, want %q", got, c.plan)
			}
			st := Status(f, Report{})
			if string(st.Phase) != c.status {
				t.Errorf("phase %s, want %s", st.Phase, c.status)
			}
			cond := condition(st.Conditions, corev1.AllContainersRestarting)
			if restarting := c.plan ==
				"restart-all"; restarting != (cond != nil && cond.Status == corev1.ConditionTrue) {
				t.Errorf("condition %+v", cond)
			}
		})
	}
}

// TestRestartAllAfterwards: once all containers are removed, the pod goes on, with its counts raised, the condition
// False, and alive although all that its status knows has ended.
func TestRestartAllAfterwards(t *testing.T) {
	t.Parallel()
	f := Facts{Pod: pod("Never side:s init:i a"), Runtime: world("sandbox s=42 a=running i=0"),
		Probes: map[string]Probes{}, BackOff: map[string]time.Time{}, Now: now}
	restartAllOn(f.Pod, "s")
	f.Pod.Status = Status(f, Report{})
	if c := condition(f.Pod.Status.Conditions,
		corev1.AllContainersRestarting); c == nil || c.Reason != "RestartAllContainersStarted" {
		t.Errorf("condition %+v", c)
	}
	f.Runtime = world("sandbox")
	st := Status(f, Report{})
	if end := st.ContainerStatuses[0].LastTerminationState.Terminated; end == nil ||
		end.Message != "The container is removed because RestartAllContainers in place" {
		t.Errorf("how a ended: %+v", end)
	}
	if st.Phase != corev1.PodRunning {
		t.Errorf("phase %s", st.Phase)
	}
	if c := condition(st.Conditions, corev1.AllContainersRestarting); c == nil || c.Status != corev1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}
	f.Pod.Status = st
	if got := text(Next(f)); got != "start:s#1" {
		t.Errorf("plan %q", got)
	}
	f.BackOff["s"] = now.Add(10 * time.Second)
	if got := text(Next(f)); got != "wait:s" {
		t.Errorf("plan while backing off %q", got)
	}
	f.Terminating, f.Runtime = true, world("sandbox s=42 a=running")
	if got := text(Next(f)); got != "kill-pod" {
		t.Errorf("plan of an ending pod %q", got)
	}

	// In its new life the pod is as any other: what the runtime forgets then stays ended.
	f.Terminating, f.Now = false, now.Add(time.Hour)
	f.Runtime = world("sandbox a=running i=0 s=running")
	for i := range f.Runtime.Containers {
		f.Runtime.Containers[i].StartedAt, f.Runtime.Containers[i].FinishedAt = f.Now, f.Now
	}
	f.Pod.Status = Status(f, Report{})
	f.Runtime = world("")
	f.Pod.Status = Status(f, Report{})
	if got := text(Next(f)); got != "" {
		t.Errorf("plan after the runtime forgot the new life: %q", got)
	}
}
