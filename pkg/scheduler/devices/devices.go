// Package devices is what the scheduler knows of ResourceClaims and of the devices that can be given to them, with what
// it has decided itself and the API server has not shown yet ("assumed"). It answers what a pod's claims would get on a
// node, takes what was chosen, and writes it.
//
// Which devices a claim gets is decided by Kubernetes' own library (k8s.io/dynamic-resource-allocation/structured), for
// one node at a time. It is shown only what that node can reach: the pools whose slices all name the node, and those
// that are not of one node.
package devices

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"bonsai/api/resource"
)

// features are those of Kubernetes' defaults.
func features() structured.Features {
	return structured.Features{AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
		DeviceBindingAndStatus: true, ConsumableCapacity: true}
}

// expressions is how many compiled CEL expressions are kept.
const expressions = 100

// Devices is safe for concurrent use; make it with New.
type Devices struct {
	api API
	now func() time.Time

	// mu guards everything below it. It is held for one question or change, never while the library allocates devices
	// or while a request to the API server is under way.
	mu      sync.Mutex
	claims  map[string]held // by namespace/name
	classes classTable
	pools   poolTable
	// slices are those of the pools by name, as the API server shows them; in the pools they also have the taints that
	// rules put on their devices. rules are sorted by name.
	slices map[string]*resourcev1.ResourceSlice
	rules  []*resourcev1.DeviceTaintRule
	// taken has the claims for extended resources that are still to be created, with their devices, by the pod's UID;
	// made has the keys of those that exist.
	taken map[types.UID]*resourcev1.ResourceClaim
	made  map[types.UID]string
	// gated has the pods that are not tried until a claim changes, by the claim's key.
	gated map[string]map[types.UID]bool
	// untold are the nodes whose free devices changed with a write of this scheduler. The next ClaimChanged reports
	// them, at the latest the one for that write.
	untold []string
	// changes has a channel for each claim that somebody waits for; it is closed when the claim changes.
	changes map[string]chan struct{}

	compiled func() *cel.Cache
}

// held is a claim as the API server shows it, and as it will be once what was decided is written.
type held struct {
	seen, assumed *resourcev1.ResourceClaim // assumed is nil if nothing was decided
}

func (h held) now() *resourcev1.ResourceClaim {
	if h.assumed != nil {
		return h.assumed
	}
	return h.seen
}

// New returns a store that knows nothing yet.
func New(api API, now func() time.Time) *Devices {
	return &Devices{api: api, now: now, claims: map[string]held{}, classes: newClassTable(),
		pools: newPoolTable(), slices: map[string]*resourcev1.ResourceSlice{},
		taken: map[types.UID]*resourcev1.ResourceClaim{}, made: map[types.UID]string{},
		gated: map[string]map[types.UID]bool{}, changes: map[string]chan struct{}{},
		// The compiler's environment is several megabytes: only clusters with devices pay for it.
		compiled: sync.OnceValue(func() *cel.Cache {
			return cel.NewCache(expressions, cel.Features{EnableConsumableCapacity: true})
		})}
}

func claimKey(namespace, name string) string { return namespace + "/" + name }

// SlimClaim drops from a fresh claim what no decision reads and no write needs, in place.
func SlimClaim(c *resourcev1.ResourceClaim) { c.ManagedFields = nil }

// SlimClass does the same with a class.
func SlimClass(c *resourcev1.DeviceClass) { c.ManagedFields, c.Annotations = nil, nil }

// SlimRule does the same with a rule.
func SlimRule(r *resourcev1.DeviceTaintRule) { r.ManagedFields, r.Annotations = nil, nil }

// SlimSlice does the same with a slice.
func SlimSlice(s *resourcev1.ResourceSlice) { s.ManagedFields, s.Annotations = nil, nil }

// older compares resource versions, which are numbers.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// ClaimChanged takes in an added or changed claim (c), or a deleted one (c is nil). It returns the nodes whose free
// devices changed, and the pods that waited for the claim.
func (d *Devices) ClaimChanged(old, c *resourcev1.ResourceClaim) (nodes []string, pods []types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := ""
	if c == nil {
		key = claimKey(old.Namespace, old.Name)
		nodes = d.forgetLocked(key)
	} else {
		key = claimKey(c.Namespace, c.Name)
		nodes = d.seeLocked(c)
	}
	nodes, d.untold = append(nodes, d.untold...), nil
	d.tellLocked(key)
	for uid := range d.gated[key] {
		pods = append(pods, uid)
	}
	delete(d.gated, key)
	return nodes, pods
}

// forgetLocked drops a claim that is gone, and returns the nodes whose free devices changed.
func (d *Devices) forgetLocked(key string) []string {
	h := d.claims[key]
	nodes := d.pools.count(h.now(), nil)
	delete(d.claims, key)
	if uid := specialFor(h.seen); d.made[uid] == key {
		delete(d.made, uid)
	}
	return nodes
}

// specialFor is the pod for whose extended resources a claim was made, "" if it was not. One without finalizer is about
// to go.
func specialFor(c *resourcev1.ResourceClaim) types.UID {
	if c == nil || c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" ||
		!slices.Contains(c.Finalizers, resourcev1.Finalizer) {
		return ""
	}
	if owner := metav1.GetControllerOf(c); owner != nil {
		return owner.UID
	}
	return ""
}

// wroteLocked takes in what a write of this scheduler was answered with, nil if the claim is gone.
func (d *Devices) wroteLocked(key string, c *resourcev1.ResourceClaim) {
	if c == nil {
		d.untold = append(d.untold, d.forgetLocked(key)...)
		return
	}
	d.untold = append(d.untold, d.seeLocked(c)...)
}

// seeLocked takes in a claim as the API server has it, and returns the nodes whose free devices changed. An assumption
// about an earlier state of the claim no longer holds: if it is not written yet, the write will fail with a conflict.
func (d *Devices) seeLocked(c *resourcev1.ResourceClaim) []string {
	key := claimKey(c.Namespace, c.Name)
	h, known := d.claims[key]
	if uid := specialFor(c); uid != "" {
		d.made[uid] = key
	} else if uid := specialFor(h.seen); d.made[uid] == key {
		delete(d.made, uid)
	}
	switch {
	case known && h.seen.UID == c.UID && older(c.ResourceVersion, h.seen.ResourceVersion):
		return nil // what this scheduler wrote was answered with a newer state
	case known && h.assumed != nil && h.seen.UID == c.UID && c.Status.Allocation == nil && c.DeletionTimestamp == nil:
		// Others have changed it, or this scheduler has put the finalizer on: the devices stay taken until the write is
		// done.
		h.seen = c
		d.claims[key] = h
		return nil
	}
	nodes := d.pools.count(h.now(), c)
	d.claims[key] = held{seen: c}
	return nodes
}

// ClassChanged takes in an added or changed class, or a deleted one (c is nil).
func (d *Devices) ClassChanged(old, c *resourcev1.DeviceClass) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c == nil {
		d.classes.remove(old.Name)
		return
	}
	d.classes.set(c)
}

// SliceChanged takes in an added or changed slice, or a deleted one (s is nil). It returns the nodes whose devices
// changed.
func (d *Devices) SliceChanged(old, s *resourcev1.ResourceSlice) (nodes []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old != nil {
		if id := poolOf(old); s == nil || poolOf(s) != id {
			nodes = append(nodes, d.pools.change(id, func(p *pool) { delete(p.slices, old.Name) })...)
		}
		delete(d.slices, old.Name)
	}
	if s != nil {
		d.slices[s.Name] = s
		nodes = append(nodes, d.fileLocked(s)...)
	}
	return nodes
}

// fileLocked puts a slice into its pool, with the taints that rules put on its devices. It returns the nodes whose
// devices changed.
func (d *Devices) fileLocked(s *resourcev1.ResourceSlice) []string {
	tainted := resource.Tainted(s, d.rules)
	return d.pools.change(poolOf(s), func(p *pool) { p.slices[s.Name] = tainted })
}

// RuleChanged takes in an added or changed rule, or a deleted one (r is nil). It returns the nodes whose devices
// changed.
func (d *Devices) RuleChanged(old, r *resourcev1.DeviceTaintRule) (nodes []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old != nil {
		d.rules = slices.DeleteFunc(slices.Clone(d.rules), func(r *resourcev1.DeviceTaintRule) bool {
			return r.Name == old.Name
		})
	}
	if r != nil {
		at, _ := slices.BinarySearchFunc(d.rules, r.Name, func(r *resourcev1.DeviceTaintRule, n string) int {
			return strings.Compare(r.Name, n)
		})
		d.rules = slices.Insert(slices.Clone(d.rules), at, r)
	}
	for _, s := range d.slices {
		if taintsAny(old, s) || taintsAny(r, s) {
			nodes = append(nodes, d.fileLocked(s)...)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// taintsAny reports whether a rule puts its taint on a device of a slice.
func taintsAny(r *resourcev1.DeviceTaintRule, s *resourcev1.ResourceSlice) bool {
	return r != nil && slices.ContainsFunc(s.Spec.Devices, func(d resourcev1.Device) bool {
		return resource.Taints(r, s.Spec.Driver, s.Spec.Pool.Name, d.Name)
	})
}

// Claim returns a claim as it is or will be, nil if there is none.
func (d *Devices) Claim(namespace, name string) *resourcev1.ResourceClaim {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.claims[claimKey(namespace, name)].now()
}

// Gone forgets what a pod waits for that is gone.
func (d *Devices) Gone(pod *corev1.Pod) {
	if len(pod.Spec.ResourceClaims) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range pod.Spec.ResourceClaims {
		if key := gateKey(pod, &pod.Spec.ResourceClaims[i]); key != "" {
			delete(d.gated[key], pod.UID)
			if len(d.gated[key]) == 0 {
				delete(d.gated, key)
			}
		}
	}
}
