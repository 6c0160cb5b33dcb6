package volumes

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/ephemeral"

	"bonsai/api/core"
	"bonsai/api/core/volumebinding"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// Reasons why a node, or a pod, is refused.
const (
	reasonUnboundImmediate = "pod has unbound immediate PersistentVolumeClaims"
	reasonNodeConflict     = "node(s) didn't match PersistentVolume's node affinity"
	reasonBindConflict     = "node(s) didn't find available persistent volumes to bind"
	reasonNoVolume         = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	reasonNoSpace          = "node(s) did not have enough free storage"
)

// Needs is what the claims of a pod ask of its node. It stays as it was when they were looked at.
//
// It is made once for a pod and asked for every node (On), in the scheduling goroutine.
type Needs struct {
	v *Volumes
	// Bound are the volumes that claims are bound to, affinity is where they can be used; lost means that one of them
	// does not exist.
	Bound    []*corev1.PersistentVolume
	affinity []*nodeaffinity.LazyErrorNodeSelector
	lost     bool
	// unbound are the claims that wait for the node, the smallest first.
	unbound []want
}

// want is a claim that gets its volume with the node.
type want struct {
	claim *corev1.PersistentVolumeClaim
	class *storagev1.StorageClass
	// named is the volume that names the claim, nil if none does. Later the claim, whose pod stands for all of its
	// class, may have one.
	named *corev1.PersistentVolume
}

// Choice is what the claims of a pod get on a node.
//
// Reserve makes it, and it goes with the pod's cycle state until it is bound or released.
type Choice struct {
	// Static are free volumes for claims, Provision the claims that others make a volume for.
	Static    []Binding
	Provision []*corev1.PersistentVolumeClaim
	// told is the room that drivers tell of for claims in Provision, by class.
	told map[string]Room
}

// Room is what claims of a storage class ask for together, and how much room there is for them together, in bytes.
type Room struct{ Asked, Has int64 }

// Room is the room for the claims, of each class: that of the volumes that were chosen, or, if there are none, what
// drivers tell of.
func (c *Choice) Room() map[string]Room {
	if len(c.Static) == 0 {
		return c.told
	}
	out := map[string]Room{}
	for _, b := range c.Static {
		q, class := b.Volume.Spec.Capacity[corev1.ResourceStorage], core.VolumeClass(b.Volume)
		out[class] = Room{out[class].Asked + size(b.Claim), out[class].Has + q.Value()}
	}
	return out
}

// Binding is a volume that was chosen for a claim.
type Binding struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
}

// Empty reports whether there is nothing to be bound.
func (c *Choice) Empty() bool { return c == nil || len(c.Static) == 0 && len(c.Provision) == 0 }

// Unbound reports whether there are claims that get their volume with the node.
func (n *Needs) Unbound() bool { return len(n.unbound) > 0 }

// Needs looks at the claims of a pod. The status refuses a pod whose claims are not there, or wait for nothing that a
// node could give.
func (v *Volumes) Needs(pod *model.PodInfo) (*Needs, *framework.Status) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.needsLocked(pod)
}

func refuse(format string, args ...any) *framework.Status {
	return framework.NewStatus(framework.UnschedulableAndUnresolvable, fmt.Sprintf(format, args...))
}

// needsLocked sorts the claims of a pod: bound ones restrict the nodes; those whose class waits for the first consumer
// get their volume with the node (unbound); any other claim is bound without a node, so the pod waits for that.
func (v *Volumes) needsLocked(pod *model.PodInfo) (*Needs, *framework.Status) {
	n := &Needs{v: v}
	immediate := false
	for _, pc := range pod.Claims {
		c := v.claims[claimKey(pod.Pod.Namespace, pc.Name)].now()
		if st := usable(pod.Pod, pc, c); st != nil {
			return nil, st
		}
		if pv, done := v.boundLocked(c); done {
			if pv == nil {
				n.lost = true
				continue
			}
			n.Bound = append(n.Bound, pv)
			if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
				n.affinity = append(n.affinity, nodeaffinity.NewLazyErrorNodeSelector(a.Required))
			}
			continue
		}
		class := v.classes[core.ClaimClass(c)]
		if !waits(class) || c.Spec.VolumeName != "" { // one that names its volume is bound without a node
			immediate = true
			continue
		}
		w := want{claim: c, class: class}
		if pv := v.volumes[v.meant[claimKey(c.Namespace, c.Name)]].now(); pv != nil && volumebinding.Meant(pv, c) {
			w.named = pv
		}
		n.unbound = append(n.unbound, w)
	}
	if immediate {
		return nil, refuse(reasonUnboundImmediate)
	}
	// The smallest claim chooses first and takes the smallest volume that fits, which leaves the large ones to the
	// others.
	slices.SortStableFunc(n.unbound, func(a, b want) int {
		x, y := size(a.claim), size(b.claim)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.claim.Name, b.claim.Name))
	})
	return n, nil
}

// usable returns why a pod cannot be scheduled with a claim, whatever the claim is bound to; nil if it can.
//
// These refuse the pod as a whole, before any node is looked at.
func usable(pod *corev1.Pod, pc model.PodClaim, c *corev1.PersistentVolumeClaim) *framework.Status {
	switch {
	case c == nil && pc.Ephemeral:
		return refuse("waiting for ephemeral volume controller to create the persistentvolumeclaim %q", pc.Name)
	case c == nil:
		return refuse("persistentvolumeclaim %q not found", pc.Name)
	case c.Status.Phase == corev1.ClaimLost:
		return refuse("persistentvolumeclaim %q bound to non-existent persistentvolume %q", pc.Name, c.Spec.VolumeName)
	case c.DeletionTimestamp != nil:
		return refuse("persistentvolumeclaim %q is being deleted", pc.Name)
	case pc.Ephemeral:
		if err := ephemeral.VolumeIsForPod(pod, c); err != nil {
			return refuse("%v", err)
		}
	}
	return nil
}

// waits reports whether claims of a class get their volume with the first pod that uses them.
func waits(class *storagev1.StorageClass) bool {
	return class != nil && class.VolumeBindingMode != nil &&
		*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

func size(c *corev1.PersistentVolumeClaim) int64 {
	q := c.Spec.Resources.Requests[corev1.ResourceStorage]
	return q.Value()
}

// On returns what the claims get on a node, or the reasons why the node is refused.
func (n *Needs) On(node *corev1.Node) (*Choice, []string) {
	n.v.mu.Lock()
	defer n.v.mu.Unlock()
	return n.onLocked(node)
}

// onLocked is On; taken keeps two claims of one pod from getting the same volume.
func (n *Needs) onLocked(node *corev1.Node) (*Choice, []string) {
	if n.lost {
		return nil, []string{reasonNoVolume}
	}
	var reasons []string
	for _, a := range n.affinity {
		if ok, err := a.Match(node); !ok || err != nil {
			reasons = append(reasons, reasonNodeConflict)
			break
		}
	}
	choice := &Choice{}
	taken := map[string]bool{}
	for _, w := range n.unbound {
		if reason := n.v.chooseLocked(w, node, choice, taken); reason != "" {
			reasons = append(reasons, reason)
			break
		}
	}
	if len(reasons) > 0 {
		return nil, reasons
	}
	return choice, nil
}

// usableOn reports whether a node can use a volume.
//
// A volume without node affinity can be used anywhere.
func usableOn(pv *corev1.PersistentVolume, node *corev1.Node) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return true
	}
	ok, err := corev1helpers.MatchNodeSelectorTerms(node, pv.Spec.NodeAffinity.Required)
	return ok && err == nil
}

// chooseLocked adds to choice what one claim gets on a node, or returns why it gets nothing there.
//
// The order is: a node that was selected before holds; then a volume that names the claim; then the best free volume;
// last a volume that the provisioner makes, if the class allows it there and the driver has room.
func (v *Volumes) chooseLocked(w want, node *corev1.Node, choice *Choice, taken map[string]bool) string {
	c := w.claim
	if selected, is := c.Annotations[volumebinding.SelectedNode]; is { // a volume is being made for that node
		if selected != node.Name {
			return reasonBindConflict
		}
		choice.Provision = append(choice.Provision, c)
		return ""
	}
	if w.named != nil {
		if volumebinding.ModesDiffer(w.named, c) || !usableOn(w.named, node) {
			return reasonBindConflict
		}
		choice.Static = append(choice.Static, Binding{c, w.named})
		return ""
	}
	if pv := v.bestLocked(c, node, taken); pv != nil {
		taken[pv.Name] = true
		choice.Static = append(choice.Static, Binding{c, pv})
		return ""
	}
	if p := w.class.Provisioner; p == "" || p == volumebinding.NoProvisioner {
		return reasonBindConflict
	}
	if !allowed(w.class.AllowedTopologies, node) {
		return reasonBindConflict
	}
	has, ok := v.roomLocked(w, node)
	if !ok {
		return reasonNoSpace
	}
	if has != nil {
		if choice.told == nil {
			choice.told = map[string]Room{}
		}
		r := choice.told[w.class.Name]
		choice.told[w.class.Name] = Room{r.Asked + size(c), max(r.Has, has.Value())} // they share that room
	}
	choice.Provision = append(choice.Provision, c)
	return ""
}

// bestLocked is the free volume that fits the claim best on a node, nil if none fits.
//
// Only volumes that the node may be able to use are walked (pool.on).
func (v *Volumes) bestLocked(c *corev1.PersistentVolumeClaim, node *corev1.Node,
	taken map[string]bool) *corev1.PersistentVolume {
	var best *corev1.PersistentVolume
	v.free[core.ClaimClass(c)].on(node, func(pv *corev1.PersistentVolume) {
		if !taken[pv.Name] && volumebinding.Claimable(pv, c) && usableOn(pv, node) &&
			(best == nil || volumebinding.Better(pv, best)) {
			best = pv
		}
	})
	return best
}

// allowed reports whether volumes of a class may be made where the node is: nowhere in particular, or one of the terms
// fits.
//
// Terms are ORed, the labels of a term are ANDed; a term without labels allows nothing.
func allowed(terms []corev1.TopologySelectorTerm, node *corev1.Node) bool {
	if len(terms) == 0 {
		return true
	}
	for _, t := range terms {
		fits := len(t.MatchLabelExpressions) > 0
		for _, e := range t.MatchLabelExpressions {
			value, has := node.Labels[e.Key]
			fits = fits && has && slices.Contains(e.Values, value)
		}
		if fits {
			return true
		}
	}
	return false
}

// roomLocked reports whether a driver that says how much room it has has enough for the claim where the node is, and
// how much that is, nil if it is not known.
//
// Only a driver whose CSIDriver has storageCapacity reports room (KEP-1472). One capacity object must hold the whole
// claim. Of several the one with the most room counts, so that the score does not change from pod to pod.
func (v *Volumes) roomLocked(w want, node *corev1.Node) (room *resource.Quantity, ok bool) {
	d := v.drivers[w.class.Provisioner]
	if d == nil || d.Spec.StorageCapacity == nil || !*d.Spec.StorageCapacity {
		return nil, true
	}
	for _, c := range v.capacities[w.class.Name] {
		has := c.Capacity
		if c.MaximumVolumeSize != nil {
			has = c.MaximumVolumeSize
		}
		if has == nil || has.Value() < size(w.claim) || c.NodeTopology == nil {
			continue
		}
		if s, err := metav1.LabelSelectorAsSelector(c.NodeTopology); err == nil && s.Matches(labels.Set(node.Labels)) {
			ok = true
			if c.Capacity != nil && (room == nil || c.Capacity.Cmp(*room) > 0) {
				room = c.Capacity
			}
		}
	}
	return room, ok
}

// Key writes down everything that the needs of a pod, and what they get on a node, depend on besides the node.
//
// Two pods with equal keys get the same answer on the same node. The epoch of a class stands for all its free volumes,
// capacities and topologies, which would make the key as long as the cluster.
func (v *Volumes) Key(pod *model.PodInfo, k *model.Key) {
	if len(pod.Claims) == 0 {
		k.Num(0)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	n, st := v.needsLocked(pod)
	if st != nil {
		k.Num(1)
		k.Str(st.Message())
		return
	}
	k.Num(2)
	k.Bool(n.lost)
	k.Num(int64(len(n.Bound)))
	for _, pv := range n.Bound {
		k.VolumeAffinity(pv)
	}
	k.Num(int64(len(n.unbound)))
	for _, w := range n.unbound {
		class := w.class.Name
		k.Str(class, w.claim.Annotations[volumebinding.SelectedNode])
		k.Num(v.epochs[class])
		k.Num(v.epoch)
		k.Num(size(w.claim))
		if k.Bool(w.named != nil); w.named != nil {
			k.Str(w.named.Name, w.named.ResourceVersion)
		}
		if w.named != nil || v.free[class] != nil { // the claim itself says which volume it gets
			k.Str(claimKey(w.claim.Namespace, w.claim.Name), string(w.claim.UID), w.claim.ResourceVersion)
		}
	}
}
