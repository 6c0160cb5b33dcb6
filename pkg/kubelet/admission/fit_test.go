package admission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/sysctl"
)

func TestReasons(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"disk": "ssd"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectNoSchedule},
			{Key: "hard", Effect: corev1.TaintEffectNoExecute}}}}
	with := func(change func(*corev1.Pod)) *corev1.Pod {
		p := pod("p", "400m", 1)
		p.Spec.Tolerations = []corev1.Toleration{{Key: "hard", Operator: corev1.TolerationOpExists}}
		if change != nil {
			change(p)
		}
		return p
	}
	port := func(ip string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{
				{HostPort: 80, Protocol: corev1.ProtocolTCP, HostIP: ip}}
		}
	}
	init := func(policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			port("")(p)
			p.Spec.InitContainers, p.Spec.Containers = p.Spec.Containers, []corev1.Container{{}}
			p.Spec.InitContainers[0].RestartPolicy = policy
		}
	}
	always := corev1.ContainerRestartPolicyAlways
	elsewhere := with(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "hdd"} })
	for _, c := range []struct {
		name            string
		pod             *corev1.Pod
		node            *corev1.Node
		other           *corev1.Pod
		reason, message string
	}{
		{"fits", with(nil), node, pod("o", "600m", 0), "", ""},
		{"cpu", with(nil), node, pod("o", "700m", 0), "OutOfcpu",
			"Node didn't have enough resource: cpu, requested: 400, used: 700, capacity: 1000"},
		{"extended", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = list(
				map[corev1.ResourceName]string{"x.y/none": "1", "memory": "0"})
		}), node, nil, "OutOfx.y/none",
			"Node didn't have enough resource: x.y/none, requested: 1, used: 0, capacity: 0"},
		{"extended that the node does not know: an extender of the scheduler does", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = list(
				map[corev1.ResourceName]string{"x.y/gpu": "1", "memory": "0"})
		}), node, nil, "", ""},
		{"huge pages that the node does not know", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = list(
				map[corev1.ResourceName]string{"hugepages-2Mi": "2Mi", "memory": "0"})
		}), node, nil, "OutOfhugepages-2Mi",
			"Node didn't have enough resource: hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"},
		{"extended, by claimed devices", with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = list(map[corev1.ResourceName]string{"x.y/gpu": "1"})
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c",
				RequestMappings: []corev1.ContainerExtendedResourceRequest{
					{ContainerName: "c", ResourceName: "x.y/gpu", RequestName: "r"}}}
		}), node, nil, "", ""},
		{"selector", elsewhere, node, nil, "NodeAffinity",
			"Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
		{"a node that is not known", elsewhere, nil, nil, "", ""},
		{"taint", pod("p", "1", 1), node, nil, "TaintToleration",
			"Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"},
		{"port", with(port("")), node, with(port("")), "NodePorts",
			"Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{"port of one address", with(port("10.0.0.1")), node, with(port("0.0.0.0")), "NodePorts",
			"Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{"port of other addresses", with(port("10.0.0.1")), node, with(port("10.0.0.2")), "", ""},
		{"port of a sidecar", with(init(&always)), node, with(port("")), "NodePorts",
			"Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"},
		{"port of an init container", with(init(nil)), node, with(port("")), "", ""},
	} {
		a := admitter(nil)
		a.cfg.Node = func() *corev1.Node { return c.node }
		if c.other != nil {
			c.other.UID = "other"
			a.Ran("other")
			a.Add(c.other)
		}
		a.Open()
		_, r := a.Admit(c.pod)
		if r == nil {
			r = &Rejection{}
		}
		if r.Reason != c.reason || r.Message != c.message {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	a := admitter(nil)
	a.Open()
	for i := range 10 {
		a.Admit(pod(types.UID(fmt.Sprint(i)), "0", 0))
	}
	if _, r := a.Admit(pod("last", "0", 1)); r == nil || r.Reason != "OutOfpods" ||
		r.Message != "Node didn't have enough resource: pods, requested: 1, used: 10, capacity: 10" {
		t.Errorf("pods: %+v", r)
	}
}

// A pod of another operating system, one with a forbidden kernel parameter, and one whose groups the runtime would get
// wrong are refused on sight.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	able := &corev1.Node{Status: corev1.NodeStatus{Features: &corev1.NodeFeatures{SupplementalGroupsPolicy: new(true)}}}
	groups := func(p corev1.SupplementalGroupsPolicy) corev1.PodSpec {
		return corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SupplementalGroupsPolicy: &p}}
	}
	const noGroups, groupsMessage = "SupplementalGroupsPolicyNotSupported",
		"SupplementalGroupsPolicy=Strict is not supported in this node"
	for name, c := range map[string]struct {
		spec            corev1.PodSpec
		reason, message string
		node            *corev1.Node
	}{
		"strict groups": {groups(corev1.SupplementalGroupsPolicyStrict), "", "", able},
		"strict groups, not known": {groups(corev1.SupplementalGroupsPolicyStrict), noGroups, groupsMessage,
			&corev1.Node{}},
		"merged groups": {groups(corev1.SupplementalGroupsPolicyMerge), "", "", &corev1.Node{}},
		"linux":         {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}, "", "", nil},
		"windows": {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, "PodOSNotSupported",
			"Failed to admit pod as the OS field doesn't match node OS", nil},
		"allowed sysctl": {
			corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
				Sysctls: []corev1.Sysctl{{Name: "net.core.somaxconn"}}}}, "", "", nil},
		"unsafe sysctl": {corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax"}}}},
			"SysctlForbidden", `forbidden sysctl: "kernel.msgmax" not allowlisted`, nil},
	} {
		allowed, err := sysctl.New([]string{"net.core.somaxconn"})
		if err != nil {
			t.Fatal(err)
		}
		a := admitter(nil)
		a.cfg.Sysctls, a.cfg.Node = allowed.Check, func() *corev1.Node { return c.node }
		a.Open()
		_, got := a.Admit(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: c.spec})
		if got == nil {
			got = &Rejection{}
		}
		if got.Reason != c.reason || got.Message != c.message {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
