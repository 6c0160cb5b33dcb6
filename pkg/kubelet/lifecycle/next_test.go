package lifecycle

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// pod builds a pod of words: "Always c1 init:i1 side:s1 init-Never:i2".
func pod(words string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}}
	always := corev1.ContainerRestartPolicyAlways
	for i, w := range strings.Fields(words) {
		kind, name, ok := strings.Cut(w, ":")
		switch {
		case i == 0:
			p.Spec.RestartPolicy = corev1.RestartPolicy(w)
		case !ok:
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: w, Image: "img"})
		case strings.HasPrefix(kind, "init-"):
			own := corev1.ContainerRestartPolicy(strings.TrimPrefix(kind, "init-"))
			p.Spec.InitContainers = append(p.Spec.InitContainers,
				corev1.Container{Name: name, Image: "img", RestartPolicy: &own})
		case kind == "init":
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name, Image: "img"})
		case kind == "side":
			p.Spec.InitContainers = append(p.Spec.InitContainers,
				corev1.Container{Name: name, Image: "img", RestartPolicy: &always,
					StartupProbe: &corev1.Probe{}})
		case kind == "ephemeral":
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "img"}})
		}
	}
	return p
}

// world builds what the runtime knows of words: "sandbox" (ready) or "dead-sandbox", "c1=running", "c1=0" (exit code),
// "c1=created", "c1=stuck" (made, and stays), "c1=changed" (running with another image), "old:c1=1" (in an earlier
// sandbox). Later words are older.
func world(words string) *runtime.PodStatus {
	rt := &runtime.PodStatus{UID: "u", Name: "p", Namespace: "ns"}
	at := now.Add(-time.Minute)
	for _, w := range strings.Fields(words) {
		at = at.Add(-time.Second)
		if strings.HasSuffix(w, "sandbox") {
			rt.Sandboxes = append(rt.Sandboxes,
				runtime.Sandbox{ID: fmt.Sprintf("sb%d", len(rt.Sandboxes)), Ready: w == "sandbox",
					IPs: []string{"10.0.0.2"}, CreatedAt: at})
			continue
		}
		sandbox := "sb0"
		if rest, ok := strings.CutPrefix(w, "old:"); ok {
			w, sandbox = rest, "sb-gone"
		}
		name, state, _ := strings.Cut(w, "=")
		n := len(rt.Containers)
		c := runtime.Container{ID: runtime.ContainerID{Type: "containerd", ID: fmt.Sprintf("id%d", n)}, Name: name,
			SandboxID: sandbox,
			State:     runtime.StateExited, CreatedAt: at, StartedAt: at, FinishedAt: now.Add(-time.Second),
			Hash: Hash(&corev1.Container{Name: name, Image: "img"})}
		switch state {
		case "running", "changed":
			c.State = runtime.StateRunning
			if state == "changed" {
				c.Hash = "other"
			}
		case "created", "stuck":
			c.State, c.Stuck = runtime.StateCreated, state == "stuck"
		case "unknown":
			c.State = runtime.StateUnknown
		default:
			fmt.Sscan(state, &c.ExitCode)
			c.Reason = "Error"
		}
		rt.Containers = append(rt.Containers, c)
	}
	return rt
}

// text writes a plan in words.
func text(p Plan) string {
	var w []string
	if p.KillPod {
		w = append(w, "kill-pod")
	}
	if p.RestartAll {
		w = append(w, "restart-all")
	}
	if p.NewSandbox {
		w = append(w, fmt.Sprintf("sandbox#%d", p.Attempt))
	}
	for _, k := range p.Kill {
		w = append(w, "kill:"+k.Container.Name)
	}
	if p.ResizePod {
		w = append(w, "resize-pod")
	}
	for _, u := range p.Updates {
		w = append(w, "update:"+u.Container.Name)
	}
	for _, r := range p.Remove {
		w = append(w, "remove:"+r.Name)
	}
	for _, s := range p.Start {
		w = append(w, fmt.Sprintf("start:%s#%d", s.Container.Name, s.Attempt))
	}
	var waits []string
	for n := range p.Wait {
		waits = append(waits, "wait:"+n)
	}
	sort.Strings(waits)
	return strings.Join(append(w, waits...), " ")
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, pod, world, more, want string }{
		{"new pod", "Always a", "", "", "sandbox#0"},
		{"sandbox made", "Always a b", "sandbox", "", "start:a#0 start:b#0"},
		{"all run", "Always a b", "sandbox a=running b=running", "", ""},
		{"init containers one at a time", "Always init:i init:j a", "sandbox", "", "start:i#0"},
		{"first init runs", "Always init:i init:j a", "sandbox i=running", "", ""},
		{"second init after the first", "Always init:i init:j a", "sandbox i=0", "", "start:j#0"},
		{"regular after all inits", "Always init:i a", "sandbox i=0", "", "start:a#0"},
		{"failed init again", "Always init:i a", "sandbox i=1", "", "start:i#1"},
		{"failed init for good", "Never init:i a", "sandbox i=1", "", "kill-pod"},
		{"failed init backs off", "Always init:i a", "sandbox i=1", "backoff:i", "wait:i"},
		{"sidecar first", "Always side:s a", "sandbox", "", "start:s#0"},
		{"sidecar not started yet", "Always side:s a", "sandbox s=running", "", ""},
		{"sidecar started", "Always side:s a", "sandbox s=running", "started:id0", "start:a#0"},
		{"sidecar dies later", "Never side:s a", "sandbox a=running s=1", "", "start:s#1"},
		{"sidecar does not hold a finished pod", "Never side:s a", "sandbox a=0 s=running", "started:id1", "kill-pod"},
		{"inits are not repeated once a container began", "Always init:i a", "sandbox a=running", "", ""},
		{"restart always", "Always a", "sandbox a=0", "", "start:a#1"},
		{"restart on failure", "OnFailure a b", "sandbox a=1 b=0", "", "start:a#1"},
		{"finished on failure", "OnFailure a", "sandbox a=0", "", "kill-pod"},
		{"never again", "Never a b", "sandbox a=1 b=running", "", ""},
		{"back-off", "Always a b", "sandbox a=1 b=running", "backoff:a", "wait:a"},
		{"liveness", "Always a", "sandbox a=running", "unlive:id0", "kill:a start:a#1"},
		{"liveness without restart", "Never a", "sandbox a=running", "unlive:id0", "kill:a"},
		{"liveness on failure", "OnFailure a", "sandbox a=running", "unlive:id0", "kill:a start:a#1"},
		{"image changed", "Never a", "sandbox a=changed", "", "kill:a start:a#1"},
		{"unknown state", "Always a", "sandbox a=unknown", "", "kill:a start:a#1"},
		{"unknown state on failure", "OnFailure a", "sandbox a=unknown", "", "kill:a start:a#1"},
		{"unknown state, never again", "Never a", "sandbox a=unknown", "", "kill:a"},
		{"unknown state, never again, beside one that runs", "Never a b", "sandbox a=unknown b=running", "", "kill:a"},
		{"init in unknown state", "OnFailure init:i a", "sandbox i=unknown", "", "kill:i start:i#1"},
		{"init in unknown state, never again", "Never init:i a", "sandbox i=unknown", "", "kill:i"},
		{"sidecar in unknown state", "Never side:s a", "sandbox s=unknown", "", "kill:s start:s#1"},
		{"made and never ran", "Always a b", "sandbox a=created b=running", "", "remove:a start:a#0"},
		{"made again after a crash and never ran", "Always a", "sandbox a=created a=1", "backoff:a", "wait:a"},
		{"made and never ran, never again", "Never a", "sandbox a=created", "", "remove:a start:a#0"},
		{"made and never ran, but it stays", "Never a b", "sandbox a=stuck b=running", "", "start:a#1"},
		{"the next one beside it", "Never a", "sandbox a=0 a=stuck", "", "kill-pod"},
		{"init that stays", "Never init:i a", "sandbox i=stuck", "", "start:i#1"},
		{"ephemeral that stays", "Always a ephemeral:e", "sandbox a=running e=stuck", "", "start:e#1"},
		{"init made and never ran", "Never init:i a", "sandbox i=created", "", "remove:i start:i#0"},
		{"init made in a sandbox that died", "Never init:i a", "sandbox old:i=created", "", "remove:i start:i#0"},
		{"sidecar made and never ran", "Always side:s a", "sandbox s=created", "", "remove:s start:s#0"},
		{"ephemeral made and never ran", "Always a ephemeral:e", "sandbox a=running e=created", "",
			"remove:e start:e#0"},
		{"sandbox died", "Always a", "dead-sandbox a=running", "", "kill-pod sandbox#1"},
		{"sandbox died with its container", "Always a", "dead-sandbox a=137", "", "sandbox#1"},
		{"sandbox died, pod never restarts", "Never a", "dead-sandbox a=137", "", ""},
		{"sandbox died before a container was made", "Never a b", "dead-sandbox a=0", "", "sandbox#1"},
		{"only what was never made", "Never a b", "sandbox old:a=0", "", "start:b#0"},
		{"sandbox died, one has succeeded", "OnFailure a b", "dead-sandbox a=0", "", "sandbox#1"},
		{"sandbox died with what was made and never ran", "Never a", "dead-sandbox a=created", "", "sandbox#1"},
		{"sandbox died with what ran", "Never a", "dead-sandbox a=running", "", "kill-pod"},
		{"inits again in a new sandbox", "Always init:i a", "sandbox old:a=137 old:i=0", "", "start:i#1"},
		{"two ready sandboxes", "Always a", "sandbox sandbox a=running", "", "kill-pod sandbox#1"},
		{"ephemeral", "Always a ephemeral:e", "sandbox a=running", "", "start:e#0"},
		{"ephemeral once", "Always a ephemeral:e", "sandbox a=running e=1", "", ""},
		{"terminating", "Always a", "sandbox a=running", "terminating", "kill-pod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := Facts{Pod: pod(c.pod), Runtime: world(c.world), Probes: map[string]Probes{},
				BackOff: map[string]time.Time{}, Now: now}
			switch what, arg, _ := strings.Cut(c.more, ":"); what {
			case "backoff":
				f.BackOff[arg] = now.Add(9 * time.Second)
			case "started":
				f.Probes["containerd://"+arg] = Probes{Startup: runtime.ProbeSuccess}
			case "unlive":
				f.Probes["containerd://"+arg] = Probes{Liveness: runtime.ProbeFailure}
			case "terminating":
				f.Terminating = true
			}
			p := Next(f)
			if got := text(p); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(p.Wait) > 0 && !p.Wake.Equal(now.Add(9*time.Second)) {
				t.Errorf("wakes at %v", p.Wake)
			}
		})
	}
}

func TestRestartRules(t *testing.T) {
	t.Parallel()
	never := corev1.ContainerRestartPolicyNever
	c := &corev1.Container{Name: "a", RestartPolicy: &never, RestartPolicyRules: []corev1.ContainerRestartRule{{
		Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn,
			Values: []int32{42}}}}}
	p := pod("Always a")
	if !restarts(p, c, 42) || restarts(p, c, 1) {
		t.Error("the container's own rules must win over the pod's policy")
	}
}

func TestBackOff(t *testing.T) {
	t.Parallel()
	var b BackOff
	at := now
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if i == 0 && !b.Until(at, at, 0).IsZero() {
			t.Fatal("the first restart must be free")
		}
		b = b.Restarted(at, at, 0)
		if b.Delay != want*time.Second {
			t.Fatalf("restart %d: delay %v, want %v", i, b.Delay, want*time.Second)
		}
		at = at.Add(b.Delay)
	}
	if until := b.Until(at.Add(4*time.Minute), at.Add(4*time.Minute), 0); !until.Equal(at.Add(9 * time.Minute)) {
		t.Errorf("an end soon after the restart waits until %v", until)
	}
	if until := b.Until(at.Add(24*time.Hour), at.Add(24*time.Hour), 0); !until.IsZero() {
		t.Errorf("a container that ran well for a day waits %v after its end", until.Sub(at.Add(24*time.Hour)))
	}
	if until := b.Until(at.Add(24*time.Hour), at, 0); !until.Equal(b.Updated.Add(backOffMax)) {
		t.Errorf("a container that ended before the clock was put back waits %v after its restart",
			until.Sub(b.Updated))
	}
	if b = b.Restarted(at.Add(11*time.Minute), at.Add(11*time.Minute), 0); b.Delay != backOffInitial {
		t.Errorf("after running well the delay is %v", b.Delay)
	}
	if b = (BackOff{}).Restarted(at, at, time.Second); b.Delay != time.Second {
		t.Errorf("a lower limit is not kept: %v", b.Delay)
	}
	r := CrashLoop(pod("Always a"), "a", 10*time.Second)
	if r.Message != "back-off 10s restarting failed container=a pod=p_ns(u)" {
		t.Errorf("message %q", r.Message)
	}
}

// What the runtime has forgotten is known from the status: after a reboot, or when the runtime lost its state. The
// restart policy holds for it as for all others
// (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy).
func TestForgottenContainers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, pod, before, world, want, phase string }{
		{"never, it ran", "Never a", "sandbox a=running", "", "", "Failed"},
		{"never, it ran, in a sandbox made since", "Never a", "sandbox a=running", "sandbox", "kill-pod", "Failed"},
		{"never, it succeeded", "Never a", "sandbox a=0", "", "", "Succeeded"},
		{"never, one failed and one ran", "Never a b", "sandbox a=1 b=running", "", "", "Failed"},
		{"never, one never began", "Never a b", "sandbox a=0", "", "sandbox#0", "Pending"},
		{"never, the other is started alone", "Never a b", "sandbox a=0", "sandbox", "start:b#0", "Pending"},
		{"never, its init container ran", "Never init:i a", "sandbox i=running", "", "", "Failed"},
		{"never, its init container failed", "Never init:i a", "sandbox i=1", "", "", "Failed"},
		{"never, its init containers were done", "Never init:i a", "sandbox i=0", "", "sandbox#0", "Pending"},
		{"never, nothing had begun", "Never a", "sandbox", "", "sandbox#0", "Pending"},
		{"on failure, it ran", "OnFailure a", "sandbox a=running", "", "sandbox#0", "Running"},
		{"on failure, it runs again", "OnFailure a", "sandbox a=running", "sandbox", "start:a#1", "Running"},
		{"on failure, it succeeded", "OnFailure a", "sandbox a=0", "", "", "Succeeded"},
		{"on failure, one succeeded and one ran", "OnFailure a b", "sandbox a=0 b=running", "sandbox", "start:b#1",
			"Running"},
		{"on failure, its init container ran", "OnFailure init:i a", "sandbox i=running", "", "sandbox#0", "Pending"},
		{"always", "Always a b", "sandbox a=0 b=running", "sandbox", "start:a#1 start:b#1", "Running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := Facts{Pod: pod(c.pod), Runtime: world(c.before), Probes: map[string]Probes{}, Now: now}
			f.Pod.Status = Status(f, Report{})
			f.Pod.Status.Phase = corev1.PodRunning // as an end would have been the last word
			f.Runtime = world(c.world)
			if got := text(Next(f)); got != c.want {
				t.Errorf("plan %q, want %q", got, c.want)
			}
			st := Status(f, Report{})
			if string(st.Phase) != c.phase {
				t.Errorf("phase %s, want %s", st.Phase, c.phase)
			}
			f.Pod.Status = st
			if got := text(Next(f)); got != c.want {
				t.Errorf("plan %q after the report, want %q", got, c.want)
			}
		})
	}
}
