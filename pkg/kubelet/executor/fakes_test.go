package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// during, if not nil, is called while a command of a hook runs.
	during func()
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

func (f *fakes) Grow(context.Context, *corev1.Pod) error { return f.note("grow") }

func (f *fakes) Settle(context.Context, *corev1.Pod) error { return f.note("settle") }

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
	if f.during != nil {
		f.during()
	}
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

func (f *fakes) WriteHosts(types.UID, []byte) (string, error) { return "/hosts", nil }

func (f *fakes) TerminationLog(types.UID, string) (string, error) { return "/termination", nil }

func (f *fakes) HostIPs() []string { return []string{"192.0.2.1"} }

func (f *fakes) NetworkReady(context.Context) error { return f.fail["network"] }

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

func (f *fakes) ImageVolumeAsked() { f.note("count image volume") }

func (f *fakes) HookFellBack() { f.note("count hook") }

func (f *fakes) ImageVolumesMounted(n int, ok bool) { f.note("count image volumes %d %t", n, ok) }

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

func (r resources) Prepare(context.Context, *corev1.Pod) error { return r.note("prepare") }

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
