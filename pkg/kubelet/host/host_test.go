package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// fake is a runtime with one pod.
type fake struct {
	checkpointed   string
	failCheckpoint error
	pod            runtime.PodStatus
	code           int32
	err            error
}

func (f *fake) Pods(context.Context) ([]*runtime.PodStatus, error) {
	return []*runtime.PodStatus{&f.pod, {Name: "ended", Containers: []runtime.Container{{State: runtime.StateExited}}}},
		f.err
}

func (f *fake) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	p := f.pod
	return &p, f.err
}

func (f *fake) Exec(_ context.Context, id string, cmd []string, s runtime.Streams) (string, error) {
	return fmt.Sprintf("http://r/exec/%s/%s?tty=%v", id, strings.Join(cmd, "+"), s.TTY), nil
}

func (f *fake) Attach(_ context.Context, id string, s runtime.Streams) (string, error) {
	return fmt.Sprintf("http://r/attach/%s?tty=%v", id, s.TTY), nil
}

func (f *fake) PortForward(_ context.Context, id string, ports []int32) (string, error) {
	return fmt.Sprintf("http://r/ports/%s/%d", id, ports[0]), nil
}

func (f *fake) ExecSync(context.Context, string, []string, time.Duration) (runtime.ExecResult, error) {
	return runtime.ExecResult{Stdout: []byte("out "), Stderr: []byte("err"), ExitCode: f.code}, nil
}

func container(name, id string, state runtime.State) runtime.Container {
	return runtime.Container{ID: runtime.ContainerID{ID: id}, Name: name, State: state}
}

// setup is a host with a pod of a running container c, with one before it, and an ended one; logs tell their path.
func setup() (Host, *fake, *corev1.Pod) {
	f := &fake{pod: runtime.PodStatus{UID: "u", Name: "p", Namespace: "ns",
		Sandboxes: []runtime.Sandbox{{ID: "s1", Ready: true}},
		Containers: []runtime.Container{container("c", "c1", runtime.StateRunning),
			container("c", "c0", runtime.StateExited), container("done", "d0", runtime.StateExited)}}}
	h := Host{Runtime: f, LogPath: func(p *runtime.PodStatus, c *runtime.Container) string {
		return "/logs/" + p.Namespace + "/" + p.Name + "/" + c.ID.ID
	},
		ReadLog: func(ctx context.Context, path string, _ *corev1.PodLogOptions,
			running func(context.Context) (bool, error), stdout, _ io.Writer) error {
			runs, err := running(ctx)
			fmt.Fprintf(stdout, "%s running=%v", path, runs)
			return err
		}}
	return h, f, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", TTY: true}, {Name: "done"}}}}
}

func TestRunningPods(t *testing.T) {
	t.Parallel()
	h, f, _ := setup()
	got, err := h.RunningPods(t.Context())
	if err != nil || len(got) != 1 || got[0].Name != "p" || got[0].UID != "u" || len(got[0].Spec.Containers) != 1 ||
		got[0].Spec.Containers[0].Name != "c" {
		t.Errorf("%+v %v", got, err)
	}
	f.err = errors.New("down")
	if _, err := h.RunningPods(t.Context()); !errors.Is(err, f.err) {
		t.Error(err)
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	h, f, pod := setup()
	for what, want := range map[string]string{"exec c": "http://r/exec/c1/ls+-l?tty=false",
		"attach c": "http://r/attach/c1?tty=true", "forward": "http://r/ports/s1/80",
		"exec done": `container not found ("done")`, "attach none": `container not found ("none")`} {
		verb, name, _ := strings.Cut(what, " ")
		var got string
		u, err := h.PortForward(t.Context(), pod, []int32{80})
		switch verb {
		case "exec":
			u, err = h.Exec(t.Context(), pod, name, []string{"ls", "-l"}, runtime.Streams{Stdout: true})
		case "attach":
			u, err = h.Attach(t.Context(), pod, name, runtime.Streams{Stdout: true})
		}
		if got = fmt.Sprint(err); err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	f.pod.Sandboxes[0].Ready = false
	if _, err := h.PortForward(t.Context(), pod, []int32{80}); err == nil || err.Error() != `pod not found ("p_ns")` {
		t.Error(err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	h, f, pod := setup()
	if out, err := h.Run(t.Context(), pod, "c", nil); err != nil || string(out) != "out err" {
		t.Errorf("%q %v", out, err)
	}
	f.code = 3
	if out, err := h.Run(t.Context(), pod, "c",
		nil); err == nil || err.Error() != "command exited with 3" || string(out) != "out err" {
		t.Errorf("%q %v", out, err)
	}
}

// Which container's log is meant, and why there is none, in upstream's words.
func TestContainerLogs(t *testing.T) {
	t.Parallel()
	waits := func(reason string, last bool) corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: "c",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
		if last {
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{}
		}
		return s
	}
	ended := []runtime.Container{container("c", "c0", runtime.StateExited)}
	last := func(id string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{
			{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ContainerID: id}}}}
	}
	for name, c := range map[string]struct {
		container string
		previous  bool
		status    []corev1.ContainerStatus
		has       []runtime.Container // nil: those of setup
		want      string
	}{
		"what runs":      {"c", false, nil, nil, "/logs/ns/p/c1 running=true"},
		"what has ended": {"done", false, nil, nil, "/logs/ns/p/d0 running=false"},
		"the one before": {"c", true, nil, nil, "/logs/ns/p/c0 running=false"},
		"none before": {"done", true, nil, nil,
			`previous terminated container "done" in pod "p" not found`},
		"none before, waits": {"c", true, []corev1.ContainerStatus{waits("ContainerCreating", false)},
			nil, `previous terminated container "c" in pod "p" not found`},
		"waits for a restart": {"c", true, []corev1.ContainerStatus{waits("CrashLoopBackOff", true)},
			ended, "/logs/ns/p/c0 running=false"},
		"the one that the status tells of": {"c", true, last("containerd://c0"), nil,
			"/logs/ns/p/c0 running=false"},
		"the status tells of one that is gone": {"c", true, last("containerd://gone"), nil,
			"unable to retrieve container logs for containerd://gone"},
		"not made yet": {"c", false, nil, []runtime.Container{},
			`container "c" in pod "p" is not available`},
		"is being made": {"c", false,
			[]corev1.ContainerStatus{waits("ContainerCreating", false)}, nil,
			`container "c" in pod "p" is waiting to start: ContainerCreating`},
		"no image": {"c", false, []corev1.ContainerStatus{waits("ErrImagePull", false)},
			nil, `container "c" in pod "p" is waiting to start: trying and failing to pull image`},
	} {
		h, f, pod := setup()
		pod.Status.ContainerStatuses = c.status
		if c.has != nil {
			f.pod.Containers = c.has
		}
		var out bytes.Buffer
		if err := h.ContainerLogs(t.Context(), pod, c.container, &corev1.PodLogOptions{Previous: c.previous}, &out,
			io.Discard); err != nil {
			out.WriteString(err.Error())
		}
		if out.String() != c.want {
			t.Errorf("%s: %s, want %s", name, out.String(), c.want)
		}
	}
	h, f, pod := setup()
	f.pod.Containers[0].LogPath = "/elsewhere/x/../c.log"
	var out bytes.Buffer
	if err := h.ContainerLogs(t.Context(), pod, "c", &corev1.PodLogOptions{}, &out,
		io.Discard); err != nil || out.String() != "/elsewhere/c.log running=true" {
		t.Errorf("the runtime's own path: %s %v", out.String(), err)
	}
}
