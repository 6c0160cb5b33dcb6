package devices

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// fake is an API server with one claim. before is called before each write.
type fake struct {
	claim  *resourcev1.ResourceClaim
	writes []string
	before func()
}

func (f *fake) write(c *resourcev1.ResourceClaim, what string) (*resourcev1.ResourceClaim, error) {
	if f.before != nil {
		before := f.before
		f.before = nil
		before()
	}
	if f.claim.ResourceVersion != c.ResourceVersion {
		f.writes = append(f.writes, "conflict")
		return nil, apierrors.NewConflict(resourcev1.Resource("resourceclaims"), c.Name, nil)
	}
	f.writes = append(f.writes, what)
	f.claim = c.DeepCopy()
	f.claim.ResourceVersion += "0"
	return f.claim, nil
}

func (f *fake) UpdateClaim(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return f.write(c, "claim")
}

func (f *fake) UpdateClaimStatus(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return f.write(c, "status")
}

func (f *fake) CreateClaim(context.Context, *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return nil, errors.ErrUnsupported
}

func (f *fake) DeleteClaim(context.Context, *resourcev1.ResourceClaim) error {
	return errors.ErrUnsupported
}

func (f *fake) TellExtendedClaim(context.Context, *corev1.Pod, *corev1.PodExtendedResourceClaimStatus) error {
	return errors.ErrUnsupported
}

func (f *fake) GetClaim(context.Context, string, string) (*resourcev1.ResourceClaim, error) {
	return f.claim, nil
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func claim(name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1"}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{
		{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu",
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	return c
}

func pod(name, claim string) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim}}
	return model.NewPodInfo(p)
}

func slice(name, node string, devices ...string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "d",
		Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1}}
	if node != "" {
		s.Spec.NodeName = &node
	} else {
		s.Spec.AllNodes = ptr.To(true)
	}
	for _, d := range devices {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: d})
	}
	return s
}

// start returns a store with one node's slice of one device, a class, and the claims.
func start(t *testing.T, api API, claims ...*resourcev1.ResourceClaim) *Devices {
	t.Helper()
	d := New(api, time.Now)
	d.ClassChanged(nil, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	d.SliceChanged(nil, slice("s", "n", "d0"))
	for _, c := range claims {
		d.ClaimChanged(nil, c)
	}
	return d
}

// TestReserveAndBind: what one pod reserved no other gets, also before it is written; when it is written, first the
// finalizer and then the devices, another writer in between is no harm.
func TestReserveAndBind(t *testing.T) {
	t.Parallel()
	a, b := claim("a"), claim("b")
	api := &fake{claim: a}
	d := start(t, api, a, b)
	choice, st := d.Reserve(pod("p", "a"), node("n"), time.Second)
	if !st.IsSuccess() {
		t.Fatal(st.AsError())
	}
	if _, st := d.Reserve(pod("q", "b"), node("n"), time.Second); st.Message() != reasonCannot ||
		st.Code != framework.UnschedulableAndUnresolvable {
		t.Errorf("a taken device: %+v", st)
	}
	if _, st := d.Reserve(pod("q", "a"), node("n"),
		time.Second); st.Message() != "resource claim ns/a is in the process of being allocated" {
		t.Errorf("a claim under way: %+v", st)
	}
	api.before = func() { // somebody labels the claim
		api.claim = api.claim.DeepCopy()
		api.claim.Labels, api.claim.ResourceVersion = map[string]string{"x": "y"}, "2"
		d.ClaimChanged(a, api.claim)
	}
	if err := d.Bind(t.Context(), pod("p", "a").Pod, choice); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(api.writes, []string{"conflict", "claim", "status"}) {
		t.Errorf("%q", api.writes)
	}
	got := api.claim
	if got.Labels["x"] != "y" || !slices.Contains(got.Finalizers, resourcev1.Finalizer) ||
		len(got.Status.ReservedFor) != 1 || got.Status.ReservedFor[0].UID != "p" ||
		got.Status.Allocation == nil || got.Status.Allocation.Devices.Results[0].Device != "d0" ||
		got.Status.Allocation.AllocationTimestamp == nil {
		t.Errorf("%+v", got)
	}
	// A second pod shares the claim, on that node only.
	if _, st := d.Reserve(pod("q", "a"), node("other"), time.Second); st.Message() != reasonUnavailable {
		t.Errorf("%+v", st)
	}
	shared, st := d.Reserve(pod("q", "a"), node("n"), time.Second)
	if !st.IsSuccess() {
		t.Fatal(st.AsError())
	}
	if err := d.Bind(t.Context(), pod("q", "a").Pod, shared); err != nil || len(api.claim.Status.ReservedFor) != 2 {
		t.Errorf("%v %+v", err, api.claim.Status)
	}
	// It is not bound after all.
	if err := d.Unreserve(t.Context(), pod("q", "a").Pod, shared); err != nil ||
		len(api.claim.Status.ReservedFor) != 1 || api.claim.Status.ReservedFor[0].UID != "p" {
		t.Errorf("%v %+v", err, api.claim.Status)
	}
	// The claim is given back: its device is free, which concerns its node.
	free := api.claim.DeepCopy()
	free.Status, free.ResourceVersion = resourcev1.ResourceClaimStatus{}, free.ResourceVersion+"0"
	if nodes, _ := d.ClaimChanged(api.claim, free); !slices.Equal(nodes, []string{"n"}) {
		t.Errorf("%q", nodes)
	}
	if _, st := d.Reserve(pod("q", "b"), node("n"), time.Second); !st.IsSuccess() {
		t.Error(st.AsError())
	}
}

// TestRelease: what was taken and not written is free again.
func TestRelease(t *testing.T) {
	t.Parallel()
	d := start(t, nil, claim("a"), claim("b"))
	choice, st := d.Reserve(pod("p", "a"), node("n"), time.Second)
	if !st.IsSuccess() {
		t.Fatal(st.AsError())
	}
	d.Release(choice)
	d.Release(choice)
	if _, st := d.Reserve(pod("q", "b"), node("n"), time.Second); !st.IsSuccess() {
		t.Error(st.AsError())
	}
}

// TestLostClaim: nothing is written over another allocation, or to another claim of that name.
func TestLostClaim(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*resourcev1.ResourceClaim){
		"claim ns/a was deleted in the meantime": func(c *resourcev1.ResourceClaim) { c.UID = "other" },
		"claim ns/a got deleted in the meantime": func(c *resourcev1.ResourceClaim) {
			c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		},
		"claim ns/a got allocated elsewhere in the meantime": func(c *resourcev1.ResourceClaim) {
			c.Status.Allocation = &resourcev1.AllocationResult{}
		},
	} {
		api := &fake{claim: claim("a")}
		d := start(t, api, api.claim)
		choice, st := d.Reserve(pod("p", "a"), node("n"), time.Second)
		if !st.IsSuccess() {
			t.Fatal(st.AsError())
		}
		api.before = func() {
			api.claim = api.claim.DeepCopy()
			api.claim.ResourceVersion = "2"
			change(api.claim)
		}
		if err := d.Bind(t.Context(), pod("p", "a").Pod, choice); err == nil || !strings.HasSuffix(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
		if slices.Contains(api.writes, "status") {
			t.Errorf("%s: %q", name, api.writes)
		}
	}
}

// TestRefusals are those of kube-scheduler v1.36.3, word for word.
func TestRefusals(t *testing.T) {
	t.Parallel()
	going, lost := claim("going"), claim("lost")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	lost.Spec.Devices.Requests[0].Exactly.DeviceClassName = "absent"
	either := claim("either")
	either.Spec.Devices.Requests = []resourcev1.DeviceRequest{
		{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "x", DeviceClassName: "absent"}}}}
	bad := claim("bad")
	bad.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["d"].nosuch == "x"`}}}
	d := start(t, nil, going, lost, either, bad)
	late := pod("p", "")
	late.Pod.Spec.ResourceClaims[0] = corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: ptr.To("t")}
	theirs := pod("p", "")
	theirs.Pod.Spec.ResourceClaims[0] = late.Pod.Spec.ResourceClaims[0]
	theirs.Pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
		{Name: "c", ResourceClaimName: ptr.To("lost")}}
	for _, c := range []struct {
		pod  *model.PodInfo
		code framework.Code
		want string
	}{
		{pod("p", "missing"), framework.UnschedulableAndUnresolvable, `could not find ResourceClaim "ns/missing"`},
		{pod("p", "going"), framework.UnschedulableAndUnresolvable, `resourceclaim "going" is being deleted`},
		{late, framework.UnschedulableAndUnresolvable, `pod "ns/p": ResourceClaim not created yet`},
		{theirs, framework.UnschedulableAndUnresolvable,
			"ResourceClaim ns/lost was not created for Pod ns/p (Pod is not owner)"},
		{pod("p", "lost"), framework.UnschedulableAndUnresolvable, "request r: device class absent does not exist"},
		{pod("p", "either"), framework.UnschedulableAndUnresolvable, "request r/x: device class absent does not exist"},
		{pod("p", "bad"), framework.Error, "claim ns/bad: selector #0 on device d/s/d0: CEL runtime error: " +
			"no such key: nosuch. consider using CEL optional chaining (.? followed by orValue()) or guarding the check " +
			"with has() for optional fields"},
	} {
		n, st := d.Needs(c.pod)
		if st == nil {
			_, st = n.On(node("n"), time.Second)
		}
		if st == nil || st.Code != c.code || st.Message() != c.want {
			t.Errorf("%+v, want %q", st, c.want)
		}
	}
	// A choice that takes too long refuses the node.
	n, _ := start(t, nil, claim("a")).Needs(pod("p", "a"))
	if _, st := n.On(node("n"), -time.Second); st.Message() != reasonTimeout {
		t.Errorf("%+v", st)
	}
}

// TestGate: a pod that waits for a claim is named when the claim comes, and forgotten when it goes itself.
func TestGate(t *testing.T) {
	t.Parallel()
	d := start(t, nil)
	p, q := pod("p", "a"), pod("q", "a")
	if d.Gate(p.Pod).IsSuccess() || d.Gate(q.Pod).IsSuccess() {
		t.Error("pods without their claim are let through")
	}
	d.Gone(q.Pod)
	a := claim("a")
	if _, pods := d.ClaimChanged(nil, a); !slices.Equal(pods, []types.UID{"p"}) {
		t.Errorf("%q", pods)
	}
	if st := d.Gate(p.Pod); !st.IsSuccess() || len(d.gated) > 0 {
		t.Errorf("%+v, %v", st, d.gated)
	}
}

// TestDeallocate: a claim that somebody else uses keeps its devices. That those of others are free again concerns their
// node, which is told with the change that the watch shows.
func TestDeallocate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		users []types.UID
		want  bool
	}{"idle": {nil, true}, "reserved for the pod": {[]types.UID{"p"}, true}, "shared": {[]types.UID{"p", "q"}, false},
		"of another": {[]types.UID{"q"}, false}} {
		a := claim("a")
		a.Status.Allocation = &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "d", Pool: "s", Device: "d0"}}}}
		for _, u := range c.users {
			a.Status.ReservedFor = append(a.Status.ReservedFor,
				resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: string(u), UID: u})
		}
		api := &fake{claim: a}
		d := start(t, api, a)
		n, st := d.Needs(pod("p", "a"))
		if !st.IsSuccess() {
			t.Fatal(st.AsError())
		}
		if got, err := d.Deallocate(t.Context(), pod("p", "a").Pod, n); err != nil || got != c.want ||
			(api.claim.Status.Allocation == nil) != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if nodes, _ := d.ClaimChanged(a, api.claim); slices.Contains(nodes, "n") != c.want {
			t.Errorf("%s: other devices are free on %q", name, nodes)
		}
	}
}

// TestPoolsMove: a pool is one node's only while all its slices say so.
func TestPoolsMove(t *testing.T) {
	t.Parallel()
	d := New(nil, time.Now)
	one, two := slice("one", "n", "d0"), slice("two", "n", "d1")
	one.Spec.Pool, two.Spec.Pool = resourcev1.ResourcePool{Name: "p"}, resourcev1.ResourcePool{Name: "p"}
	if nodes := d.SliceChanged(nil, one); !slices.Equal(nodes, []string{"n"}) || len(d.pools.local["n"]) != 1 ||
		len(d.pools.shared) != 0 {
		t.Errorf("%q %v %v", nodes, d.pools.local, d.pools.shared)
	}
	everywhere := two.DeepCopy()
	everywhere.Spec.NodeName, everywhere.Spec.AllNodes = nil, ptr.To(true)
	epoch := d.pools.epoch
	if nodes := d.SliceChanged(nil, everywhere); !slices.Equal(nodes, []string{"n"}) || len(d.pools.local) != 0 ||
		len(d.pools.shared) != 1 || d.pools.epoch == epoch {
		t.Errorf("%q %v %v", nodes, d.pools.local, d.pools.shared)
	}
	if nodes := d.SliceChanged(everywhere, two); !slices.Equal(nodes, []string{"n"}) || len(d.pools.local["n"]) != 1 ||
		len(d.pools.shared) != 0 {
		t.Errorf("%q %v %v", nodes, d.pools.local, d.pools.shared)
	}
	d.SliceChanged(one, nil)
	d.SliceChanged(two, nil)
	if len(d.pools.byID)+len(d.pools.local)+len(d.pools.shared) > 0 {
		t.Errorf("%v %v %v", d.pools.byID, d.pools.local, d.pools.shared)
	}
}
