package endpoints

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.96.0.9", Selector: map[string]string{"app": "web"},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
		},
	}
}

// readyPod is the i-th pod of the Service, running and ready on n1.
func readyPod(i int) *corev1.Pod {
	name := fmt.Sprintf("p%d", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			PodIPs:     []corev1.PodIP{{IP: fmt.Sprintf("10.1.%d.%d", i/250, i%250)}, {IP: fmt.Sprintf("fd00::%x", i)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// show writes subsets as "http/TCP:8080 ready 10.1.0.1 waiting 10.1.0.2", joined by "; ".
func show(subsets []corev1.EndpointSubset) string {
	var out []string
	for _, s := range subsets {
		var words []string
		for _, p := range s.Ports {
			words = append(words, fmt.Sprintf("%s/%s:%d", p.Name, p.Protocol, p.Port))
		}
		for _, a := range s.Addresses {
			words = append(words, "ready", a.IP)
		}
		for _, a := range s.NotReadyAddresses {
			words = append(words, "waiting", a.IP)
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, "; ")
}

func TestSubsets(t *testing.T) {
	t.Parallel()
	gone := metav1.Now()
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	named := func(p *corev1.Pod, port int32) {
		p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{
			{Name: "www", ContainerPort: port, Protocol: corev1.ProtocolUDP},
			{Name: "www", ContainerPort: port + 1, Protocol: corev1.ProtocolTCP},
		}}}
	}
	for _, c := range []struct {
		name   string
		change func(svc *corev1.Service, a, b *corev1.Pod)
		want   string
	}{
		{"ready", func(*corev1.Service, *corev1.Pod, *corev1.Pod) {}, "http/TCP:8080 ready 10.1.0.1 ready 10.1.0.2"},
		{"one is not", func(_ *corev1.Service, a, _ *corev1.Pod) {
			unready(a)
		}, "http/TCP:8080 ready 10.1.0.2 waiting 10.1.0.1"},
		{"published anyway", func(s *corev1.Service, a, _ *corev1.Pod) {
			unready(a)
			s.Spec.PublishNotReadyAddresses = true
		},
			"http/TCP:8080 ready 10.1.0.1 ready 10.1.0.2"},
		{"terminating", func(_ *corev1.Service, a, _ *corev1.Pod) {
			a.DeletionTimestamp = &gone
		}, "http/TCP:8080 ready 10.1.0.2"},
		{"terminating but published", func(s *corev1.Service, a, _ *corev1.Pod) {
			a.DeletionTimestamp, s.Spec.PublishNotReadyAddresses = &gone, true
		}, "http/TCP:8080 ready 10.1.0.1 ready 10.1.0.2"},
		{"ended pods are never published", func(s *corev1.Service, a, b *corev1.Pod) {
			a.Status.Phase, b.Status.Phase, s.Spec.PublishNotReadyAddresses = corev1.PodSucceeded, corev1.PodFailed,
				true
		}, ""},
		{"no address yet", func(_ *corev1.Service, a, _ *corev1.Pod) {
			a.Status.PodIPs = nil
		}, "http/TCP:8080 ready 10.1.0.2"},
		{"the first family counts", func(s *corev1.Service, _, _ *corev1.Pod) {
			s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
		}, "http/TCP:8080 ready fd00::1 ready fd00::2"},
		{"family by the cluster IP", func(s *corev1.Service, _, _ *corev1.Pod) {
			s.Spec.ClusterIP = "fd01::1"
		}, "http/TCP:8080 ready fd00::1 ready fd00::2"},
		{"target defaults to the port", func(s *corev1.Service, _, _ *corev1.Pod) {
			s.Spec.Ports[0].TargetPort = intstr.IntOrString{}
		},
			"http/TCP:80 ready 10.1.0.1 ready 10.1.0.2"},
		{"a named target per pod", func(s *corev1.Service, a, b *corev1.Pod) {
			s.Spec.Ports[0].TargetPort = intstr.FromString("www")
			named(a, 7000)
			named(b, 9000)
		}, "http/TCP:7001 ready 10.1.0.1; http/TCP:9001 ready 10.1.0.2"},
		{"a named target that one pod lacks", func(s *corev1.Service, _, b *corev1.Pod) {
			s.Spec.Ports[0].TargetPort = intstr.FromString("www")
			named(b, 9000)
		}, "http/TCP:9001 ready 10.1.0.2"},
		{"headless without ports", func(s *corev1.Service, _, b *corev1.Pod) {
			s.Spec.ClusterIP, s.Spec.Ports = corev1.ClusterIPNone, nil
			unready(b)
		}, "ready 10.1.0.1 waiting 10.1.0.2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			svc, a, b := service(), readyPod(1), readyPod(2)
			c.change(svc, a, b)
			for _, pods := range [][]*corev1.Pod{{a, b}, {b, a}} {
				if got := show(subsetsOf(svc, pods)); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ node, hostname, subdomain, want string }{
		{"n1", "", "", "n1 "},
		{"", "", "", "- "},
		{"n1", "db-0", "web", "n1 db-0"},
		{"n1", "db-0", "other", "n1 "},
		{"n1", "", "web", "n1 "},
	} {
		p := readyPod(1)
		p.Spec.NodeName, p.Spec.Hostname, p.Spec.Subdomain = c.node, c.hostname, c.subdomain
		a, node := addressOf(service(), p, "10.1.0.1"), "-"
		if a.NodeName != nil {
			node = *a.NodeName
		}
		if got := node + " " + a.Hostname; got != c.want {
			t.Errorf("node %q, hostname %q, subdomain %q: got %q, want %q", c.node, c.hostname, c.subdomain, got,
				c.want)
		}
		if ref := *a.TargetRef; ref != (corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: "p1", UID: "p1"}) {
			t.Errorf("the target is %+v", ref)
		}
	}
}

// TestMetadata: labels are the Service's and ours; annotations of others stay.
func TestMetadata(t *testing.T) {
	t.Parallel()
	svc := service()
	svc.Labels = map[string]string{"team": "a", corev1.IsHeadlessService: "forged"}
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"old": ""},
		Annotations: map[string]string{"mine": "x", corev1.EndpointsOverCapacity: "truncated"}}}
	describe(e, svc, nil)
	if want := map[string]string{"team": "a", managedByLabel: managedBy}; !maps.Equal(e.Labels, want) {
		t.Errorf("labels %v, want %v", e.Labels, want)
	}
	if want := map[string]string{"mine": "x"}; !maps.Equal(e.Annotations, want) {
		t.Errorf("annotations %v, want %v", e.Annotations, want)
	}
	svc.Spec.ClusterIP = corev1.ClusterIPNone
	describe(e, svc, nil)
	if v, ok := e.Labels[corev1.IsHeadlessService]; !ok || v != "" {
		t.Errorf("labels of a headless service: %v", e.Labels)
	}
	if svc.Labels[corev1.IsHeadlessService] != "forged" {
		t.Error("the cached Service was changed")
	}
}

func TestOverCapacity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ready, waiting, wantReady, wantWaiting int }{
		{1000, 0, 1000, 0},
		{900, 100, 900, 100},
		{900, 300, 900, 100},
		{1001, 5, 1000, 0},
	} {
		var pods []*corev1.Pod
		for i := range c.ready + c.waiting {
			p := readyPod(i)
			if i < c.waiting { // the first addresses by number
				p.Status.Conditions = nil
			}
			pods = append(pods, p)
		}
		e := &corev1.Endpoints{}
		describe(e, service(), pods)
		ready, waiting := len(e.Subsets[0].Addresses), len(e.Subsets[0].NotReadyAddresses)
		if ready != c.wantReady || waiting != c.wantWaiting {
			t.Errorf("%d ready and %d other: kept %d and %d, want %d and %d", c.ready, c.waiting, ready, waiting,
				c.wantReady, c.wantWaiting)
		}
		cut := c.ready+c.waiting > maxAddresses
		if got := e.Annotations[corev1.EndpointsOverCapacity]; (got == "truncated") != cut {
			t.Errorf("%d ready and %d other: annotation %q", c.ready, c.waiting, got)
		}
		if !slices.IsSortedFunc(e.Subsets[0].Addresses, byIP) {
			t.Errorf("%d ready and %d other: not in order, each round would write", c.ready, c.waiting)
		}
	}
}
