package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume"
)

// fakes are all that an Executor works with. They note what is done, in order, and fail where fail says so, by the
// note's first word.
type fakes struct {
	mu      sync.Mutex
	notes   []string
	said    string // the last event of a pod
	fail    map[string]error
	request runtime.ContainerRequest
	sandbox runtime.SandboxOptions
	// ran is the handler that made the sandbox, handlers what of it was asked.
	ran      string
	handlers map[string]runtime.Handler
	// mounting, if not nil, is closed when the volumes are being mounted; making a sandbox waits for it.
	mounting chan struct{}
}

func (f *fakes) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := fmt.Sprintf(format, args...)
	f.notes = append(f.notes, n)
	what, _, _ := strings.Cut(n, " ")
	return f.fail[what]
}

// took returns the notes so far and starts over.
func (f *fakes) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.notes
	f.notes = nil
	return n
}

func (f *fakes) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	return &runtime.PodStatus{}, nil
}

func (f *fakes) RunSandbox(ctx context.Context, _ *corev1.Pod, handler string, o runtime.SandboxOptions) (string,
	error) {
	f.sandbox, f.ran = o, handler
	if f.mounting != nil {
		select {
		case <-f.mounting:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "s1", f.note("sandbox %d", o.Attempt)
}

func (f *fakes) StopSandbox(_ context.Context, id string) error { return f.note("stopsandbox %s", id) }

func (f *fakes) CreateContainer(_ context.Context, q runtime.ContainerRequest) (string, error) {
	f.request = q
	return "id-" + q.Container.Name, f.note("create %s", q.Container.Name)
}

func (f *fakes) StartContainer(_ context.Context, id string) error { return f.note("start %s", id) }

func (f *fakes) UpdateContainer(_ context.Context, id string, q runtime.ContainerRequest) error {
	f.request = q
	return f.note("update %s", id)
}

func (f *fakes) Grow(*corev1.Pod) error   { return f.note("grow") }
func (f *fakes) Settle(*corev1.Pod) error { return f.note("settle") }
func (f *fakes) MayLimit(_ *corev1.Pod, name, id string, memory int64) error {
	return f.note("limit %s %s %d", name, id, memory)
}
func (f *fakes) Actuated(_ types.UID, container string, given corev1.ResourceRequirements) {
	if len(given.Requests) > 0 {
		f.note("actuated %s %s", container, given.Requests.Cpu())
	}
}
func (f *fakes) PodActuated(_ types.UID, generation int64) { f.note("pod actuated %d", generation) }

func (f *fakes) StopContainer(_ context.Context, id string, grace time.Duration) error {
	return f.note("stop %s %s", id, grace)
}

func (f *fakes) RemoveContainer(_ context.Context, id string) error { return f.note("remove %s", id) }

func (f *fakes) ExecSync(_ context.Context, id string, cmd []string, _ time.Duration) (runtime.ExecResult, error) {
	return runtime.ExecResult{}, f.note("exec %s %s", id, strings.Join(cmd, " "))
}

func (f *fakes) Handler(name string) runtime.Handler { return f.handlers[name] }

func (f *fakes) Ensure(_ context.Context, _ *corev1.Pod, image string, _ corev1.PullPolicy, _ []corev1.Secret,
	_ images.Event) (*runtime.Image, error) {
	return &runtime.Image{ID: "sha:" + image}, f.note("image %s", image)
}

func (f *fakes) Hold(_ context.Context, get func() (*runtime.Image, error)) (*runtime.Image, func(), error) {
	img, err := get()
	return img, func() { f.note("release") }, err
}

func (f *fakes) Mount(context.Context, *corev1.Pod) (map[string]volume.Mounted, error) {
	if f.mounting != nil {
		close(f.mounting)
	}
	return map[string]volume.Mounted{"v": {HostPath: "/volume/v", ReadOnly: true},
		"disk": {HostPath: "/volume/disk", Device: true},
		"rom":  {HostPath: "/volume/rom", Device: true, ReadOnly: true},
		"img":  {ReadOnly: true, Image: &corev1.ImageVolumeSource{Reference: "data:1"}}}, f.note("mount")
}

func (f *fakes) SubPath(_ *corev1.Pod, _ string, index int, _ string, from volume.Mounted, sub string) (string, error) {
	return fmt.Sprintf("%s#%d/%s", from.HostPath, index, sub), nil
}

func (f *fakes) WriteHosts(types.UID, []byte) (string, error)     { return "/hosts", nil }
func (f *fakes) TerminationLog(types.UID, string) (string, error) { return "/termination", nil }
func (f *fakes) HostIPs() []string                                { return []string{"192.0.2.1"} }
func (f *fakes) NetworkReady(context.Context) error               { return f.fail["network"] }
func (f *fakes) Pod(_ *corev1.Pod, _, reason, message string) {
	f.note("event %s", reason)
	f.said = message
}
func (f *fakes) Container(_ *corev1.Pod, container, _, reason, _ string) {
	f.note("event %s %s", container, reason)
}
func (f *fakes) StartedPod(_ *corev1.Pod, _ string, _ time.Duration, err error) {
	f.note("count pod %v", err)
}
func (f *fakes) StartedContainer(_ runtime.Kind, code string) { f.note("count container %q", code) }
func (f *fakes) ImageVolumeAsked()                            { f.note("count image volume") }
func (f *fakes) HookFellBack()                                { f.note("count hook") }
func (f *fakes) ImageVolumesMounted(n int, ok bool)           { f.note("count image volumes %d %t", n, ok) }
func (f *fakes) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return nil, errors.New("none")
}

// classes are the runtime's handlers by the names of pods' classes.
type classes struct{ *fakes }

func (c classes) Handler(_ context.Context, pod *corev1.Pod) (string, error) {
	if pod.Spec.RuntimeClassName == nil {
		return "", nil
	}
	return "handler-of-" + *pod.Spec.RuntimeClassName, c.fail["class"]
}

// resources is what fakes give to pods.
type resources struct{ *fakes }

func (r resources) Prepare(context.Context, *corev1.Pod) error       { return r.note("prepare") }
func (r resources) Sandbox(_ *corev1.Pod, o *runtime.SandboxOptions) { o.CgroupParent = "/kubepods/p" }
func (r resources) Container(_ *corev1.Pod, _ *corev1.Container, o *runtime.ContainerOptions) error {
	o.LimitSwap = true
	return r.fail["resources"]
}
func (r resources) Starting(context.Context, *corev1.Pod, *corev1.Container) error {
	return r.fail["starting"]
}

func newExecutor(t *testing.T) (*Executor, *fakes, logs.Files) {
	t.Helper()
	f := &fakes{fail: map[string]error{}}
	files := logs.Files{Pods: t.TempDir(), Links: t.TempDir()}
	e, err := New(Config{Runtime: f, Images: f, Volumes: f, Resources: resources{f}, Cgroups: f, Allocations: f,
		Node: f, Classes: classes{f}, Events: f, Metrics: f, Secret: f.Secret, Logs: files,
		Environment: func(_ context.Context, _ *corev1.Pod, _ *corev1.Container, a Addresses,
			_ map[string]volume.Mounted) ([]env.Var, error) {
			return []env.Var{{Name: "POD", Value: a.Pod[0]}, {Name: "HOST", Value: a.Host[0]}}, f.fail["environment"]
		},
		ImageVolumeFailed: func(err error) bool { return err.Error() == "no mount" },
		Message: func(err error) string {
			return "runtime: " + err.Error()
		}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e, f, files
}

// onePod has a container with a volume and hooks.
func onePod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "i", Command: []string{"run", "$(POD)"}, TerminationMessagePath: "/dev/termination-log",
			VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/data"},
				{Name: "v", MountPath: "sub", SubPathExpr: "x/$(HOST)"}}}}}}
}

func factsOf(pod *corev1.Pod) lifecycle.Facts {
	return lifecycle.Facts{Pod: pod, Now: time.Now(),
		Runtime: &runtime.PodStatus{UID: pod.UID, Name: pod.Name, Namespace: pod.Namespace,
			Sandboxes: []runtime.Sandbox{{ID: "s1", Ready: true, IPs: []string{"10.0.0.1"}}}}}
}

func startOf(pod *corev1.Pod) lifecycle.Plan {
	return lifecycle.Plan{Start: []lifecycle.Start{
		{Container: &pod.Spec.Containers[0], Attempt: 2, Kind: runtime.Regular}}}
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestTheSandboxAndItsVolumesAreMadeTogether(t *testing.T) {
	t.Parallel()
	e, f, files := newExecutor(t)
	pod, p := onePod(), NewPod()
	f.mounting = make(chan struct{}) // the sandbox is done only when the mounting has begun
	facts := factsOf(pod)
	facts.Runtime.Sandboxes = nil
	if err := e.Act(t.Context(), facts, p, lifecycle.Plan{NewSandbox: true, Attempt: 3}); err != nil {
		t.Fatal(err)
	}
	got := f.took()
	slices.Sort(got)
	expect(t, "a sandbox", got, "count pod <nil>", "mount", "prepare", "sandbox 3")
	dir := files.PodDir("ns", "p", "u")
	if f.sandbox.CgroupParent != "/kubepods/p" || f.sandbox.Hostname != "p" || f.sandbox.LogDirectory != dir {
		t.Errorf("%+v", f.sandbox)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error("the runtime needs the directory of logs:", err)
	}
	f.mounting = nil
	if err := e.PrepareRunning(t.Context(), pod, p, factsOf(pod).Runtime); err != nil || len(f.took()) > 0 {
		t.Error("prepared again", err)
	}
}

// TestRuntimeClass: a pod's class says which handler makes its sandbox, and the sandbox which handler its containers
// have.
func TestRuntimeClass(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	pod := onePod()
	pod.Spec.RuntimeClassName = new("kata")
	facts, plan := factsOf(pod), lifecycle.Plan{NewSandbox: true}
	f.fail["class"] = errors.New("no such class")
	if err := e.Act(t.Context(), facts, NewPod(), plan); !errors.Is(err, f.fail["class"]) {
		t.Error(err)
	}
	expect(t, "no class", f.took(), "event FailedCreatePodSandBox")
	delete(f.fail, "class")
	if err := e.Act(t.Context(), facts, NewPod(), plan); err != nil || f.ran != "handler-of-kata" {
		t.Errorf("made by %q, %v", f.ran, err)
	}
	f.took()

	f.handlers = map[string]runtime.Handler{"old": {RecursiveReadOnlyMounts: true}}
	m := &pod.Spec.Containers[0].VolumeMounts[0]
	m.ReadOnly, m.RecursiveReadOnly = true, new(corev1.RecursiveReadOnlyEnabled)
	for handler, want := range map[string]bool{"": false, "old": true} {
		facts.Runtime.Sandboxes[0].Handler = handler
		f.request = runtime.ContainerRequest{}
		if err := e.Act(t.Context(), facts, NewPod(), startOf(pod)); err != nil {
			t.Error(err)
		}
		got := len(f.request.Options.Mounts) > 0 && f.request.Options.Mounts[0].RecursiveReadOnly
		if got != want {
			t.Errorf("handler %q: recursively read-only: %t", handler, got)
		}
	}
}

// TestHostUsers: a pod that asks for users of its own does not run with the node's.
func TestHostUsers(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	f.handlers = map[string]runtime.Handler{"handler-of-can": {UserNamespaces: true}}
	for class, want := range map[string]string{
		"":     "can't set `spec.hostUsers: false`, runtime does not support user namespaces",
		"kata": "can't set `spec.hostUsers: false`, RuntimeClass handler \"handler-of-kata\" does not support user namespaces",
		"can":  "",
	} {
		pod := onePod()
		if class != "" {
			pod.Spec.RuntimeClassName = &class
		}
		for _, host := range []*bool{nil, new(true), new(false)} {
			pod.Spec.HostUsers = host
			facts := factsOf(pod)
			facts.Runtime.Sandboxes = nil
			err := e.Act(t.Context(), facts, NewPod(), lifecycle.Plan{NewSandbox: true})
			made := slices.Contains(f.took(), "sandbox 0")
			if refused := host != nil && !*host &&
				want != ""; refused && (made || err == nil || err.Error() != want) ||
				!refused && (!made || err != nil) {
				t.Errorf("class %q, host users %v: sandbox %v, %v", class, host, made, err)
			}
		}
	}
}

func TestASandboxThatCannotBe(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	facts := factsOf(onePod())
	plan := lifecycle.Plan{NewSandbox: true}
	f.fail["network"] = errors.New("no CNI")
	if err := e.Act(t.Context(), facts, NewPod(), plan); !errors.Is(err, f.fail["network"]) {
		t.Error(err)
	}
	expect(t, "no network", f.took(), "event NetworkNotReady")
	delete(f.fail, "network")
	f.fail["prepare"] = errors.New("no cgroup")
	if err := e.Act(t.Context(), facts, NewPod(), plan); !errors.Is(err, f.fail["prepare"]) {
		t.Error(err)
	}
	expect(t, "nothing of the node for it", f.took(), "prepare")
	delete(f.fail, "prepare")
	f.fail["sandbox"] = fmt.Errorf("run: %w", errors.New("full"))
	if err := e.Act(t.Context(), facts, NewPod(), plan); !errors.Is(err, f.fail["sandbox"]) {
		t.Error(err)
	}
	if got := f.took(); !slices.Contains(got, "event FailedCreatePodSandBox") ||
		!slices.Contains(got, "count pod run: full") {
		t.Errorf("%q", got)
	}
	delete(f.fail, "sandbox")
	f.fail["mount"] = errors.New("no configmap")
	p := NewPod()
	if err := e.Act(t.Context(), facts, p, plan); !errors.Is(err, f.fail["mount"]) {
		t.Error(err)
	}
	if got := f.took(); !slices.Contains(got, "event FailedMount") {
		t.Errorf("%q", got)
	}
	delete(f.fail, "mount")
	if err := e.PrepareRunning(t.Context(), facts.Pod, p, facts.Runtime); err != nil {
		t.Error(err)
	}
	expect(t, "what was missing is made", f.took(), "prepare", "mount")
}

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
