package executor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

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
