package decide

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins/dynamicresources"
	"bonsai/pkg/scheduler/profile"
)

// gear are the devices and claims on them of a history, as an API server has them.
type gear struct {
	known   *devices.Devices
	h       *history
	claims  map[string]*resourcev1.ResourceClaim
	slices  map[string]*resourcev1.ResourceSlice
	version int
}

func (g *gear) next() string { g.version++; return strconv.Itoa(g.version) }

// Drivers: "gpu" has devices on nodes, "net" has some that all nodes of a zone reach, "part" has devices of which parts
// are given away.
func (h *history) addGear() {
	h.gear = gear{h: h, claims: map[string]*resourcev1.ResourceClaim{}, slices: map[string]*resourcev1.ResourceSlice{}}
	h.gear.known = devices.New(&h.gear, time.Now)
	for _, name := range []string{"gpu", "net", "part"} {
		h.gear.class(name, "example.com/"+name)
	}
	h.gear.slice("net", "", 2)
}

// class makes, or replaces, the class of a driver's devices; they give an extended resource, "" for none but that of
// the class's name.
func (g *gear) class(name, gives string) {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + name + `.example.com"`}}}}}
	if gives != "" {
		c.Spec.ExtendedResourceName = &gives
	}
	g.known.ClassChanged(nil, c)
}

// slice makes, or replaces, what a driver has on a node, or in zone z1 for "".
func (g *gear) slice(driver, node string, count int) {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver + "-" + node}}
	s.Spec.Driver, s.Spec.Pool = driver+".example.com",
		resourcev1.ResourcePool{Name: "pool-" + node, Generation: 1, ResourceSliceCount: 1}
	if node != "" {
		s.Spec.NodeName = &node
	} else {
		s.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "topology.kubernetes.io/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"z1"}}}}}}
	}
	for i := range count {
		d := resourcev1.Device{Name: fmt.Sprint("d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"model": {StringValue: new(g.h.one("a", "b"))}}}
		if driver == "part" {
			d.AllowMultipleAllocations = new(true)
			d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: resource.MustParse("4Gi")}}
		}
		if g.h.chance(10) {
			d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	g.touch(g.known.SliceChanged(g.slices[s.Name], s))
	g.slices[s.Name] = s
}

func (g *gear) touch(nodes []string) {
	for _, n := range nodes {
		g.h.cache.Touch(n)
	}
}

// see tells the scheduler of a claim as the API server has it now.
func (g *gear) see(old, c *resourcev1.ResourceClaim) {
	nodes, _ := g.known.ClaimChanged(old, c)
	g.touch(nodes)
}

// claim makes a claim, or names one that is there, or none.
func (g *gear) claim(namespace string) string {
	h := g.h
	if h.chance(15) {
		for _, c := range g.claims {
			if c.Namespace == namespace {
				return c.Name
			}
		}
	}
	h.next++
	name := fmt.Sprint("rc", h.next)
	if h.chance(3) {
		return name
	}
	c := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name),
			ResourceVersion: g.next()}}
	exact := &resourcev1.ExactDeviceRequest{DeviceClassName: h.one("gpu", "gpu", "net", "part", "gone"),
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	switch {
	case exact.DeviceClassName == "part":
		exact.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(h.one("1Gi", "3Gi"))}}
	case h.chance(30):
		exact.Count = 2
	case h.chance(10):
		exact.AllocationMode, exact.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if h.chance(40) && exact.DeviceClassName != "gone" {
		exact.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: `device.attributes["` + exact.DeviceClassName + `.example.com"].model == "` + h.one("a", "b") +
				`"`}}}
	}
	if h.chance(20) {
		exact.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: exact}}
	if h.chance(30) {
		c.Spec.Devices.Requests[0] = alternatives(exact, h.one("gpu", "net"), h.one("gpu", "net"))
	}
	g.claims[namespace+"/"+name] = c
	g.see(nil, c)
	return name
}

// alternatives asks for what exact asks for, or else for a device of one of the classes, the first rather than the
// second.
func alternatives(exact *resourcev1.ExactDeviceRequest, classes ...string) resourcev1.DeviceRequest {
	r := resourcev1.DeviceRequest{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "best",
		DeviceClassName: exact.DeviceClassName, Selectors: exact.Selectors, AllocationMode: exact.AllocationMode,
		Count: exact.Count, Tolerations: exact.Tolerations, Capacity: exact.Capacity}}}
	for i, class := range classes {
		r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprint("else", i),
			DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1})
	}
	return r
}

// step changes something that claims depend on.
func (g *gear) step() {
	h := g.h
	switch h.r.IntN(9) {
	case 0, 1, 2:
		g.slice(h.one("gpu", "part"), h.one(h.nodes...), 1+h.r.IntN(3))
	case 3:
		for name, s := range g.slices {
			if h.chance(20) {
				g.touch(g.known.SliceChanged(s, nil))
				delete(g.slices, name)
			}
		}
	case 4:
		g.slice("net", "", 1+h.r.IntN(3))
	case 5, 6: // pods end, and their claims are given back
		for key, c := range g.claims {
			if c.Status.Allocation != nil && h.chance(30) {
				out := c.DeepCopy()
				out.Status, out.ResourceVersion = resourcev1.ResourceClaimStatus{}, g.next()
				g.claims[key] = out
				g.see(c, out)
			}
		}
	case 8:
		g.class("gpu", h.one("example.com/gpu", "example.com/gpu", ""))
	case 7:
		for key, c := range g.claims {
			if h.chance(5) {
				delete(g.claims, key)
				g.see(c, nil)
			}
		}
	}
}

// UpdateClaim implements devices.API.
func (g *gear) UpdateClaim(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return g.write(c, func(out *resourcev1.ResourceClaim) { out.Finalizers = c.Finalizers })
}

// UpdateClaimStatus implements devices.API.
func (g *gear) UpdateClaimStatus(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return g.write(c, func(out *resourcev1.ResourceClaim) { out.Status = *c.Status.DeepCopy() })
}

// CreateClaim implements devices.API.
func (g *gear) CreateClaim(_ context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	if g.h.chance(5) {
		return nil, apierrors.NewInternalError(errors.New("broken"))
	}
	g.h.next++
	out := c.DeepCopy()
	out.Name = fmt.Sprint(c.GenerateName, g.h.next)
	out.UID, out.ResourceVersion = types.UID(out.Name), g.next()
	g.claims[out.Namespace+"/"+out.Name] = out
	if g.h.chance(50) {
		g.see(nil, out)
	}
	return out, nil
}

// DeleteClaim implements devices.API.
func (g *gear) DeleteClaim(_ context.Context, c *resourcev1.ResourceClaim) error {
	key := c.Namespace + "/" + c.Name
	now := g.claims[key]
	if now == nil {
		return apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), c.Name)
	}
	delete(g.claims, key)
	g.see(now, nil)
	return nil
}

// TellExtendedClaim implements devices.API.
func (g *gear) TellExtendedClaim(context.Context, *corev1.Pod, *corev1.PodExtendedResourceClaimStatus) error {
	if g.h.chance(10) {
		return apierrors.NewInternalError(errors.New("broken"))
	}
	return nil
}

// GetClaim implements devices.API.
func (g *gear) GetClaim(_ context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	if c := g.claims[namespace+"/"+name]; c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(resourcev1.Resource("resourceclaims"), name)
}

// write fails now and then, and the watch may be faster than the answer.
func (g *gear) write(c *resourcev1.ResourceClaim, change func(*resourcev1.ResourceClaim)) (*resourcev1.ResourceClaim,
	error) {
	key := c.Namespace + "/" + c.Name
	now := g.claims[key]
	if now == nil || now.ResourceVersion != c.ResourceVersion || g.h.chance(10) {
		return nil, apierrors.NewConflict(resourcev1.Resource("resourceclaims"), c.Name, nil)
	}
	if g.h.chance(5) {
		return nil, apierrors.NewInternalError(errors.New("broken"))
	}
	out := now.DeepCopy()
	change(out)
	out.ResourceVersion = g.next()
	g.claims[key] = out
	if g.h.chance(50) {
		g.see(now, out)
	}
	return out, nil
}

// take does with what was reserved for a pod what the binding would do: write it, or give it back.
func (g *gear) take(p *profile.Profile, state *framework.CycleState, pod *model.PodInfo, node string) error {
	if len(pod.Pod.Spec.ResourceClaims) == 0 && !devices.MayAsk(pod) {
		return nil
	}
	for _, pl := range p.PreBinds {
		if pl.Name() != dynamicresources.Name {
			continue
		}
		if st := pl.PreBind(context.Background(), state, pod, node); !st.IsSuccess() {
			p.RunUnreserve(context.Background(), state, pod, node)
			g.h.cache.Touch(node) // as forgetting the pod does
		}
	}
	return g.check()
}

// check says what two claims have been given that only one can have.
func (g *gear) check() error {
	owner := map[string]string{}
	used := map[string]resource.Quantity{}
	for key := range g.claims {
		namespace, name, _ := strings.Cut(key, "/")
		c := g.known.Claim(namespace, name)
		if c == nil || c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			id := r.Driver + "/" + r.Pool + "/" + r.Device
			if r.ShareID == nil {
				if other := owner[id]; other != "" {
					return fmt.Errorf("device %s was given to %s and %s", id, other, key)
				}
				owner[id] = key
				continue
			}
			sum := used[id]
			sum.Add(r.ConsumedCapacity["memory"])
			used[id] = sum
			if limit := resource.MustParse("4Gi"); sum.Cmp(limit) > 0 {
				return fmt.Errorf("%s of device %s were given away, which has %s", sum.String(), id, limit.String())
			}
		}
	}
	return nil
}
