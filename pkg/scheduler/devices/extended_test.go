package devices

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"bonsai/pkg/scheduler/model"
)

// asking is a pod of containers such as "i0 g=1 cpu=2": those named i… are init containers, s… are sidecars.
func asking(name string, containers ...string) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	for _, text := range containers {
		words := strings.Fields(text)
		c := corev1.Container{Name: words[0], Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
		for _, w := range words[1:] {
			short, n, _ := strings.Cut(w, "=")
			full := map[string]string{"g": "example.com/gpu", "h": "example.com/hpu", "x": "a.com/x"}[short]
			if full == "" {
				full = short
			}
			c.Resources.Requests[corev1.ResourceName(full)] = resource.MustParse(n)
		}
		switch c.Name[0] {
		case 's':
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			fallthrough
		case 'i':
			p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		default:
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	}
	return model.NewPodInfo(p)
}

// TestSpecial: the requests and mappings that kube-scheduler 1.36.3 makes for the same pods.
func TestSpecial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		containers []string
		requests   string // container/place=count
		mappings   string // container>container/place, by resource
	}{
		{[]string{"c0 g=1"}, "0/0=1", "c0>0/0"},
		{[]string{"i0 g=2", "s0 g=1", "i1 g=1", "c0 g=1 h=1", "c1 g=1", "c2"}, "1/0=1 3/0=1 3/1=1 4/0=1",
			"s0>1/0 c0>3/0 c1>4/0 i0>1/0 i0>3/0 i1>3/0 c0>3/1"},
		{[]string{"i0 g=5", "c0 g=1"}, "0/0=4 1/0=1", "c0>1/0 i0>1/0 i0>0/0"},
		{[]string{"i0 g=2", "i1 g=5", "s0 g=1", "c0 g=3"}, "1/0=1 2/0=1 3/0=3",
			"s0>2/0 c0>3/0 i0>2/0 i0>3/0 i1>2/0 i1>3/0 i1>1/0"},
		{[]string{"i0 g=2", "i1 g=1", "c0"}, "0/0=2", "i0>0/0 i1>0/0"},
		{[]string{"i0 g=1", "i1 g=4", "i2 g=7", "c0 g=2", "c1 g=3"}, "2/0=2 3/0=2 4/0=3",
			"c0>3/0 c1>4/0 i0>3/0 i1>3/0 i1>4/0 i2>3/0 i2>4/0 i2>2/0"},
		{[]string{"s0 g=1", "i1 g=3", "s1 g=2", "i2 g=2", "c0 g=1"}, "0/0=1 2/0=2 3/0=1 4/0=1",
			"s0>0/0 s1>2/0 c0>4/0 i1>2/0 i1>4/0 i2>4/0 i2>3/0"},
		{[]string{"i0 h=1 g=1", "c0 g=2", "c1 h=2"}, "1/0=2 2/0=2", "c0>1/0 i0>1/0 c1>2/0 i0>2/0"},
		{[]string{"i0 g=6", "i1 g=8", "c0 g=5"}, "1/0=3 2/0=5", "c0>2/0 i0>2/0 i0>1/0 i1>2/0 i1>1/0"},
		{[]string{"i0 g=8", "i1 g=6", "c0 g=5"}, "0/0=3 2/0=5", "c0>2/0 i0>2/0 i0>0/0 i1>2/0 i1>0/0"},
		{[]string{"i0 g=3", "s0 g=1", "i1 g=2", "s1 g=1", "i2 g=4", "c0 g=1"}, "1/0=1 3/0=1 4/0=3 5/0=1",
			"s0>1/0 s1>3/0 c0>5/0 i0>1/0 i0>3/0 i0>5/0 i1>3/0 i1>5/0 i2>5/0 i2>4/0"},
		{[]string{"i0 g=4 h=3", "i1 g=5 h=1", "c0 g=3 h=2", "c1 g=1"}, "0/1=1 1/0=1 2/0=3 2/1=2 3/0=1",
			"c0>2/0 c1>3/0 i0>2/0 i0>3/0 i1>2/0 i1>3/0 i1>1/0 c0>2/1 i0>2/1 i0>0/1 i1>2/1"},
		{[]string{"i0 cpu=1 memory=1 x=1 g=1 h=1 z.com/x=1", "c0 x=1 cpu=1 h=1", "c1 x=0 g=0 h=1"}, "0/2=1 1/2=1 2/2=1",
			"i0>0/2 c0>1/2 c1>2/2 i0>1/2"},
		{[]string{"c0 g=1", "c1 g=1", "c2 g=1", "c3 g=1", "c4 g=1", "c5 g=1", "c6 g=1", "c7 g=1", "c8 g=1", "c9 g=1",
			"c10 g=1"},
			"0/0=1 1/0=1 10/0=1 2/0=1 3/0=1 4/0=1 5/0=1 6/0=1 7/0=1 8/0=1 9/0=1",
			"c0>0/0 c1>1/0 c2>2/0 c3>3/0 c4>4/0 c5>5/0 c6>6/0 c7>7/0 c8>8/0 c9>9/0 c10>10/0"},
	} {
		short := func(name string) string {
			var i, k int
			if _, err := fmt.Sscanf(name, "container-%d-request-%d", &i, &k); err != nil {
				t.Errorf("request %q: %v", name, err)
			}
			return fmt.Sprintf("%d/%d", i, k)
		}
		claim, mapped := special(asking("p", c.containers...).Pod,
			[]ask{{"example.com/gpu", "gpu"}, {"example.com/hpu", "hpu"}})
		var requests, mappings []string
		for _, r := range claim.Spec.Devices.Requests {
			requests = append(requests, fmt.Sprintf("%s=%d", short(r.Name), r.Exactly.Count))
		}
		for _, m := range mapped {
			mappings = append(mappings, m.ContainerName+">"+short(m.RequestName))
		}
		if got := strings.Join(requests, " "); got != c.requests {
			t.Errorf("%q: requests %s, want %s", c.containers, got, c.requests)
		}
		if got := strings.Join(mappings, " "); got != c.mappings {
			t.Errorf("%q: mappings %s, want %s", c.containers, got, c.mappings)
		}
	}
}

// server is an API server with the claims that are made, deleted and told of.
type server struct {
	fake
	claims map[string]*resourcev1.ResourceClaim
	told   *corev1.PodExtendedResourceClaimStatus
	refuse error
	count  int
}

func (s *server) put(c *resourcev1.ResourceClaim, what string) (*resourcev1.ResourceClaim, error) {
	if s.claims[c.Name] == nil {
		return nil, apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), c.Name)
	}
	s.fake.claim = s.claims[c.Name]
	got, err := s.fake.write(c, what)
	if err == nil {
		s.claims[c.Name] = got
	}
	return got, err
}

func (s *server) UpdateClaim(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return s.put(c, "claim")
}

func (s *server) UpdateClaimStatus(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return s.put(c, "status")
}

func (s *server) CreateClaim(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	s.count++
	out := c.DeepCopy()
	out.Name = fmt.Sprint(c.GenerateName, s.count)
	out.UID, out.ResourceVersion = types.UID(out.Name), "1"
	s.claims[out.Name] = out
	s.writes = append(s.writes, "create")
	return out, nil
}

func (s *server) DeleteClaim(_ context.Context, c *resourcev1.ResourceClaim) error {
	if s.claims[c.Name] == nil {
		return apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), c.Name)
	}
	delete(s.claims, c.Name)
	s.writes = append(s.writes, "delete")
	return nil
}

func (s *server) TellExtendedClaim(_ context.Context, _ *corev1.Pod, st *corev1.PodExtendedResourceClaimStatus) error {
	s.told = st
	return s.refuse
}

func gpu() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: ptr.To("example.com/gpu")}}
}

func newServer() (*server, *Devices) {
	s := &server{claims: map[string]*resourcev1.ResourceClaim{}}
	d := New(s, time.Now)
	d.ClassChanged(nil, gpu())
	d.SliceChanged(nil, slice("s", "n", "d0", "d1"))
	return s, d
}

// TestExtendedIsBound: devices taken for extended resources are taken at once, and the claim is made, allocated and
// told of.
func TestExtendedIsBound(t *testing.T) {
	t.Parallel()
	s, d := newServer()
	p, q := asking("p", "c0 g=1"), asking("q", "c0 g=2")
	choice, st := d.Reserve(p, node("n"), time.Second)
	if !st.IsSuccess() {
		t.Fatal(st.AsError())
	}
	if _, st := d.Reserve(q, node("n"), time.Second); st.Message() != reasonCannot {
		t.Errorf("two devices where one is left: %+v", st)
	}
	if err := d.Bind(t.Context(), p.Pod, choice); err != nil {
		t.Fatal(err)
	}
	c := s.claims["p-extended-resources-1"]
	if !slices.Equal(s.writes, []string{"create", "status"}) || c == nil ||
		c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" ||
		!slices.Contains(c.Finalizers, resourcev1.Finalizer) ||
		!metav1.IsControlledBy(c, p.Pod) || len(c.Status.ReservedFor) != 1 || c.Status.Allocation == nil ||
		c.Status.Allocation.AllocationTimestamp == nil {
		t.Errorf("writes %q, claim %+v", s.writes, c)
	}
	if s.told == nil || s.told.ResourceClaimName != c.Name || len(s.told.RequestMappings) != 1 ||
		s.told.RequestMappings[0] !=
			(corev1.ContainerExtendedResourceRequest{ContainerName: "c0", ResourceName: "example.com/gpu",
				RequestName: "container-0-request-0"}) {
		t.Errorf("the pod's status %+v", s.told)
	}
	d.ClaimChanged(nil, c) // the watch shows it
	if _, st := d.Reserve(q, node("n"), time.Second); st.Message() != reasonCannot {
		t.Errorf("after the claim is made: %+v", st)
	}
	if nodes, _ := d.ClaimChanged(c, nil); !slices.Equal(nodes, []string{"n"}) ||
		len(d.taken)+len(d.made)+len(d.claims) != 0 {
		t.Errorf("gone: nodes %q, %v %v %v left", nodes, d.taken, d.made, d.claims)
	}
	if _, st := d.Reserve(q, node("n"), time.Second); !st.IsSuccess() {
		t.Error(st.AsError())
	}
}

// TestExtendedIsNotBound: what was taken for a pod that is not bound is given back, before and after its claim is made.
func TestExtendedIsNotBound(t *testing.T) {
	t.Parallel()
	s, d := newServer()
	p, q := asking("p", "c0 g=2"), asking("q", "c0 g=2")
	reserve := func(p *model.PodInfo) *Choice {
		t.Helper()
		choice, st := d.Reserve(p, node("n"), time.Second)
		if !st.IsSuccess() {
			t.Fatal(st.AsError())
		}
		return choice
	}
	undo := func(p *model.PodInfo, choice *Choice) {
		t.Helper()
		d.Release(choice)
		if err := d.Unreserve(t.Context(), p.Pod, choice); err != nil {
			t.Fatal(err)
		}
	}
	undo(p, reserve(p))
	choice := reserve(q)
	s.refuse = apierrors.NewForbidden(corev1.Resource("pods"), "q", nil)
	if err := d.Bind(t.Context(), q.Pod, choice); err == nil {
		t.Fatal("bound though the pod's status was refused")
	}
	seen := s.claims["q-extended-resources-1"]
	undo(q, choice)
	if len(s.claims) != 0 {
		t.Errorf("left: %v", s.claims)
	}
	d.ClaimChanged(seen, nil)
	reserve(p)
}

// TestLeftoverIsRemoved: a claim that a scheduler which died has left holds no device from its own pod.
func TestLeftoverIsRemoved(t *testing.T) {
	t.Parallel()
	s, d := newServer()
	p := asking("p", "c0 g=2")
	choice, _ := d.Reserve(p, node("n"), time.Second)
	if err := d.Bind(t.Context(), p.Pod, choice); err != nil {
		t.Fatal(err)
	}
	// The next scheduler sees the claim, and the pod without a node.
	next := New(s, time.Now)
	next.ClassChanged(nil, gpu())
	next.SliceChanged(nil, slice("s", "n", "d0", "d1"))
	old := s.claims["p-extended-resources-1"]
	next.ClaimChanged(nil, old)
	if _, st := next.Reserve(p, node("n"), time.Second); st.Message() != reasonCannot {
		t.Errorf("while it is there: %+v", st)
	}
	needs, st := next.Needs(p)
	if !st.IsSuccess() {
		t.Fatal(st.AsError())
	}
	if done, err := next.Deallocate(t.Context(), p.Pod, needs); !done || err != nil || len(s.claims) != 0 {
		t.Fatalf("%v %v, left %v", done, err, s.claims)
	}
	next.ClaimChanged(old, nil)
	if again, err := next.Reserve(p, node("n"), time.Second); !err.IsSuccess() ||
		next.Bind(t.Context(), p.Pod, again) != nil {
		t.Errorf("%+v", err)
	}
}

// TestWhoGivesAResource: devices give it only on nodes that have none themselves, by the newest class of that name.
func TestWhoGivesAResource(t *testing.T) {
	t.Parallel()
	_, d := newServer()
	p := asking("p", "c0 g=1")
	on := func(n *corev1.Node) int {
		t.Helper()
		needs, st := d.Needs(p)
		if !st.IsSuccess() {
			t.Fatal(st.AsError())
		}
		got, st := needs.On(n, time.Second)
		if !st.IsSuccess() {
			t.Fatal(st.AsError())
		}
		return len(got)
	}
	plug, none := node("n"), node("n")
	plug.Status.Allocatable = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	none.Status.Allocatable = corev1.ResourceList{"example.com/gpu": resource.MustParse("0")}
	if on(plug) != 0 || on(none) != 1 || on(node("n")) != 1 {
		t.Errorf("claims on a node with a device plug-in %d, with a plug-in without devices %d, without %d", on(plug),
			on(none), on(node("n")))
	}
	key := model.KeyOf(d.Key)
	before := key(p)
	if other := key(asking("q", "c0 g=2")); other == before {
		t.Error("pods that ask for more look alike")
	}
	newer := gpu()
	newer.Name, newer.CreationTimestamp = "newer", metav1.Unix(9, 0)
	class := func() string {
		d.mu.Lock()
		defer d.mu.Unlock()
		if asks := d.classes.asks(p); len(asks) == 1 {
			return asks[0].class
		}
		return ""
	}
	d.ClassChanged(nil, newer)
	if class() != "newer" || key(p) == before {
		t.Errorf("class %q beside a newer one", class())
	}
	d.ClassChanged(newer, nil)
	if class() != "gpu" || !d.GivenByClass("example.com/gpu") ||
		!d.GivenByClass("deviceclass.resource.kubernetes.io/gpu") {
		t.Errorf("class %q when the newer one is gone", class())
	}
	renamed := gpu()
	renamed.Spec.ExtendedResourceName = nil
	d.ClassChanged(gpu(), renamed)
	if class() != "" || d.GivenByClass("example.com/gpu") || !d.GivenByClass("deviceclass.resource.kubernetes.io/gpu") {
		t.Errorf("class %q of a resource that it names no more", class())
	}
}
