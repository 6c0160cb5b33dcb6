package executor

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

func amounts(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
		Limits: corev1.ResourceList{"memory": resource.MustParse(memory)}}
}

// The pod's cgroup is never smaller than its containers': it grows before them, and shrinks after them and after those
// that are started.
func TestResize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		memory string
		fail   string
		want   []string
		error  string
	}{
		"more": {"2Ki", "",
			[]string{"grow", "update c1", "actuated c 1", "settle", "pod actuated 3"}, ""},
		"less": {"512", "",
			[]string{"grow", "limit c c1 512", "update c1", "actuated c 1", "settle", "pod actuated 3"}, ""},
		"less than is in use": {"512", "limit", []string{"grow", "limit c c1 512"}, "limit"},
		"the pod cannot grow": {"2Ki", "grow", []string{"grow"}, "grow"},
		"the runtime refuses": {"2Ki", "update", []string{"grow", "update c1"}, "update"},
		"the pod uses too much": {"2Ki", "settle", []string{"grow", "update c1", "actuated c 1", "settle"},
			"settle"},
		"what containers need fails": {"2Ki", "resources", []string{"grow"}, "resources"},
	} {
		e, f, _ := newExecutor(t)
		if c.fail != "" {
			f.fail[c.fail] = errors.New(c.fail)
		}
		pod := onePod()
		pod.Spec.Containers[0].Resources = amounts("1", c.memory)
		facts := factsOf(pod)
		facts.Resize.Generation, facts.Resize.Actuated = 3,
			map[string]corev1.ResourceRequirements{"c": amounts("2", "1Ki")}
		running := &runtime.Container{Name: "c", ID: runtime.ContainerID{ID: "c1"}}
		err := e.Act(t.Context(), facts, NewPod(),
			lifecycle.Plan{ResizePod: true,
				Updates: []lifecycle.Update{{Container: &pod.Spec.Containers[0], Status: running}}})
		expect(t, name, f.took(), c.want...)
		var failed *ResizeError
		if (err != nil) != (c.error != "") || err != nil && (!errors.As(err, &failed) || failed.Error() != c.error) {
			t.Errorf("%s: %v", name, err)
		}
		if c.fail == "" && (!f.request.Options.LimitSwap || f.request.Container != &pod.Spec.Containers[0]) {
			t.Errorf("%s: %+v", name, f.request)
		}
	}
}

// A container that is restarted for its resize is started in a cgroup that has room for it; a resize that fails keeps
// no other from starting.
func TestResizeWithARestart(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	pod := onePod()
	pod.Spec.Containers[0].Resources = amounts("1", "1Ki")
	facts, p := factsOf(pod), NewPod()
	plan := startOf(pod)
	plan.ResizePod = true
	plan.Kill = []lifecycle.Kill{
		{Container: &pod.Spec.Containers[0], Status: &runtime.Container{Name: "c", ID: runtime.ContainerID{ID: "c1"}},
			Reason: lifecycle.KillResize}}
	for _, fails := range []bool{false, true} {
		if fails {
			f.fail["grow"] = errors.New("grow")
		}
		err := e.Act(t.Context(), facts, p, plan)
		var steps []string
		for _, n := range f.took() {
			switch n {
			case "stop c1 30s", "grow", "start id-c", "actuated c 1", "settle", "pod actuated 0":
				steps = append(steps, n)
			}
		}
		if want := []string{"stop c1 30s", "grow", "start id-c", "actuated c 1", "settle", "pod actuated 0"}; !fails {
			expect(t, "restart", steps, want...)
		} else {
			expect(t, "restart", steps, want[:4]...)
		}
		if (err != nil) != fails {
			t.Error(err)
		}
	}
}
