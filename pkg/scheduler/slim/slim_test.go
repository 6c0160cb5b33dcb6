package slim_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/preemption"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/slim"
)

func cpu(text string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(text)}
}

// heavyPod has what decisions read and what they do not.
func heavyPod() *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	container := func(name, request string) corev1.Container {
		return corev1.Container{
			Name: name, Image: name + ":1", Env: []corev1.EnvVar{{Name: "A", Value: "B"}}, Command: []string{"run"},
			Resources: corev1.ResourceRequirements{Requests: cpu(request)},
			Ports: []corev1.ContainerPort{{ContainerPort: 80},
				{ContainerPort: 81, HostPort: 8081, HostIP: "10.0.0.1", Protocol: corev1.ProtocolUDP}},
		}
	}
	sidecar := container("sidecar", "250m")
	sidecar.RestartPolicy = &always
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", ResourceVersion: "5",
			Labels:      map[string]string{"app": "web"},
			Annotations: map[string]string{"much": "text"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
			OwnerReferences: []metav1.OwnerReference{{Name: "owner"}}},
		Spec: corev1.PodSpec{
			SchedulerName: "default-scheduler", Priority: new(int32(7)), PreemptionPolicy: new(corev1.PreemptNever),
			Overhead:        cpu("10m"),
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}}, NodeSelector: map[string]string{"a": "b"},
			Tolerations:               []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}},
			Affinity: &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}}},
			InitContainers: []corev1.Container{container("init", "3"), sidecar},
			Containers:     []corev1.Container{container("web", "1")},
			Volumes:        []corev1.Volume{{Name: "v"}}, SecurityContext: &corev1.PodSecurityContext{},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending, NominatedNodeName: "n9", StartTime: new(metav1.Unix(9, 0)),
			PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady},
				{Type: corev1.PodScheduled, Reason: "Unschedulable"}, {Type: corev1.DisruptionTarget}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "web", Image: "web:1", Resources: &corev1.ResourceRequirements{Requests: cpu("1")},
					AllocatedResources: cpu("1")}},
		},
	}
}

// keepers returns a profile of all plug-ins that filter or score, and a keeper of what they declare.
func keepers(t testing.TB) (*profile.Profile, *slim.Keeper) {
	t.Helper()
	p, err := profile.New("s", plugins.Default(plugins.Config{AvoidPods: true, Preemption: &preemption.Plugin{}}))
	if err != nil {
		t.Fatal(err)
	}
	k, err := slim.New(slices.Collect(maps.Values(p.Fields))...)
	if err != nil {
		t.Fatal(err)
	}
	return p, k
}

// TestSlimPodDecidesTheSame: whatever a decision reads must still be there.
func TestSlimPodDecidesTheSame(t *testing.T) {
	t.Parallel()
	prof, keeper := keepers(t)
	status := func(name, actual, allocated string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Resources: &corev1.ResourceRequirements{Requests: cpu(actual)},
			AllocatedResources: cpu(allocated)}
	}
	for name, change := range map[string]func(*corev1.Pod){
		"as it is": func(*corev1.Pod) {},
		"asking as a whole": func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: cpu("9")}
		},
		"asking for a feature": func(p *corev1.Pod) {
			p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{
				{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
		},
		"named node": func(p *corev1.Pod) { p.Spec.NodeName = "n1" },
		"shrinking, not yet begun": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{status("web", "4", "4")}
		},
		"shrinking, allocated": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{status("web", "4", "1")}
		},
		"sidecar shrinking": func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{status("sidecar", "4", "4")}
		},
		"resize of the whole": func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: cpu("4")}
			p.Status.Resources, p.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: cpu("9")}, cpu("8")
		},
		"resize in progress": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{status("web", "4", "2")}
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress})
		},
		"resize that cannot be": func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{status("web", "500m", "500m")}
			p.Status.Conditions = append(p.Status.Conditions,
				corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible})
		},
		"resize of another container that cannot be": func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{status("sidecar", "100m", "100m")}
			p.Status.Conditions = append(p.Status.Conditions,
				corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible})
		},
		"the whole has more than it asks for": func(p *corev1.Pod) {
			p.Status.Resources, p.Status.AllocatedResources = &corev1.ResourceRequirements{Requests: cpu("9")}, cpu("8")
		},
	} {
		full, small := heavyPod(), heavyPod()
		change(full)
		change(small)
		keeper.Pod(small)
		want, got := model.NewPodInfo(full), model.NewPodInfo(small)
		if !got.Requests.Equal(&want.Requests) || got.NonZero.MilliCPU != want.NonZero.MilliCPU {
			t.Errorf("%s: asks for %dm, the whole pod for %dm", name, got.Requests.MilliCPU, want.Requests.MilliCPU)
		}
		whole, _ := prof.Class(want)
		class, _ := prof.Class(got)
		if class != whole || !sameGroup(got, want) || !slices.Equal(got.Ports, want.Ports) ||
			got.HasRequiredAntiAffinity() != want.HasRequiredAntiAffinity() {
			t.Errorf("%s: class %q, ports %v, the whole pod %q, %v", name, class, got.Ports, whole, want.Ports)
		}
	}
}

// TestSlimPodAsksTheSame of pods with any containers, and any statuses of them.
func TestSlimPodAsksTheSame(t *testing.T) {
	t.Parallel()
	_, keeper := keepers(t)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 37))
		amount := func() corev1.ResourceList {
			if r.IntN(4) == 0 {
				return nil
			}
			return cpu(strconv.Itoa(1 + r.IntN(2)))
		}
		status := func(c corev1.Container) corev1.ContainerStatus {
			st := corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.Resources.Requests,
				Resources: &corev1.ResourceRequirements{Requests: c.Resources.Requests}}
			if r.IntN(3) == 0 {
				st.AllocatedResources = amount()
			}
			if r.IntN(3) == 0 {
				st.Resources.Requests = amount()
			}
			if r.IntN(5) == 0 {
				st.Resources = nil
			}
			return st
		}
		p := &corev1.Pod{}
		for i := range 1 + r.IntN(2) {
			c := corev1.Container{Name: fmt.Sprint("c", i)}
			c.Resources.Requests = amount()
			p.Spec.Containers = append(p.Spec.Containers, c)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status(c))
		}
		for i := range r.IntN(3) {
			c := corev1.Container{Name: fmt.Sprint("i", i)}
			if r.IntN(2) == 0 {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			c.Resources.Requests = amount()
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status(c))
		}
		if r.IntN(3) == 0 {
			p.Spec.Resources = &corev1.ResourceRequirements{Requests: amount()}
		}
		if r.IntN(2) == 0 {
			p.Status.Resources = &corev1.ResourceRequirements{Requests: amount()}
			p.Status.AllocatedResources = amount()
		}
		if r.IntN(4) == 0 {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
				Reason: corev1.PodReasonInfeasible}}
		}
		want := model.NewPodInfo(p.DeepCopy())
		keeper.Pod(p)
		got := model.NewPodInfo(p)
		if !got.Requests.Equal(&want.Requests) || got.NonZero.MilliCPU != want.NonZero.MilliCPU {
			t.Fatalf("seed %d: asks for %dm (%dm), the whole pod for %dm (%dm)", seed, got.Requests.MilliCPU,
				got.NonZero.MilliCPU, want.Requests.MilliCPU, want.NonZero.MilliCPU)
		}
	}
}

// sameGroup reports whether plug-ins that compare pods with each other read the same.
func sameGroup(a, b *model.PodInfo) bool {
	ids := func(p *model.PodInfo) (out []string) {
		for t := range p.Terms.All {
			out = append(out, t.ID, t.TopologyKey)
		}
		for _, c := range p.Spread {
			out = append(out, c.ID)
		}
		return out
	}
	return slices.Equal(ids(a), ids(b))
}

func TestSlimPodIsSmall(t *testing.T) {
	t.Parallel()
	p := heavyPod()
	_, keeper := keepers(t)
	keeper.Pod(p)
	if c := p.Spec.Containers[0]; p.ManagedFields != nil || p.Spec.Volumes != nil || p.Spec.SecurityContext != nil ||
		c.Env != nil || c.Command != nil || len(c.Ports) != 1 {
		t.Errorf("not slim: %+v", p)
	}
	if p.Annotations != nil {
		t.Errorf("annotations %v, want none", p.Annotations)
	}
	if p.UID != "u" || p.ResourceVersion != "5" || p.Status.Phase != corev1.PodPending ||
		p.Status.NominatedNodeName != "n9" || p.Status.StartTime.Unix() != 9 ||
		*p.Spec.Priority != 7 || *p.Spec.PreemptionPolicy != corev1.PreemptNever || len(p.Spec.SchedulingGates) != 1 ||
		len(p.OwnerReferences) != 1 {
		t.Errorf("lost what preemption and the queue read: %+v", p)
	}
	if p.Status.ContainerStatuses != nil {
		t.Errorf("a status says nothing new but is kept: %+v", p.Status.ContainerStatuses)
	}
	var conditions []corev1.PodConditionType
	for _, c := range p.Status.Conditions {
		conditions = append(conditions, c.Type)
	}
	if !slices.Equal(conditions, []corev1.PodConditionType{corev1.PodScheduled, corev1.DisruptionTarget}) {
		t.Errorf("conditions %v", conditions)
	}
}

func TestSlimNodeDecidesTheSame(t *testing.T) {
	t.Parallel()
	node := func() *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"},
				Annotations: map[string]string{"x": "y", corev1.PreferAvoidPodsAnnotationKey: "{}"}},
			Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "k"}}},
			Status: corev1.NodeStatus{Allocatable: cpu("4"), Capacity: cpu("5"),
				Conditions:       []corev1.NodeCondition{{Type: corev1.NodeReady}},
				Images:           []corev1.ContainerImage{{Names: []string{"web:1"}, SizeBytes: 9}},
				DeclaredFeatures: []string{"F"}},
		}
	}
	n := node()
	_, keeper := keepers(t)
	keeper.Node(n)
	want, got := model.NewNodeInfo(node()), model.NewNodeInfo(n)
	if !got.Allocatable.Equal(&want.Allocatable) || got.Images["web:1"] != 9 || n.Labels["a"] != "b" ||
		len(n.Spec.Taints) != 1 || !n.Spec.Unschedulable || !slices.Equal(n.Status.DeclaredFeatures, []string{"F"}) {
		t.Errorf("slim node %+v", n)
	}
	if len(n.Annotations) != 1 || n.Annotations[corev1.PreferAvoidPodsAnnotationKey] == "" ||
		n.Status.Conditions != nil || n.Status.Capacity != nil {
		t.Errorf("not slim: %+v", n)
	}
}

// TestNothingUndeclaredIsKept: without plug-ins only what every decision reads is left.
func TestNothingUndeclaredIsKept(t *testing.T) {
	t.Parallel()
	k, err := slim.New()
	if err != nil {
		t.Fatal(err)
	}
	p := heavyPod()
	k.Pod(p)
	if p.Spec.NodeSelector != nil || p.Spec.Containers[0].Image != "" || p.OwnerReferences != nil ||
		p.Spec.PreemptionPolicy != nil {
		t.Errorf("kept what no plug-in declares: %+v", p)
	}
	if p.Name != "p" || p.Labels["app"] != "web" || p.Spec.Containers[0].Resources.Requests.Cpu().String() != "1" {
		t.Errorf("lost what every decision reads: %+v", p)
	}
}

// TestDeclaredIsKeptWhole: a plug-in gets all of a list that it declares, and more of it than others need.
func TestDeclaredIsKeptWhole(t *testing.T) {
	t.Parallel()
	for path, kept := range map[string]func(*corev1.Pod) bool{
		"spec.volumes":             func(p *corev1.Pod) bool { return len(p.Spec.Volumes) == 1 },
		"status.conditions":        func(p *corev1.Pod) bool { return len(p.Status.Conditions) == 3 },
		"status.conditions.reason": func(p *corev1.Pod) bool { return len(p.Status.Conditions) == 3 },
		"status.containerStatuses.image": func(p *corev1.Pod) bool {
			return p.Status.ContainerStatuses[0].Image == "web:1"
		},
		"spec.containers.ports": func(p *corev1.Pod) bool {
			return len(p.Spec.Containers[0].Ports) == 2
		},
		"spec.containers": func(p *corev1.Pod) bool {
			return p.Spec.Containers[0].Env[0].Name == "A"
		},
		"spec": func(p *corev1.Pod) bool {
			return p.Spec.SecurityContext != nil && len(p.Spec.Volumes) == 1
		},
		"metadata.annotations[much]": func(p *corev1.Pod) bool { return p.Annotations["much"] == "text" },
		"spec.containers.env.name": func(p *corev1.Pod) bool {
			e := p.Spec.Containers[0].Env[0]
			return e.Name == "A" && e.Value == ""
		},
		"status.initContainerStatuses.lastState": func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodPending
		},
	} {
		k, err := slim.New(framework.Fields{Pod: []string{path}},
			framework.Fields{Pod: []string{"spec.containers.env.name"}})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		p := heavyPod()
		if k.Pod(p); !kept(p) {
			t.Errorf("%s is not kept: %+v", path, p)
		}
	}
}

// TestUnknownFieldsAreRefused: a path that names nothing would keep nothing.
func TestUnknownFieldsAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"spec.tolerationz", "spec.containers.imag", "metadata", "tolerations", "",
		"spec..name", "spec.tolerations.key.x"} {
		_, err := slim.New(framework.Fields{Node: []string{"status.images"}, Pod: []string{path}})
		if known := path == "metadata"; (err == nil) != known {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := slim.New(framework.Fields{Node: []string{"spec.tolerations"}}); err == nil {
		t.Error("a pod's field was taken for a node's")
	}
}

// TestExtendersGetWholeObjects except managed fields.
func TestExtendersGetWholeObjects(t *testing.T) {
	t.Parallel()
	p, want := heavyPod(), heavyPod()
	slim.Everything().Pod(p)
	if want.ManagedFields = nil; !equality.Semantic.DeepEqual(p, want) {
		t.Errorf("%+v", p)
	}
}

func BenchmarkPod(b *testing.B) {
	_, k := keepers(b)
	p := heavyPod()
	b.ReportAllocs()
	for b.Loop() {
		fresh := p.DeepCopy()
		k.Pod(fresh)
	}
}
