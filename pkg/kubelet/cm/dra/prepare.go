package dra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/runtime"
)

var (
	_ cm.Provider          = (*Manager)(nil)
	_ cm.Preparer          = (*Manager)(nil)
	_ cm.ContainerProvider = (*Manager)(nil)
)

// FailedReason implements cm.Preparer.
func (m *Manager) FailedReason() string { return "FailedPrepareDynamicResources" }

// Prepare implements cm.Preparer: it has the drivers prepare the pod's claims.
//
// A pod's worker calls it before the sandbox, and again after a restart of the kubelet: drivers must answer the same
// again.
func (m *Manager) Prepare(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.Spec.ResourceClaims) == 0 && pod.Status.ExtendedResourceClaimStatus == nil {
		return nil
	}
	begun := m.cfg.Now()
	err := m.prepare(ctx, pod)
	m.cfg.Metrics.DRAOperation("PrepareResources", m.cfg.Now().Sub(begun), err)
	if err != nil {
		return fmt.Errorf("Failed to prepare dynamic resources: %w", err)
	}
	return nil
}

// prepare has five steps: read the claims; note who uses them; take their turns; ask each driver for its claims at
// once; note the answers. Any may fail, and the next round begins again.
func (m *Manager) prepare(ctx context.Context, pod *corev1.Pod) error {
	asked, err := m.ask(ctx, pod)
	if err != nil {
		return err
	}
	m.mu.Lock()
	if err := m.missing(asked); err != nil {
		m.mu.Unlock()
		return err
	}
	claims := make([]*claim, len(asked))
	for i, c := range asked {
		claims[i] = m.claim(c)
		claims[i].pods[pod.UID] = true
		for name := range driversOf(c) {
			if claims[i].devices[name] == nil {
				claims[i].devices[name] = []device{}
			}
		}
	}
	// Before drivers are asked: what they do is undone also after a crash.
	err = m.save()
	m.mu.Unlock()
	if err != nil {
		return err
	}
	// From here until unlock nobody else prepares or unprepares these claims.
	unlock, err := lock(ctx, claims)
	if err != nil {
		return err
	}
	defer unlock()
	todo := map[string][]*claim{}
	for i, c := range claims {
		m.mu.Lock()
		if !c.prepared {
			for name := range driversOf(asked[i]) {
				todo[name] = append(todo[name], c)
			}
		}
		m.mu.Unlock()
	}
	var errs []error
	for _, name := range sortedKeys(todo) {
		errs = append(errs, m.prepareWith(ctx, name, todo[name]))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range claims {
		c.prepared = true
	}
	m.count()
	return m.save()
}

// missing tells which driver of the claims is not there and was never asked for them. Nothing is noted of them then: a
// driver that never comes would have to undo what it was never asked for, and the pod could not end; m is locked.
func (m *Manager) missing(claims []*resourcev1.ResourceClaim) error {
	for _, c := range claims {
		for name := range driversOf(c) {
			if e := m.claims[c.UID]; len(m.drivers[name]) == 0 && (e == nil || e.devices[name] == nil) {
				return unregistered(name)
			}
		}
	}
	return nil
}

// ask reads the pod's claims; each must be allocated, and reserved for the pod.
//
// Both conditions protect other pods' devices: the scheduler reserves a claim for a pod, and a kubelet that only
// trusted the pod's spec would let any pod of the namespace use it.
func (m *Manager) ask(ctx context.Context, pod *corev1.Pod) ([]*resourcev1.ResourceClaim, error) {
	var out []*resourcev1.ResourceClaim
	get := func(name string, owned bool) error {
		c, err := m.cfg.Client.ResourceClaim(ctx, pod.Namespace, name)
		if err != nil {
			return fmt.Errorf("fetch ResourceClaim %s: %w", name, err)
		}
		if owned {
			if err := resourceclaim.IsForPod(pod, c, false); err != nil {
				return err
			}
		}
		switch {
		case c.Status.Allocation == nil:
			return fmt.Errorf("resource claim %s is not allocated", name)
		case !resourceclaim.IsReservedForPod(pod, c, false):
			return fmt.Errorf("pod %s (%s) is not allowed to use resource claim %s (%s)", pod.Name, pod.UID, c.Name,
				c.UID)
		}
		out = append(out, c)
		return nil
	}
	for i := range pod.Spec.ResourceClaims {
		name, owned, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err == nil && name != nil { // a template may say that none is needed
			err = get(*name, owned)
		}
		if err != nil {
			return nil, err
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		if err := get(s.ResourceClaimName, true); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// driversOf are the drivers whose devices are allocated for a claim.
func driversOf(c *resourcev1.ResourceClaim) map[string]bool {
	out := map[string]bool{}
	for i := range c.Status.Allocation.Devices.Results {
		out[c.Status.Allocation.Devices.Results[i].Driver] = true
	}
	return out
}

// prepareWith has a driver prepare claims, whose turns the caller has. m.mu is not held during the call. A claim that
// the driver skipped counts as failed, and the others of the same call keep their devices.
func (m *Manager) prepareWith(ctx context.Context, name string, claims []*claim) error {
	d, err := m.get(name)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !slices.ContainsFunc(claims, func(c *claim) bool { return len(c.devices[name]) == 0 }) {
			return nil // it did before the kubelet was restarted
		}
		return err
	}
	q, r := &drav1.NodePrepareResourcesRequest{Claims: named(claims)}, &drav1.NodePrepareResourcesResponse{}
	if err := m.call(ctx, d, d.prepare, q, r); err != nil {
		return fmt.Errorf("NodePrepareResources: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, c := range claims {
		switch got, told := r.Claims[string(c.uid)]; {
		case !told:
			errs = append(errs, fmt.Errorf("NodePrepareResources skipped ResourceClaim %s", c.name))
		case got.GetError() != "":
			errs = append(errs, fmt.Errorf("NodePrepareResources failed for ResourceClaim %s: %s", c.name,
				got.GetError()))
		default:
			c.devices[name] = devicesOf(got.GetDevices())
		}
	}
	return errors.Join(errs...)
}

func named(claims []*claim) (out []*drav1.Claim) {
	for _, c := range claims {
		out = append(out, &drav1.Claim{Namespace: c.namespace, Name: c.name, Uid: string(c.uid)})
	}
	return out
}

func devicesOf(list []*drav1.Device) []device {
	out := []device{}
	for _, d := range list {
		n := device{pool: d.GetPoolName(), name: d.GetDeviceName(), requests: d.GetRequestNames(),
			cdi: d.GetCdiDeviceIds()}
		if d.GetShareId() != "" {
			n.share = new(types.UID(d.GetShareId()))
		}
		out = append(out, n)
	}
	return out
}

// Unprepare implements cm.Provider: the claims that no other pod uses are unprepared.
func (m *Manager) Unprepare(ctx context.Context, uid types.UID) error {
	m.mu.Lock()
	claims := m.ofPod(uid)
	m.mu.Unlock()
	if len(claims) == 0 {
		return nil
	}
	begun := m.cfg.Now()
	err := m.unprepare(ctx, uid, claims)
	m.cfg.Metrics.DRAOperation("UnprepareResources", m.cfg.Now().Sub(begun), err)
	return err
}

// unprepare keeps a claim's entry, with the pod, until every driver has let go: the pod's end is tried again until
// then. A claim that other pods use only loses this one.
func (m *Manager) unprepare(ctx context.Context, uid types.UID, claims []*claim) error {
	unlock, err := lock(ctx, claims)
	if err != nil {
		return err
	}
	defer unlock()
	todo := map[string][]*claim{}
	var last []*claim
	m.mu.Lock()
	for _, c := range claims {
		if len(c.pods) > 1 {
			delete(c.pods, uid)
			continue
		}
		last, c.prepared = append(last, c), false
		for name := range c.devices {
			todo[name] = append(todo[name], c)
		}
	}
	m.mu.Unlock()
	var errs []error
	for _, name := range sortedKeys(todo) {
		errs = append(errs, m.unprepareWith(ctx, name, todo[name]))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range last {
		if len(c.devices) > 0 {
			continue // tried again
		}
		delete(c.pods, uid)
		if len(c.pods) == 0 { // else a pod waits for its turn, and prepares it again
			delete(m.claims, c.uid)
		}
	}
	m.count()
	return errors.Join(append(errs, m.save())...)
}

// unprepareWith has a driver unprepare claims, whose turns the caller has.
func (m *Manager) unprepareWith(ctx context.Context, name string, claims []*claim) error {
	d, err := m.get(name)
	if err != nil {
		return err
	}
	q, r := &drav1.NodeUnprepareResourcesRequest{Claims: named(claims)}, &drav1.NodeUnprepareResourcesResponse{}
	if err := m.call(ctx, d, d.unprepare, q, r); err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, c := range claims {
		switch got, told := r.Claims[string(c.uid)]; {
		case !told:
			errs = append(errs, fmt.Errorf("NodeUnprepareResources skipped ResourceClaim %s", c.name))
		case got.GetError() != "":
			errs = append(errs, fmt.Errorf("NodeUnprepareResources failed for ResourceClaim %s: %s", c.name,
				got.GetError()))
		default:
			delete(c.devices, name)
		}
	}
	return errors.Join(errs...)
}

// Prepared implements cm.Provider.
//
// The kubelet compares it with the pods that it has, and unprepares those that are gone.
func (m *Manager) Prepared() ([]types.UID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[types.UID]bool{}
	for _, c := range m.claims {
		maps.Copy(all, c.pods)
	}
	return slices.Collect(maps.Keys(all)), nil
}

// Container implements cm.ContainerProvider: a container gets the devices of the claims, or of the requests in them,
// that it names.
func (m *Manager) Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range uses(pod, c) {
		e := m.named(pod, u.claim)
		if e == nil || !e.prepared {
			return fmt.Errorf("the ResourceClaim %s of the container is not prepared", u.claim)
		}
		for _, name := range sortedKeys(e.devices) {
			for _, d := range e.devices[name] {
				if d.isFor(u.request) {
					o.CDIDevices = append(o.CDIDevices, d.cdi...)
				}
			}
		}
	}
	slices.Sort(o.CDIDevices)
	o.CDIDevices = slices.Compact(o.CDIDevices)
	return nil
}

// named is the claim of that name that a pod uses; m is locked. The pod must be one of its users: another claim of that
// name may have existed before.
func (m *Manager) named(pod *corev1.Pod, name string) *claim {
	for _, c := range m.claims {
		if c.namespace == pod.Namespace && c.name == name && c.pods[pod.UID] {
			return c
		}
	}
	return nil
}

// isFor reports whether a device is for a request of its claim, "" for all.
func (d device) isFor(request string) bool {
	return request == "" || len(d.requests) == 0 || slices.ContainsFunc(d.requests, func(r string) bool {
		return resourceclaim.BaseRequestRef(r) == request
	})
}

// use is what a container uses of a claim.
type use struct {
	// claim is the object's name, entry the name of the claim in the pod.
	claim, entry string
	// request is one of the claim's, "" for all.
	request string
}

// uses are the claims that a container names, and those that were made for extended resources it asks for.
func uses(pod *corev1.Pod, c *corev1.Container) (out []use) {
	for _, u := range c.Resources.Claims {
		for i := range pod.Spec.ResourceClaims {
			if p := &pod.Spec.ResourceClaims[i]; p.Name == u.Name {
				if name, _, err := resourceclaim.Name(pod, p); err == nil && name != nil {
					out = append(out, use{*name, u.Name, u.Request})
				}
			}
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for _, r := range s.RequestMappings {
			if r.ContainerName == c.Name {
				out = append(out, use{s.ResourceClaimName, s.ResourceClaimName, r.RequestName})
			}
		}
	}
	return out
}
