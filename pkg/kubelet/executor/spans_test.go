package executor

import (
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

// TestImageSize: the size of an image is recorded where the runtime tells it.
func TestImageSize(t *testing.T) {
	t.Parallel()
	e, _, pod, spans := traced(t)
	for _, size := range []uint64{0, 1 << 20, 1 << 63} {
		didPull(e, pod, &pod.Spec.Containers[0], time.Now(), &runtime.Image{Size: size}, nil)
	}
	var got []string
	for _, s := range spans.All() {
		got = append(got, tracetest.Attribute(s, "bonsai.image.bytes"))
	}
	if !slices.Equal(got, []string{"", "1048576", ""}) {
		t.Errorf("%q", got)
	}
}
