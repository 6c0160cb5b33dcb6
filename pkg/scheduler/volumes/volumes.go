// Package volumes is what the scheduler knows of claims, persistent volumes and what they depend on, with what it has
// decided itself and the API server has not shown yet ("assumed"): a volume that was chosen for a claim, or a node that
// a volume is to be provisioned for. It answers whether pods' claims can be had on a node, takes what was chosen,
// writes it, and waits until others have bound it.
//
// The contract with those who bind and provision is in the objects: bonsai/api/core/volumebinding.
package volumes

import (
	"math"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/api/core"
	"bonsai/api/core/volumebinding"
)

// Volumes is safe for concurrent use; make it with New.
//
// Who calls: handlers of watch events the …Changed methods, the scheduling goroutine the questions and Reserve, the
// goroutines of bindings Bind and Release. Methods whose name ends in Locked need mu.
type Volumes struct {
	api API
	// writes bounds the writes under way.
	writes chan struct{}

	// mu guards all below. It is held for one question or change, never while the API server is asked.
	mu      sync.Mutex
	claims  map[string]held[*corev1.PersistentVolumeClaim] // by namespace/name
	volumes map[string]held[*corev1.PersistentVolume]      // by name
	classes map[string]*storagev1.StorageClass
	drivers map[string]*storagev1.CSIDriver
	// capacities are by class, then by namespace/name.
	capacities map[string]map[string]*storagev1.CSIStorageCapacity
	// free are the volumes that a claim of the class may yet get; meant is, by claim, the volume that names it.
	free  map[string]*pool
	meant map[string]string
	// limited counts the nodes that limit how many volumes of a driver they take.
	limited map[string]int
	counted int64 // see Counted
	// attachments are by node, then by name; attached counts those of a volume.
	attachments map[string]map[string]attachment
	attached    map[string]int
	// epochs, by class, and epoch, for all, change with everything that the answers for claims without a volume depend
	// on besides claim and node.
	epochs map[string]int64
	epoch  int64
	// waiting are closed when their claim changes.
	waiting map[string]chan struct{}
}

// held is an object as the API server shows it, and as it will be once what was decided is written.
//
// What the API server shows replaces what was assumed as soon as it is newer: it knows better.
type held[T any] struct {
	seen    T
	assumed T
	ahead   bool // assumed counts
}

func (h held[T]) now() T {
	if h.ahead {
		return h.assumed
	}
	return h.seen
}

// writers is how many claims and volumes may be written at once.
const writers = 32

// New returns a store that knows nothing yet.
func New(api API) *Volumes {
	return &Volumes{api: api, writes: make(chan struct{}, writers),
		claims: map[string]held[*corev1.PersistentVolumeClaim]{}, volumes: map[string]held[*corev1.PersistentVolume]{},
		classes: map[string]*storagev1.StorageClass{}, drivers: map[string]*storagev1.CSIDriver{},
		capacities: map[string]map[string]*storagev1.CSIStorageCapacity{},
		free:       map[string]*pool{}, meant: map[string]string{}, limited: map[string]int{},
		attachments: map[string]map[string]attachment{}, attached: map[string]int{}, epochs: map[string]int64{},
		waiting: map[string]chan struct{}{}}
}

func claimKey(namespace, name string) string { return namespace + "/" + name }

// bumpLocked makes what was answered for claims of a class stale.
func (v *Volumes) bumpLocked(class string) { v.epochs[class]++ }

// older compares resource versions, which are numbers.
//
// The API server promises that much (KEP-5504). Versions have no leading zeros, so a shorter one is smaller.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// ClaimChanged takes in an added or changed claim (c), or a deleted one (c is nil).
func (v *Volumes) ClaimChanged(old, c *corev1.PersistentVolumeClaim) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c == nil {
		key := claimKey(old.Namespace, old.Name)
		delete(v.claims, key)
		v.tellLocked(key)
		return
	}
	v.seeClaimLocked(c)
}

// seeClaimLocked takes in a claim as the API server shows it. The same version again (a new list) keeps what was
// assumed; any other drops it.
func (v *Volumes) seeClaimLocked(c *corev1.PersistentVolumeClaim) {
	key := claimKey(c.Namespace, c.Name)
	h, known := v.claims[key]
	if known && h.seen.UID == c.UID && older(c.ResourceVersion, h.seen.ResourceVersion) {
		return // what this scheduler wrote was answered with a newer state
	}
	if known && h.seen.UID == c.UID && h.seen.ResourceVersion == c.ResourceVersion {
		h.seen = c
	} else {
		h = held[*corev1.PersistentVolumeClaim]{seen: c}
	}
	v.recountLocked(key, func() { v.claims[key] = h })
	v.tellLocked(key)
}

// tellLocked wakes those who wait for a claim.
//
// Closing the channel wakes all of them; each asks again under the lock.
func (v *Volumes) tellLocked(key string) {
	if ch := v.waiting[key]; ch != nil {
		close(ch)
		delete(v.waiting, key)
	}
}

// VolumeChanged takes in an added or changed volume (pv), or a deleted one (pv is nil).
func (v *Volumes) VolumeChanged(old, pv *corev1.PersistentVolume) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if pv == nil {
		v.indexLocked(v.volumes[old.Name].now(), nil)
		v.renamedLocked(old.Name)
		delete(v.volumes, old.Name)
		return
	}
	v.seeVolumeLocked(pv)
}

func (v *Volumes) seeVolumeLocked(pv *corev1.PersistentVolume) {
	h, known := v.volumes[pv.Name]
	if known && h.seen.UID == pv.UID && older(pv.ResourceVersion, h.seen.ResourceVersion) {
		return
	}
	before := h.now()
	if known && h.seen.UID == pv.UID && h.seen.ResourceVersion == pv.ResourceVersion {
		h.seen = pv
	} else {
		h = held[*corev1.PersistentVolume]{seen: pv}
	}
	claim := ""
	if r := pv.Spec.ClaimRef; r != nil {
		claim = claimKey(r.Namespace, r.Name)
	}
	v.recountLocked(claim, func() { v.volumes[pv.Name] = h })
	if !known {
		v.renamedLocked(pv.Name)
	}
	v.indexLocked(before, h.now())
	if claim != "" {
		v.tellLocked(claim)
	}
}

// indexLocked keeps free and meant when a volume changes; nil is none.
//
// before must be what was indexed last, or a volume would stay free in one place and taken in another.
func (v *Volumes) indexLocked(before, after *corev1.PersistentVolume) {
	if before != nil {
		class := core.VolumeClass(before)
		if p := v.free[class]; p != nil && p.remove(before) {
			v.bumpLocked(class)
			if p.empty() {
				delete(v.free, class)
			}
		}
		if r := before.Spec.ClaimRef; r != nil && v.meant[claimKey(r.Namespace, r.Name)] == before.Name {
			delete(v.meant, claimKey(r.Namespace, r.Name))
		}
	}
	if after == nil {
		return
	}
	class := core.VolumeClass(after)
	if r := after.Spec.ClaimRef; r != nil {
		v.meant[claimKey(r.Namespace, r.Name)] = after.Name
		return
	}
	if after.DeletionTimestamp == nil && after.Status.Phase == corev1.VolumeAvailable {
		p := v.free[class]
		if p == nil {
			p = newPool()
			v.free[class] = p
		}
		p.add(after)
		v.bumpLocked(class)
	}
}

// ClassChanged takes in an added or changed storage class, or a deleted one (c is nil).
//
// A change of a class changes the answers for its unbound claims, which the epoch makes stale.
func (v *Volumes) ClassChanged(old, c *storagev1.StorageClass) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c == nil {
		delete(v.classes, old.Name)
		v.bumpLocked(old.Name)
		return
	}
	v.classes[c.Name] = c
	v.bumpLocked(c.Name)
}

// DriverChanged takes in an added or changed CSIDriver, or a deleted one (d is nil).
//
// It concerns all classes of the driver, so all answers become stale; drivers seldom change.
func (v *Volumes) DriverChanged(old, d *storagev1.CSIDriver) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.epoch++
	if d == nil {
		delete(v.drivers, old.Name)
		return
	}
	v.drivers[d.Name] = d
}

// CapacityChanged takes in an added or changed CSIStorageCapacity, or a deleted one (c is nil).
//
// There is one object for each class and segment of the topology.
func (v *Volumes) CapacityChanged(old, c *storagev1.CSIStorageCapacity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old != nil {
		delete(v.capacities[old.StorageClassName], claimKey(old.Namespace, old.Name))
		v.bumpLocked(old.StorageClassName)
	}
	if c == nil {
		return
	}
	if v.capacities[c.StorageClassName] == nil {
		v.capacities[c.StorageClassName] = map[string]*storagev1.CSIStorageCapacity{}
	}
	v.capacities[c.StorageClassName][claimKey(c.Namespace, c.Name)] = c
	v.bumpLocked(c.StorageClassName)
}

// NodeChanged takes in an added or changed CSINode, or a deleted one (n is nil). It returns how many volumes of each
// driver that is installed on the node it can have attached: Unlimited if the driver sets no limit.
func (v *Volumes) NodeChanged(old, n *storagev1.CSINode) map[string]int64 {
	before, after := limits(old), limits(n)
	v.mu.Lock()
	defer v.mu.Unlock()
	for driver, most := range before {
		if most == Unlimited {
			continue
		}
		if v.limited[driver]--; v.limited[driver] == 0 {
			delete(v.limited, driver)
		}
	}
	for driver, most := range after {
		if most != Unlimited {
			v.limited[driver]++
		}
	}
	return after
}

// Unlimited is how many volumes of a driver a node can have attached if the driver sets no limit.
const Unlimited = math.MaxInt64

// limits is how many volumes of each installed driver a node can have attached, nil if there is none.
func limits(n *storagev1.CSINode) map[string]int64 {
	if n == nil {
		return nil
	}
	var out map[string]int64
	for _, d := range n.Spec.Drivers {
		if out == nil {
			out = map[string]int64{}
		}
		out[d.Name] = Unlimited
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			out[d.Name] = int64(*d.Allocatable.Count)
		}
	}
	return out
}

// Claim returns a claim as it is or will be, nil if there is none.
func (v *Volumes) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.claims[claimKey(namespace, name)].now()
}

// boundLocked returns the volume that a claim is bound to; done reports whether it is bound.
//
// Bound means what the volume controller says: the claim has its volume and the annotation bind-completed.
func (v *Volumes) boundLocked(c *corev1.PersistentVolumeClaim) (pv *corev1.PersistentVolume, done bool) {
	if _, done = c.Annotations[volumebinding.BindCompleted]; !done || c.Spec.VolumeName == "" {
		return nil, false
	}
	return v.volumes[c.Spec.VolumeName].now(), true
}
