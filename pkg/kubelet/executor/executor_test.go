package executor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume"
)

// TestDevices: a volume that is a device is one in the container, and nothing else; users hear of each volume that
// cannot be had.
func TestDevices(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	pod := onePod()
	c := &pod.Spec.Containers[0]
	c.VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/x"}, {Name: "rom", DevicePath: "/dev/y"}}
	if err := e.Act(t.Context(), factsOf(pod), NewPod(), startOf(pod)); err != nil {
		t.Fatal(err)
	}
	if want := []runtime.Device{{ContainerPath: "/dev/x", HostPath: "/volume/disk", Permissions: "mrw"},
		{ContainerPath: "/dev/y", HostPath: "/volume/rom", Permissions: "r"}}; !slices.Equal(f.request.Options.Devices,
		want) {
		t.Errorf("devices %+v, want %+v", f.request.Options.Devices, want)
	}
	for want, change := range map[string]func(){
		`cannot find volume "v" to pass into container "c"`:     func() { c.VolumeDevices[1].Name = "v" },
		`cannot find volume "disk" to mount into container "c"`: func() { c.VolumeMounts[0].Name = "disk" },
	} {
		pod = onePod()
		c = &pod.Spec.Containers[0]
		c.VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/x"},
			{Name: "rom", DevicePath: "/dev/y"}}
		change()
		p := NewPod()
		if err := e.Act(t.Context(), factsOf(pod), p, startOf(pod)); err != nil || p.starts(c).reason.Message != want {
			t.Errorf("%v, waits for %+v, want %s", err, p.starts(c).reason, want)
		}
	}
	f.took()
	f.fail["mount"] = errors.Join(errors.New("no configmap"), &volume.MapError{Err: errors.New("no device")})
	if err := e.Act(t.Context(), factsOf(pod), NewPod(), startOf(pod)); !errors.Is(err, f.fail["mount"]) {
		t.Error(err)
	}
	if got := f.took(); !slices.Contains(got, "event FailedMount") || !slices.Contains(got, "event FailedMapVolume") {
		t.Errorf("%q", got)
	}
}

// TestAttachmentIsWaitedFor: a volume that is not attached yet is no failure, until it takes longer than the usual
// attachment.
func TestAttachmentIsWaitedFor(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	pod, p := onePod(), NewPod()
	f.fail["mount"] = errors.Join(errors.New("no configmap"),
		&volume.MapError{Err: &volume.PendingError{Volume: "disk", Err: errors.New("not attached yet")}})
	told := func(want ...string) {
		t.Helper()
		if err := e.Act(t.Context(), factsOf(pod), p, startOf(pod)); !errors.Is(err, f.fail["mount"]) {
			t.Error(err)
		}
		got := slices.DeleteFunc(f.took(), func(n string) bool {
			return !strings.HasPrefix(n, "event ") || strings.Contains(n, "Pull")
		})
		expect(t, "events", got, want...)
	}
	told("event FailedMount")
	told("event FailedMount")
	p.attaching = p.attaching.Add(-attachPatience)
	told("event FailedMount", "event FailedMount")
	if want := "Unable to attach or mount volumes: unmounted volumes=[disk], unattached volumes=[disk], failed to process volumes=[]: context deadline exceeded"; f.said != want {
		t.Errorf("%q, want %q", f.said, want)
	}
	told("event FailedMount")
}

func TestAContainerGetsWhatItsSpecSays(t *testing.T) {
	t.Parallel()
	e, f, files := newExecutor(t)
	pod, p := onePod(), NewPod()
	if err := e.Act(t.Context(), factsOf(pod), p, startOf(pod)); err != nil {
		t.Fatal(err)
	}
	expect(t, "a start", f.took(), "image i", "mount", "create c", "event c Created", "start id-c", "event c Started",
		"release", `count container ""`)
	q := f.request
	if q.SandboxID != "s1" || q.Options.Attempt != 2 || q.Options.ImageRef != "sha:i" || !q.Options.LimitSwap ||
		!slices.Equal(q.Options.Command, []string{"run", "10.0.0.1"}) ||
		!slices.Equal(q.Options.Env,
			[]runtime.KeyValue{{Name: "POD", Value: "10.0.0.1"}, {Name: "HOST", Value: "192.0.2.1"}}) {
		t.Errorf("%+v", q)
	}
	if want := []runtime.Mount{{ContainerPath: "/data", HostPath: "/volume/v", ReadOnly: true},
		{ContainerPath: "/sub", HostPath: "/volume/v#1/x/192.0.2.1", ReadOnly: true},
		{ContainerPath: "/etc/hosts", HostPath: "/hosts"},
		{ContainerPath: "/dev/termination-log", HostPath: "/termination"}}; !slices.Equal(q.Options.Mounts, want) {
		t.Errorf("mounts %+v, want %+v", q.Options.Mounts, want)
	}
	if to, err := os.Readlink(filepath.Join(files.Links, "p_ns_c-id-c.log")); err != nil ||
		to != filepath.Join(files.PodDir("ns", "p", "u"), "c", "2.log") {
		t.Error("link to the log:", to, err)
	}
}

// What keeps a container from starting is the reason in its status, and it is tried again later, not at once.
func TestWhyAContainerWaits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fails  string
		err    error
		reason string
		later  bool
		notes  []string
	}{
		{"image", &images.Error{Reason: images.ReasonErrImageNeverPull}, "ErrImageNeverPull", true,
			[]string{"image i", `count container "ErrImageNeverPull"`}},
		{"environment", errors.New("no key"), "CreateContainerConfigError", true,
			[]string{"image i", "mount", "event c Failed", "release", `count container "CreateContainerConfigError"`}},
		{"resources", errors.New("device gone"), "CreateContainerConfigError", true,
			[]string{"image i", "mount", "event c Failed", "release", `count container "CreateContainerConfigError"`}},
		{"create", errors.New("bad"), "CreateContainerError", true,
			[]string{"image i", "mount", "create c", "event c Failed", "release",
				`count container "CreateContainerError"`}},
		{"start", errors.New("bad"), "RunContainerError", false,
			[]string{"image i", "mount", "create c", "event c Created", "start id-c", "event c Failed", "release",
				`count container "RunContainerError"`}},
		{"exec", errors.New("bad"), "PostStartHookError", false,
			[]string{"image i", "mount", "create c", "event c Created", "start id-c", "event c Started",
				"exec id-c hello",
				"event c FailedPostStartHook", "stop id-c 30s", "release", `count container "PostStartHookError"`}},
	} {
		e, f, _ := newExecutor(t)
		pod, p := onePod(), NewPod()
		if c.fails == "exec" {
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
				PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"hello"}}}}
		}
		f.fail[c.fails] = c.err
		if err := e.Act(t.Context(), factsOf(pod), p, startOf(pod)); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		expect(t, c.reason, f.took(), c.notes...)
		if r := p.Reasons(pod)["c"]; r.Reason != c.reason {
			t.Errorf("reason %+v, want %s", r, c.reason)
		}
		if until := e.BackOff(pod, p, &runtime.PodStatus{})["c"]; until.After(time.Now().Add(time.Second)) != c.later {
			t.Errorf("%s: to be tried again at %s", c.reason, until)
		}
		delete(f.fail, c.fails)
		if err := e.Act(t.Context(), factsOf(pod), p,
			startOf(pod)); err != nil || len(p.Reasons(pod)) > 0 || len(e.BackOff(pod, p, &runtime.PodStatus{})) > 0 {
			t.Errorf("%s: after a start that went well: %v, %v", c.reason, err, p.Reasons(pod))
		}
	}
}

func TestAPodIsEndedContainersFirst(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	pod := onePod()
	rt := factsOf(pod).Runtime
	rt.Containers = []runtime.Container{{ID: runtime.ContainerID{ID: "a"}, Name: "c", State: runtime.StateRunning},
		{ID: runtime.ContainerID{ID: "b"}, Name: "c", State: runtime.StateExited}}
	pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"bye"}}}}
	f.fail["stop"] = errors.New("hung")
	if err := e.KillPod(t.Context(), pod, rt, 10*time.Second); !errors.Is(err, f.fail["stop"]) {
		t.Error(err)
	}
	expect(t, "a container that does not end", f.took(), "event c Killing", "exec a bye", "stop a 10s")
	f.fail = map[string]error{"exec": errors.New("no shell")}
	if err := e.KillPod(t.Context(), pod, rt, 10*time.Second); err != nil {
		t.Error(err)
	}
	expect(t, "an end", f.took(), "event c Killing", "exec a bye", "event c FailedPreStopHook", "stop a 10s",
		"stopsandbox s1")
}

// Those that asked for the restart are removed last, so that a restart of the kubelet in between starts over.
func TestRestartAll(t *testing.T) {
	t.Parallel()
	e, f, files := newExecutor(t)
	rules := []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn,
			Values: []int32{42}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "asks", RestartPolicyRules: rules},
			{Name: "other"}}}}
	facts, p := factsOf(pod), NewPod()
	facts.Runtime.Containers = []runtime.Container{
		{ID: runtime.ContainerID{ID: "1"}, Name: "asks", SandboxID: "s1", State: runtime.StateExited, ExitCode: 42,
			FinishedAt: time.Now()},
		{ID: runtime.ContainerID{ID: "2"}, Name: "other", SandboxID: "s1", State: runtime.StateRunning},
		{ID: runtime.ContainerID{ID: "3"}, Name: "other", SandboxID: "s1", State: runtime.StateCreated, Stuck: true}}
	log := filepath.Join(files.PodDir("ns", "p", "u"), "asks", "0.log")
	if err := errors.Join(os.MkdirAll(filepath.Dir(log), 0o755), os.WriteFile(log, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := e.Act(t.Context(), facts, p, lifecycle.Plan{RestartAll: true}); err != nil {
		t.Fatal(err)
	}
	expect(t, "a restart of all", f.took(), "event other Killing", "stop 2 0s", "remove 2", "remove 1")
	if _, err := os.Stat(log); !os.IsNotExist(err) {
		t.Error("the log stays:", err)
	}
}

// A container that cannot be ended, or removed, keeps its own next start waiting, and no other container's.
func TestOneContainerThatStaysHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for what, kill := range map[string]bool{"stop": true, "remove": false} {
		e, f, _ := newExecutor(t)
		pod := onePod()
		pod.Spec.Containers = []corev1.Container{{Name: "stuck", Image: "i"}, {Name: "other", Image: "i"}}
		facts := factsOf(pod)
		facts.Runtime.Containers = []runtime.Container{
			{ID: runtime.ContainerID{ID: "1"}, Name: "stuck", SandboxID: "s1"}}
		var plan lifecycle.Plan
		for i := range pod.Spec.Containers {
			plan.Start = append(plan.Start, lifecycle.Start{Container: &pod.Spec.Containers[i], Kind: runtime.Regular})
		}
		if kill {
			plan.Kill = []lifecycle.Kill{{Container: &pod.Spec.Containers[0], Status: &facts.Runtime.Containers[0]}}
		} else {
			plan.Remove = []*runtime.Container{&facts.Runtime.Containers[0]}
		}
		f.fail[what] = errors.New("hung")
		if err := e.Act(t.Context(), facts, NewPod(), plan); !errors.Is(err, f.fail[what]) {
			t.Errorf("%s: %v, it is to be tried again", what, err)
		}
		if got := f.took(); slices.Contains(got, "create stuck") || !slices.Contains(got, "start id-other") {
			t.Errorf("%s: %q", what, got)
		}
	}
}
