package executor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace/tracetest"
)

// traced returns a pod whose steps are recorded.
func traced(t *testing.T) (*Executor, *fakes, *corev1.Pod, *tracetest.Spans) {
	e, f, _ := newExecutor(t)
	tracer, spans := tracetest.New("kubelet")
	e.cfg.Tracer = tracer
	pod := onePod()
	pod.UID = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
	return e, f, pod, spans
}

// TestSpans: the steps of a pod's start and of its end are recorded, each once.
func TestSpans(t *testing.T) {
	t.Parallel()
	e, _, pod, spans := traced(t)
	p := NewPod()
	c := &pod.Spec.Containers[0]
	c.Lifecycle = &corev1.Lifecycle{
		PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}}
	facts := factsOf(pod)
	facts.Runtime.Sandboxes = nil
	if err := e.Act(t.Context(), facts, p, lifecycle.Plan{NewSandbox: true}); err != nil {
		t.Fatal(err)
	}
	if err := e.Act(t.Context(), factsOf(pod), p, startOf(pod)); err != nil {
		t.Fatal(err)
	}
	if err := e.KillPod(t.Context(), pod, factsOf(pod).Runtime, time.Second); err != nil {
		t.Fatal(err)
	}
	got := spans.Names()
	slices.Sort(got)
	if want := []string{"kubelet.create", "kubelet.poststart", "kubelet.pull", "kubelet.sandbox", "kubelet.start",
		"kubelet.stop", "kubelet.unsandbox", "kubelet.volumes"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if pull := spans.Named("kubelet.pull")[0]; tracetest.Attribute(pull, "container.image.name") != "i" ||
		tracetest.Attribute(pull, "k8s.container.name") != "c" ||
		tracetest.Attribute(pull, "k8s.pod.name") != "p" {
		t.Errorf("%v", pull.Attributes())
	}
}

// TestSpansOfFailures: a step that failed says why in the word of the container's status, and nothing of the runtime's
// text.
func TestSpansOfFailures(t *testing.T) {
	t.Parallel()
	for fails, want := range map[string]struct{ span, reason string }{
		"image":       {"kubelet.pull", "ErrImagePull"},
		"create":      {"kubelet.create", "CreateContainerError"},
		"environment": {"kubelet.create", "CreateContainerConfigError"},
		"start":       {"kubelet.start", "RunContainerError"},
	} {
		e, f, pod, spans := traced(t)
		f.fail[fails] = errors.New("secret text")
		if fails == "image" {
			f.fail[fails] = &images.Error{Reason: images.ReasonErrImagePull}
		}
		if err := e.Act(t.Context(), factsOf(pod), NewPod(), startOf(pod)); err != nil {
			t.Fatal(err)
		}
		all := spans.Named(want.span)
		if len(all) != 1 || all[0].Status().Description != want.reason {
			t.Errorf("%s: %q", fails, spans.Names())
			continue
		}
		for _, a := range all[0].Attributes() {
			if strings.Contains(a.Value.Emit(), "secret") {
				t.Errorf("%s: %v", fails, a)
			}
		}
	}
}

// TestNetworkSpan: the time that a sandbox's network took is a part of the sandbox's, if it is known and can be right.
func TestNetworkSpan(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		from, to time.Duration // since the sandbox was begun, which ends after a second
		ok, host bool
		want     [2]time.Duration
	}{
		"known": {from: 100 * time.Millisecond, to: 300 * time.Millisecond, ok: true,
			want: [2]time.Duration{1e8, 3e8}},
		"noted by a slow clock": {from: -4 * time.Millisecond, to: 300 * time.Millisecond, ok: true,
			want: [2]time.Duration{0, 3e8}},
		"not known":                   {},
		"of another sandbox":          {from: -time.Second, to: 300 * time.Millisecond, ok: true},
		"still under way at the end":  {from: 0, to: 2 * time.Second, ok: true},
		"of the machine, not a pod's": {from: 100 * time.Millisecond, to: 300 * time.Millisecond, ok: true, host: true},
	} {
		e, _, pod, spans := traced(t)
		pod.Spec.HostNetwork = c.host
		e.cfg.NetworkTimes = func(sandbox string) (time.Time, time.Time, bool) {
			return now.Add(c.from), now.Add(c.to), c.ok && sandbox == "s1"
		}
		e.spans.didSandbox(pod, "s1", now, now.Add(time.Second))
		sandbox, network := spans.Named("kubelet.sandbox"), spans.Named("kubelet.network")
		if len(sandbox) != 1 || len(network) != 1 && c.want[1] > 0 || len(network) != 0 && c.want[1] == 0 {
			t.Errorf("%s: %q", name, spans.Names())
			continue
		}
		if c.want[1] == 0 {
			continue
		}
		if n := network[0]; n.Parent().SpanID() != sandbox[0].SpanContext().SpanID() ||
			n.StartTime().Sub(now) != c.want[0] || n.EndTime().Sub(now) != c.want[1] {
			t.Errorf("%s: %v to %v", name, n.StartTime().Sub(now), n.EndTime().Sub(now))
		}
	}
}

// TestPreStopSpan: a preStop hook is a part of the pod's end, with the time that it may take, and says when it failed.
func TestPreStopSpan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails  error
		cancel bool
		want   string
	}{
		"done":        {},
		"failed":      {fails: errors.New("secret text"), want: "FailedPreStopHook"},
		"interrupted": {fails: errors.New("secret text"), cancel: true, want: "not finished"},
	} {
		e, f, pod, spans := traced(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if c.cancel {
			f.during = cancel
		}
		f.fail["exec"] = c.fails
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"x"}}}}
		rt := &runtime.PodStatus{Containers: []runtime.Container{{Name: "c", State: runtime.StateRunning}}}
		err := e.KillPod(ctx, pod, rt, 7*time.Second)
		hooks, stop := spans.Named("kubelet.prestop"), spans.Named("kubelet.stop")
		if (err != nil) != c.cancel || len(hooks) != 1 || hooks[0].Status().Description != c.want ||
			tracetest.Attribute(hooks[0], "k8s.container.name") != "c" ||
			tracetest.Attribute(hooks[0], "bonsai.hook.grace_seconds") != "7" {
			t.Errorf("%s: %v, %q", name, err, spans.Names())
			continue
		}
		if !c.cancel && (len(stop) != 1 || hooks[0].Parent().SpanID() != stop[0].SpanContext().SpanID()) {
			t.Errorf("%s: the hook is no part of the end", name)
		}
	}
}

// TestImageSize: the size of an image is recorded where the runtime tells it.
func TestImageSize(t *testing.T) {
	t.Parallel()
	e, _, pod, spans := traced(t)
	for _, size := range []uint64{0, 1 << 20, 1 << 63} {
		e.spans.didPull(pod, &pod.Spec.Containers[0], time.Now(), &runtime.Image{Size: size}, nil)
	}
	var got []string
	for _, s := range spans.All() {
		got = append(got, tracetest.Attribute(s, "bonsai.image.bytes"))
	}
	if !slices.Equal(got, []string{"", "1048576", ""}) {
		t.Errorf("%q", got)
	}
}
