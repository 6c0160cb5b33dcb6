package endpointslice

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "svc"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9",
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}}},
	}
}

func readyPod(i int) *corev1.Pod {
	ip := fmt.Sprintf("10.1.%d.%d", i/250, i%250)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprint(i))},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func noZone(string) (string, bool) { return "", true }

// server applies plans to a set of slices as the API server would.
type server struct {
	slices map[string]*discoveryv1.EndpointSlice
	n      int
}

func (s *server) list() (out []*discoveryv1.EndpointSlice) {
	for _, x := range s.slices {
		out = append(out, x)
	}
	return out
}

func (s *server) apply(c changes) {
	for _, x := range c.create {
		s.n++
		x.Name = fmt.Sprint("web-", s.n)
		s.slices[x.Name] = x
	}
	for _, x := range c.update {
		s.slices[x.Name] = x
	}
	for _, x := range c.remove {
		delete(s.slices, x.Name)
	}
}

// TestRandomHistories changes the pods at random and checks after each plan: every pod is in exactly one slice, none is
// too large, a second plan has nothing to do, and a Service without pods keeps one empty slice.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	const most = 10
	svc, v4 := service(), discoveryv1.AddressTypeIPv4
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		srv := &server{slices: map[string]*discoveryv1.EndpointSlice{}}
		alive := map[int]bool{}
		for step := range 40 {
			for range rnd.IntN(15) {
				i := rnd.IntN(60)
				if alive[i] = !alive[i]; !alive[i] {
					delete(alive, i)
				}
			}
			if step%13 == 12 {
				clear(alive)
			}
			var pods []*corev1.Pod
			for i := range alive {
				pods = append(pods, readyPod(i))
			}
			srv.apply(plan(svc, v4, group(svc, v4, pods, noZone), srv.list(), most))
			found := map[string]int{}
			for _, s := range srv.slices {
				if len(s.Endpoints) > most {
					t.Fatalf("seed %d step %d: %d endpoints in one slice", seed, step, len(s.Endpoints))
				}
				for _, e := range s.Endpoints {
					found[e.TargetRef.Name]++
				}
			}
			for i := range alive {
				if found[fmt.Sprint("p", i)] != 1 {
					t.Fatalf("seed %d step %d: p%d is in %d slices", seed, step, i, found[fmt.Sprint("p", i)])
				}
			}
			if len(found) != len(alive) || len(alive) == 0 && len(srv.slices) != 1 {
				t.Fatalf("seed %d step %d: %d pods, %d endpoints in %d slices", seed, step, len(alive), len(found),
					len(srv.slices))
			}
			again := plan(svc, v4, group(svc, v4, pods, noZone), srv.list(), most)
			if len(again.create)+len(again.update)+len(again.remove) != 0 {
				t.Fatalf("seed %d step %d: a second plan changes things: %+v", seed, step, again)
			}
		}
	}
}

// TestOneNewPodIsOneWrite keeps churn low: beside 95 endpoints there is room for one more.
func TestOneNewPodIsOneWrite(t *testing.T) {
	t.Parallel()
	svc, v4 := service(), discoveryv1.AddressTypeIPv4
	srv := &server{slices: map[string]*discoveryv1.EndpointSlice{}}
	var pods []*corev1.Pod
	for i := range 195 {
		pods = append(pods, readyPod(i))
	}
	srv.apply(plan(svc, v4, group(svc, v4, pods, noZone), nil, 100))
	if len(srv.slices) != 2 {
		t.Fatalf("195 endpoints in %d slices", len(srv.slices))
	}
	c := plan(svc, v4, group(svc, v4, append(pods, readyPod(195)), noZone), srv.list(), 100)
	if len(c.create) != 0 || len(c.update) != 1 || len(c.remove) != 0 {
		t.Errorf("%d creations, %d updates, %d removals", len(c.create), len(c.update), len(c.remove))
	}
}

func TestEndpointConditions(t *testing.T) {
	t.Parallel()
	gone := metav1.Now()
	for _, c := range []struct {
		name                        string
		change                      func(*corev1.Pod, *corev1.Service)
		ready, serving, terminating bool
	}{
		{"ready", func(*corev1.Pod, *corev1.Service) {}, true, true, false},
		{"not ready", func(p *corev1.Pod, _ *corev1.Service) { p.Status.Conditions = nil }, false, false, false},
		{"terminating but serving", func(p *corev1.Pod, _ *corev1.Service) {
			p.DeletionTimestamp = &gone
		}, false, true, true},
		{"published anyway", func(p *corev1.Pod, s *corev1.Service) {
			p.Status.Conditions, s.Spec.PublishNotReadyAddresses = nil, true
		}, true, false, false},
	} {
		p, svc := readyPod(1), service()
		c.change(p, svc)
		e := endpointOf(svc, p, "10.1.0.1", "zone-a").Conditions
		if *e.Ready != c.ready || *e.Serving != c.serving || *e.Terminating != c.terminating {
			t.Errorf("%s: ready %v serving %v terminating %v", c.name, *e.Ready, *e.Serving, *e.Terminating)
		}
	}
}

// TestPodsOfUnknownNodes: the node may be gone for good; clients that want pods that are not ready want these too.
func TestPodsOfUnknownNodes(t *testing.T) {
	t.Parallel()
	svc, v4 := service(), discoveryv1.AddressTypeIPv4
	pods := []*corev1.Pod{readyPod(1), readyPod(2)}
	pods[1].Spec.NodeName = "gone"
	zone := func(node string) (string, bool) { return "", node == "n1" }
	for _, all := range []bool{false, true} {
		svc.Spec.PublishNotReadyAddresses = all
		n := 0
		for _, g := range group(svc, v4, pods, zone) {
			n += len(g.endpoints)
		}
		if want := map[bool]int{false: 1, true: 2}[all]; n != want {
			t.Errorf("all %v: %d endpoints, want %d", all, n, want)
		}
	}
}

func TestTargetPorts(t *testing.T) {
	t.Parallel()
	p := readyPod(1)
	always := corev1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []corev1.Container{
		{Ports: []corev1.ContainerPort{{Name: "init", ContainerPort: 1, Protocol: corev1.ProtocolTCP}}},
		{RestartPolicy: &always,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 9, Protocol: corev1.ProtocolTCP},
				{Name: "side", ContainerPort: 2, Protocol: corev1.ProtocolTCP}}},
	}
	p.Spec.Containers = []corev1.Container{
		{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 3, Protocol: corev1.ProtocolTCP},
			{Name: "dns", ContainerPort: 4, Protocol: corev1.ProtocolUDP}}}}
	for target, want := range map[string]int32{"init": 0, "side": 2, "http": 3, "dns": 0, "9090": 9090} {
		sp := &corev1.ServicePort{Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.Parse(target)}
		if got, ok := targetPort(sp, p); got != want || ok != (want != 0) {
			t.Errorf("targetPort(%s) = %d, %v, want %d", target, got, ok, want)
		}
	}
}
