package lifecycle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/runtime"
)

// requirements are of words: "cpu=1 memory=1Gi", those of limits with a capital letter.
func requirements(words string) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, w := range strings.Fields(words) {
		name, amount, _ := strings.Cut(w, "=")
		list := r.Requests
		if lower := strings.ToLower(name); lower != name {
			name, list = lower, r.Limits
		}
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return r
}

// resized is a pod whose first container has what the words say, and was last given something else.
func resized(words, had, has string, policy ...corev1.ContainerResizePolicy) Facts {
	p := pod(words)
	c := resizable(p)[0]
	c.Resources, c.ResizePolicy = requirements(has), policy
	f := Facts{Pod: p, Now: now}
	f.Resize.PodActuates, f.Resize.Generation = true, 4
	f.Resize.Actuated = map[string]corev1.ResourceRequirements{c.Name: requirements(had)}
	return f
}

func TestResizePlans(t *testing.T) {
	t.Parallel()
	restart := func(name corev1.ResourceName) corev1.ContainerResizePolicy {
		return corev1.ContainerResizePolicy{ResourceName: name, RestartPolicy: corev1.RestartContainer}
	}
	whole := func(f Facts, limits string) Facts {
		r := requirements(limits)
		f.Pod.Spec.Resources = &r
		return f
	}
	for name, c := range map[string]struct {
		facts Facts
		world string
		want  string
	}{
		"the pod's limit, for one without": {whole(resized("Always a b", "cpu=1 Memory=1", "cpu=1"), "Memory=2"),
			"sandbox a=running b=running", "resize-pod update:a"},
		"the same limit of the pod": {whole(resized("Always a b", "cpu=1 Memory=1", "cpu=1"), "Memory=1"),
			"sandbox a=running b=running", "resize-pod"},
		"the pod's limit, with a restart": {
			whole(resized("Always a b", "cpu=1 Memory=1", "cpu=1", restart("memory")), "Memory=2"),
			"sandbox a=running b=running", "kill:a resize-pod start:a#1"},
		"the pod's limit beside its own": {
			whole(resized("Always a b", "cpu=1 Memory=1", "cpu=1 Memory=1"), "Memory=2"), "sandbox a=running b=running",
			"resize-pod"},
		"without a restart": {resized("Always a b", "cpu=1", "cpu=2"), "sandbox a=running b=running",
			"resize-pod update:a"},
		"with one": {resized("Always a b", "cpu=1", "cpu=2", restart("cpu")),
			"sandbox a=running b=running", "kill:a resize-pod start:a#1"},
		"policy of a resource that stays": {
			resized("Always a b", "cpu=1 memory=1", "cpu=2 memory=1", restart("memory")), "sandbox a=running b=running",
			"resize-pod update:a"},
		"policy of a limit": {resized("Always a b", "Cpu=1", "Cpu=2", restart("cpu")),
			"sandbox a=running b=running", "kill:a resize-pod start:a#1"},
		"a limit that is new": {resized("Always a b", "cpu=1", "cpu=1 Memory=2", restart("memory")),
			"sandbox a=running b=running", "kill:a resize-pod start:a#1"},
		"the same in other words": {resized("Always a b", "cpu=1", "cpu=1000m"),
			"sandbox a=running b=running", "resize-pod"},
		"of one that is not there yet": {resized("Always a b", "cpu=1", "cpu=2"), "sandbox b=running",
			"resize-pod start:a#0"},
		"of one that has ended": {resized("Never a b", "cpu=1", "cpu=2"), "sandbox a=0 b=running",
			"resize-pod"},
		"of an init container": {resized("Always init:a b", "cpu=1", "cpu=2"), "sandbox a=running",
			"resize-pod update:a"},
		"of an init container that has ended": {resized("Always init:a b", "cpu=1", "cpu=2"), "sandbox b=running a=0",
			"resize-pod"},
		"of a sidecar, with a restart": {resized("Always side:a b", "cpu=1", "cpu=2", restart("cpu")),
			"sandbox b=running a=running", "kill:a resize-pod start:a#1"},
		"of one that is replaced, too": {resized("Always a b", "cpu=1", "cpu=2"), "sandbox a=changed b=running",
			"kill:a resize-pod start:a#1"},
		"a pod that has no sandbox any more": {resized("Always a b", "cpu=1", "cpu=2"),
			"dead-sandbox a=running b=running", "kill-pod sandbox#1"},
		"a pod with a policy that never comes": {resized("Never a", "memory=2 Memory=2", "memory=1 Memory=1"),
			"sandbox a=running", "resize-pod update:a"},
	} {
		c.facts.Runtime = world(c.world)
		plan := Next(c.facts)
		if got := text(plan); got != c.want || plan.Done() {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		for _, k := range plan.Kill {
			if k.Reason == KillResize && k.Message != "Container a resize requires restart" {
				t.Errorf("%s: %s", name, k.Message)
			}
		}
	}
	f := resized("Always a b", "cpu=1", "cpu=2")
	f.Runtime, f.Pod.DeletionTimestamp = world("sandbox a=running b=running"), &f.Pod.CreationTimestamp
	if got := text(Next(f)); got != "kill-pod" {
		t.Errorf("a pod that ends: %q", got)
	}
}

func TestResizeConditions(t *testing.T) {
	t.Parallel()
	find := func(st corev1.PodStatus, of corev1.PodConditionType) string {
		if c := condition(st.Conditions, of); c != nil {
			return strings.TrimSpace(string(c.Status) + " " + c.Reason + " " + c.Message)
		}
		return ""
	}
	f := resized("Always a", "cpu=1", "cpu=2")
	f.Runtime, f.Pod.Generation = world("sandbox a=running"), 5
	st := Status(f, Report{})
	if find(st, corev1.PodResizeInProgress) != "True" ||
		condition(st.Conditions, corev1.PodResizeInProgress).ObservedGeneration != 4 ||
		find(st, corev1.PodResizePending) != "" {
		t.Errorf("being done: %+v", st.Conditions)
	}
	f.Resize.Error, f.Resize.Reason, f.Resize.Message = "too much in use", corev1.PodReasonDeferred, "no room"
	f.Pod.Status = st
	st = Status(f, Report{})
	if find(st, corev1.PodResizeInProgress) != "True Error too much in use" ||
		find(st, corev1.PodResizePending) != "True Deferred no room" ||
		condition(st.Conditions, corev1.PodResizePending).ObservedGeneration != 5 {
		t.Errorf("failed, and the next one waits: %+v", st.Conditions)
	}
	f.Pod.Status, f.Resize = st, runtime.Resizing{}
	if st = Status(f, Report{}); find(st, corev1.PodResizeInProgress)+find(st, corev1.PodResizePending) != "" {
		t.Errorf("over: %+v", st.Conditions)
	}
}

func TestRunningContainersShowWhatTheyHave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		had, has string
		told     *runtime.ContainerResources
		want     string
	}{
		"before it is given more": {"cpu=1 Cpu=2", "cpu=3 Cpu=4", nil, "cpu=1 Cpu=2"},
		"as the runtime tells": {"cpu=1 Cpu=2 Memory=1Gi", "cpu=3 Cpu=3 Memory=2Gi",
			&runtime.ContainerResources{MilliCPURequest: 1000, MilliCPULimit: 2000, MemoryLimit: 1 << 30},
			"cpu=1 Cpu=2 Memory=1Gi"},
		"otherwise than the runtime": {"cpu=1 Cpu=2 Memory=1Gi", "cpu=3 Cpu=3 Memory=2Gi",
			&runtime.ContainerResources{MilliCPURequest: 1500, MilliCPULimit: 2500, MemoryLimit: 2 << 30},
			"cpu=1500m Cpu=2500m Memory=2Gi"},
		"less than cgroups know": {"cpu=1m Cpu=5m", "cpu=3 Cpu=3",
			&runtime.ContainerResources{MilliCPURequest: 2, MilliCPULimit: 10}, "cpu=1m Cpu=5m"},
		"more than the least": {"cpu=1m Cpu=5m", "cpu=3 Cpu=3",
			&runtime.ContainerResources{MilliCPURequest: 3, MilliCPULimit: 20}, "cpu=3m Cpu=20m"},
		"nothing asked for": {"", "cpu=3", &runtime.ContainerResources{MilliCPURequest: 2}, ""},
		"the pod's limit": {"cpu=3 Memory=1Ki", "cpu=3",
			&runtime.ContainerResources{MilliCPURequest: 3000, MemoryLimit: 1024}, "cpu=3"},
	} {
		f := resized("Always a", c.had, c.has)
		f.Runtime = world("sandbox a=running")
		f.Runtime.Containers[0].Resources = c.told
		st := Status(f, Report{}).ContainerStatuses[0]
		if !runtime.SameResources(*st.Resources, requirements(c.want)) {
			t.Errorf("%s: %v", name, st.Resources)
		}
		if want := requirements(c.has).Requests; !st.AllocatedResources.Cpu().Equal(*want.Cpu()) {
			t.Errorf("%s: allocated %v", name, st.AllocatedResources)
		}
	}
	f := resized("Always a", "cpu=1", "cpu=1")
	whole := requirements("cpu=4 Cpu=5")
	had := requirements("cpu=3 Cpu=5")
	f.Pod.Spec.Resources, f.Runtime, f.Resize.PodActuated = &whole, world("sandbox a=running"), &had
	if st := Status(f, Report{}); st.Resources == nil || !runtime.SameResources(*st.Resources, had) ||
		st.AllocatedResources.Cpu().String() != "4" {
		t.Errorf("as a whole, while it is given less: %v, %v", st.Resources, st.AllocatedResources)
	}
	f.Resize.PodActuates, f.Resize.PodActuated = false, nil
	if st := Status(f, Report{}); st.Resources == nil || !runtime.SameResources(*st.Resources, whole) ||
		st.AllocatedResources.Cpu().String() != "4" {
		t.Errorf("as a whole: %v, %v", st.Resources, st.AllocatedResources)
	}
	f.Pod.Spec.Resources = nil
	if st := Status(f, Report{}); st.Resources != nil || st.AllocatedResources.Cpu().String() != "1" {
		t.Errorf("its containers together: %v, %v", st.Resources, st.AllocatedResources)
	}
}

// The form: https://github.com/kubernetes/kubernetes/pull/134825.
func TestDescribeResize(t *testing.T) {
	t.Parallel()
	f := resized("Always nginx", "cpu=1", "cpu=2")
	f.Pod.Spec.Containers[0].Resources.Limits = nil
	if got := DescribeResize(f.Pod, 2,
		"no room"); got != `{"containers":[{"name":"nginx","resources":{"requests":{"cpu":"2"}}}],"generation":2,"error":"no room"}` {
		t.Error(got)
	}
}
