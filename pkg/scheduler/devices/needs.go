package devices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// Reasons why a node is refused, in upstream's words.
const (
	reasonUnavailable = "resourceclaim not available on the node"
	reasonCannot      = "cannot allocate all claims"
	reasonTimeout     = "timed out trying to allocate devices"
)

// Needs is what the claims of a pod ask of its node. It stays as it was when they were looked at.
type Needs struct {
	d *Devices
	// had are the claims that have their devices, where are the nodes on which these can be used; wanted are the
	// others, in the pod's order.
	had    []*resourcev1.ResourceClaim
	where  []*nodeaffinity.NodeSelector
	wanted []*resourcev1.ResourceClaim
	// asks are what devices are to give the pod beside its claims, on nodes that do not have it themselves.
	pod  *corev1.Pod
	asks []ask
	// left is the claim for them that a binding which failed has left, nil if there is none.
	left *resourcev1.ResourceClaim
}

// None reports whether there is nothing to choose or to look at.
func (n *Needs) None() bool { return len(n.had)+len(n.wanted)+len(n.asks) == 0 }

func refuse(format string, args ...any) *framework.Status {
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, fmt.Sprintf(format, args...))
}

// gateKey is the claim that a pod waits for, "" for one whose name its status will tell.
func gateKey(pod *corev1.Pod, pc *corev1.PodResourceClaim) string {
	if name, _, err := resourceclaim.Name(pod, pc); err == nil && name != nil {
		return claimKey(pod.Namespace, *name)
	}
	return ""
}

// eachLocked calls f with the claims of a pod; the status says why one of them cannot be used, key names that one.
func (d *Devices) eachLocked(pod *corev1.Pod, f func(c *resourcev1.ResourceClaim)) (st *framework.Status, key string) {
	for i := range pod.Spec.ResourceClaims {
		pc := &pod.Spec.ResourceClaims[i]
		name, owned, err := resourceclaim.Name(pod, pc)
		if err != nil {
			return refuse("%v", err), ""
		}
		if name == nil {
			continue // none was needed
		}
		key := claimKey(pod.Namespace, *name)
		c := d.claims[key].now()
		switch {
		case c == nil:
			return refuse("could not find ResourceClaim %q", key), key
		case c.DeletionTimestamp != nil:
			return refuse("resourceclaim %q is being deleted", c.Name), key
		}
		if owned {
			if err := resourceclaim.IsForPod(pod, c, false); err != nil {
				return refuse("%v", err), key
			}
		}
		f(c)
	}
	return nil, ""
}

// Gate returns why a pod need not be tried yet: one of its claims does not exist. ClaimChanged will return the pod when
// that claim changes.
func (d *Devices) Gate(pod *corev1.Pod) *framework.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	st, key := d.eachLocked(pod, func(*resourcev1.ResourceClaim) {})
	if key != "" {
		if d.gated[key] == nil {
			d.gated[key] = map[types.UID]bool{}
		}
		d.gated[key][pod.UID] = true
	}
	return st
}

// Needs looks at the claims of a pod. The status refuses a pod that no node can have now.
func (d *Devices) Needs(pod *model.PodInfo) (*Needs, *framework.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.needsLocked(pod)
}

func (d *Devices) needsLocked(pod *model.PodInfo) (*Needs, *framework.Status) {
	n := &Needs{d: d, pod: pod.Pod, asks: d.classes.asks(pod)}
	if key, ok := d.made[pod.Pod.UID]; ok {
		n.left = d.claims[key].seen
	}
	var bad *framework.Status
	st, _ := d.eachLocked(pod.Pod, func(c *resourcev1.ResourceClaim) {
		if bad == nil {
			bad = n.addLocked(pod.Pod, c)
		}
	})
	if st == nil {
		st = bad
	}
	if st != nil {
		return nil, st
	}
	return n, nil
}

// addLocked adds a claim, or returns why the pod cannot use it now.
func (n *Needs) addLocked(pod *corev1.Pod, c *resourcev1.ResourceClaim) *framework.Status {
	a := c.Status.Allocation
	if a == nil {
		n.wanted = append(n.wanted, c)
		return n.d.classes.check(c)
	}
	if n.d.claims[claimKey(c.Namespace, c.Name)].assumed != nil {
		return framework.NewStatus(framework.Unschedulable,
			fmt.Sprintf("resource claim %s is in the process of being allocated", claimKey(c.Namespace, c.Name)))
	}
	if !resourceclaim.IsReservedForPod(pod, c, false) &&
		len(c.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize {
		return framework.NewStatus(framework.Unschedulable, "resourceclaim in use")
	}
	n.had = append(n.had, c)
	if a.NodeSelector != nil {
		s, err := nodeaffinity.NewNodeSelector(a.NodeSelector)
		if err != nil {
			return framework.AsStatus(err)
		}
		n.where = append(n.where, s)
	} else {
		n.where = append(n.where, nil)
	}
	return nil
}

// On returns what the claims without devices get on a node, in their order, and last what the claim for extended
// resources gets, if the pod needs one on this node; or why the node is refused. An error is about the claims, and
// would be the same on every node. The allocation runs without Devices.mu, on a copy of what the node can reach: it may
// take as long as timeout.
func (n *Needs) On(node *corev1.Node, timeout time.Duration) ([]resourcev1.AllocationResult, *framework.Status) {
	for _, s := range n.where {
		if s != nil && !s.Match(node) {
			return nil, refuse(reasonUnavailable)
		}
	}
	wanted := slices.Clone(n.wanted)
	if asks := askedOn(node, n.asks); len(asks) > 0 {
		c, _ := special(n.pod, asks)
		wanted = append(wanted, c)
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	d := n.d
	d.mu.Lock()
	all, state := d.pools.reach(node.Name)
	classes := lister(maps.Clone(d.classes.byName))
	d.mu.Unlock()
	ctx := limit{end: d.now().Add(timeout), now: d.now}
	allocator, err := structured.NewAllocator(ctx, features(), state, classes, all, d.compiled())
	if err != nil {
		return nil, framework.AsStatus(err)
	}
	got, err := allocator.Allocate(ctx, node, wanted)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, refuse(reasonTimeout)
	case err != nil && errors.Is(err, structured.ErrFailedAllocationOnNode):
		return nil, refuse("%v", err)
	case err != nil:
		return nil, framework.AsStatus(err)
	case got == nil:
		return nil, refuse(reasonCannot)
	}
	return got, nil
}

// Key writes down everything that the needs of a pod, and what they get on a node, depend on besides the node and its
// own pools.
func (d *Devices) Key(pod *model.PodInfo, k *model.Key) {
	if len(pod.Pod.Spec.ResourceClaims) == 0 && !MayAsk(pod) {
		k.Num(0)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n, st := d.needsLocked(pod)
	switch {
	case st != nil:
		k.Num(1)
		k.Str(st.Message())
		return
	case n.None():
		k.Num(0)
		return
	}
	k.Num(2)
	k.Num(d.classes.epoch + d.pools.epoch)
	k.Num(int64(len(n.had)))
	for _, c := range n.had {
		k.AllocatedTo(c)
	}
	k.Num(int64(len(n.wanted)))
	for _, c := range n.wanted {
		k.DeviceRequests(c)
	}
	askKey(pod.Pod, n.asks, k)
}
