package lifecycle

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

func state(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return "terminated"
	case s.Waiting != nil:
		return s.Waiting.Reason
	}
	return "none"
}

// summary writes a status in words: phase, each container's state, conditions that are not True with their reasons.
func summary(st corev1.PodStatus) string {
	w := []string{string(st.Phase)}
	for _, list := range [][]corev1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses} {
		for _, s := range list {
			x := s.Name + "=" + state(s.State)
			if s.LastTerminationState.Terminated != nil {
				x += "/terminated"
			}
			if s.Ready {
				x += "+"
			}
			w = append(w, x)
		}
	}
	for _, c := range st.Conditions {
		if c.Status != corev1.ConditionTrue {
			w = append(w, "!"+string(c.Type)+":"+c.Reason)
		}
	}
	return strings.Join(w, " ")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	const unready = "!Ready:ContainersNotReady !ContainersReady:ContainersNotReady"
	for _, c := range []struct{ name, pod, world, more, want string }{
		{"new", "Always a", "", "", "Pending a=ContainerCreating !PodReadyToStartContainers:PodSandboxNotReady " + unready},
		{"new with init", "Always init:i a", "sandbox", "",
			"Pending i=PodInitializing a=PodInitializing !Initialized:ContainersNotInitialized " + unready},
		{"init runs", "Always init:i a", "sandbox i=running", "",
			"Pending i=running a=PodInitializing !Initialized:ContainersNotInitialized " + unready},
		{"init done", "Always init:i a", "sandbox i=0", "", "Pending i=terminated+ a=ContainerCreating " + unready},
		{"runs", "Always a", "sandbox a=running", "", "Running a=running+"},
		{"one of two", "Always a b", "sandbox a=running", "", "Pending a=running+ b=ContainerCreating " + unready},
		{"one of two died", "Never a b", "sandbox a=running b=1", "", "Running a=running+ b=terminated " + unready},
		{"crash loop", "Always a", "sandbox a=1", "reason:CrashLoopBackOff",
			"Running a=CrashLoopBackOff/terminated " + unready},
		{"restarted", "Always a", "sandbox a=running a=1", "", "Running a=running/terminated+"},
		{"pull fails", "Always a", "sandbox", "reason:ErrImagePull", "Pending a=ErrImagePull " + unready},
		{"succeeded", "Never a", "sandbox a=0", "",
			"Succeeded a=terminated !Ready:PodCompleted !ContainersReady:PodCompleted"},
		{"failed", "Never a", "sandbox a=1", "", "Failed a=terminated !Ready:PodFailed !ContainersReady:PodFailed"},
		{"failed init", "Never init:i a", "sandbox i=1", "",
			"Failed i=terminated a=PodInitializing !Initialized:ContainersNotInitialized !Ready:PodFailed !ContainersReady:PodFailed"},
		{"failed init that never restarts", "Always init-Never:i a", "sandbox i=1", "",
			"Failed i=terminated a=PodInitializing !Initialized:ContainersNotInitialized !Ready:PodFailed !ContainersReady:PodFailed"},
		{"failed init that never restarts, beside others", "OnFailure init:h init-Never:i a", "sandbox i=1 h=0", "",
			"Failed h=terminated+ i=terminated a=PodInitializing !Initialized:ContainersNotInitialized !Ready:PodFailed !ContainersReady:PodFailed"},
		{"failed init that restarts on failure", "Never init-OnFailure:i a", "sandbox i=1", "",
			"Pending i=terminated a=PodInitializing !Initialized:ContainersNotInitialized " + unready},
		{"failed init of a pod that restarts", "Always init:i a", "sandbox i=1", "",
			"Pending i=terminated a=PodInitializing !Initialized:ContainersNotInitialized " + unready},
		{"deleted while running", "Always a", "dead-sandbox a=137", "ended",
			"Failed a=terminated !PodReadyToStartContainers:PodSandboxNotReady !Ready:PodFailed !ContainersReady:PodFailed"},
		{"deleted, ended well", "Always a", "dead-sandbox a=0", "ended",
			"Succeeded a=terminated !PodReadyToStartContainers:PodSandboxNotReady !Ready:PodCompleted !ContainersReady:PodCompleted"},
		{"rejected", "Always a", "", "rejected",
			"Failed a=ContainerCreating !PodReadyToStartContainers:PodSandboxNotReady !Ready:PodFailed !ContainersReady:PodFailed"},
		{"sidecar starting", "Always side:s a", "sandbox s=running", "",
			"Pending s=running a=PodInitializing !Initialized:ContainersNotInitialized " + unready},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := Facts{Pod: pod(c.pod), Runtime: world(c.world), Probes: map[string]Probes{}, Now: now}
			r := Report{Reasons: map[string]Reason{}, HostIPs: []string{"192.0.2.1"}}
			switch what, arg, _ := strings.Cut(c.more, ":"); what {
			case "reason":
				r.Reasons["a"] = Reason{Reason: arg}
			case "ended":
				r.Ended, f.Terminating = true, true
			case "rejected":
				r.Failed, r.Reason = true, "OutOfcpu"
			}
			if got := summary(Status(f, r)); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// Regular and ephemeral containers are listed by name, init containers in the order in which they run: what prints a
// pod's reason takes that of the first.
func TestStatusOrder(t *testing.T) {
	t.Parallel()
	names := func(list []corev1.ContainerStatus) (out string) {
		for _, s := range list {
			out += s.Name + " "
		}
		return strings.TrimSpace(out)
	}
	f := Facts{Pod: pod("Never init:z side:b init:a wait main ephemeral:y ephemeral:x"), Runtime: world("sandbox"),
		Now: now}
	st := Status(f, Report{})
	if got := names(st.ContainerStatuses); got != "main wait" {
		t.Errorf("containers: %s", got)
	}
	if got := names(st.InitContainerStatuses); got != "z b a" {
		t.Errorf("init containers: %s", got)
	}
	if got := names(st.EphemeralContainerStatuses); got != "x y" {
		t.Errorf("ephemeral containers: %s", got)
	}
}

// TestMessagesAreBounded: the termination messages of a pod are 12 KiB together, in equal parts
// (https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/).
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pod, world string
		want       int
	}{{"Never a", "sandbox a=1", 4096},
		{"Never init:i a b c ephemeral:e", "sandbox i=0 a=1 b=1 c=1 e=1", 12 << 10 / 5}} {
		f := Facts{Pod: pod(c.pod), Runtime: world(c.world), Now: now}
		for i := range f.Runtime.Containers {
			f.Runtime.Containers[i].Message = strings.Repeat("é", 2048)
		}
		st := Status(f, Report{})
		for _, list := range [][]corev1.ContainerStatus{st.InitContainerStatuses, st.ContainerStatuses,
			st.EphemeralContainerStatuses} {
			for _, s := range list {
				if got := s.State.Terminated.Message; len(got) > c.want || len(got) < c.want-1 ||
					!utf8.ValidString(got) {
					t.Errorf("%s, container %s: %d bytes, want %d", c.pod, s.Name, len(got), c.want)
				}
			}
		}
		if f.Runtime.Containers[0].Message != strings.Repeat("é", 2048) {
			t.Error("what the runtime said was changed")
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	p := pod("Always a")
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
	f := Facts{Pod: p, Runtime: world("sandbox a=running"), Probes: map[string]Probes{}, Now: now}
	if st := Status(f, Report{}); st.ContainerStatuses[0].Ready {
		t.Error("a container is ready before its probe said so")
	}
	f.Probes["containerd://id0"] = Probes{Readiness: runtime.ProbeSuccess}
	st := Status(f, Report{})
	ready := condition(st.Conditions, corev1.PodReady)
	if !st.ContainerStatuses[0].Ready || ready.Reason != "ReadinessGatesNotReady" ||
		ready.Message != `corresponding condition of pod readiness gate "example.com/lb" does not exist.` {
		t.Errorf("gate: %+v", ready)
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: "example.com/lb", Status: corev1.ConditionTrue}}
	if st = Status(f, Report{}); condition(st.Conditions, corev1.PodReady).Status != corev1.ConditionTrue {
		t.Error("not ready although the gate is open")
	}
	if condition(st.Conditions, "example.com/lb") == nil {
		t.Error("another's condition was lost")
	}
}

func TestStatusKeepsTransitionTimesAndForgottenContainers(t *testing.T) {
	t.Parallel()
	p := pod("Always a")
	f := Facts{Pod: p, Runtime: world("sandbox a=running"), Probes: map[string]Probes{}, Now: now}
	p.Status = Status(f, Report{HostIPs: []string{"192.0.2.1"}})
	f.Now = now.Add(time.Hour)
	st := Status(f, Report{HostIPs: []string{"192.0.2.1"}})
	if got := condition(st.Conditions, corev1.PodReady).LastTransitionTime; !got.Equal(&metav1.Time{Time: now}) {
		t.Errorf("transition time %v", got)
	}
	if st.PodIP != "10.0.0.2" || st.HostIP != "192.0.2.1" || !st.StartTime.Time.Equal(now) {
		t.Errorf("addresses or start time: %+v", st)
	}
	f.Runtime = &runtime.PodStatus{UID: "u"}
	f.Terminating = true
	st = Status(f, Report{Ended: true})
	if s := st.ContainerStatuses[0].State.Terminated; s == nil || s.Reason != "ContainerStatusUnknown" ||
		s.ExitCode != 137 {
		t.Errorf("a container the runtime lost: %+v", st.ContainerStatuses[0].State)
	}
	if st.Phase != corev1.PodFailed || st.PodIP != "10.0.0.2" {
		t.Errorf("phase %s, address %s", st.Phase, st.PodIP)
	}
	p.Status = st
	f.Terminating = false
	if again := Status(f, Report{}); again.Phase != corev1.PodFailed {
		t.Errorf("an ended pod came back to life: %s", again.Phase)
	}
}

// The API server refuses every status of a pod that never restarts in which a container that had terminated does not
// stay so.
func TestStatusOfAContainerInUnknownState(t *testing.T) {
	t.Parallel()
	p := pod("Never a b")
	f := Facts{Pod: p, Runtime: world("sandbox a=running b=running"), Probes: map[string]Probes{}, Now: now}
	p.Status = Status(f, Report{})
	f.Runtime = world("sandbox a=unknown b=running")
	for range 2 {
		p.Status = Status(f, Report{Reasons: map[string]Reason{"a": {Reason: "CrashLoopBackOff"}}})
		if s := p.Status.ContainerStatuses[0].State.Terminated; s == nil || s.Reason != "ContainerStatusUnknown" {
			t.Fatalf("while its state is unknown: %+v", p.Status.ContainerStatuses[0].State)
		}
	}
	f.Runtime = world("sandbox a=255 b=running")
	st := Status(f, Report{})
	if s := st.ContainerStatuses[0].State.Terminated; s == nil || s.ExitCode != 255 || st.Phase != corev1.PodRunning {
		t.Errorf("once it has ended: %s %+v", st.Phase, st.ContainerStatuses[0].State)
	}
}
