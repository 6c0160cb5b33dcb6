// Package dra gives containers the devices of ResourceClaims, dynamic resource allocation's half on the node
// (https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/). The scheduler has allocated
// the claims that a pod refers to and reserved them for it; before the pod's containers start, the drivers of the
// allocated devices prepare the claims, and say by which names the runtime finds the devices (CDI). A claim that
// several pods share is prepared once, and unprepared when the last of them has ended. What is prepared is kept on the
// disk.
package dra

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cm"
)

// Bounds: callTimeout is how long a driver may take to prepare or unprepare, maxMessage how much it may say, in bytes,
// maxDrivers how many there may be.
const (
	callTimeout = 45 * time.Second
	maxMessage  = 4 << 20
	maxDrivers  = 256
)

// Client is the API server.
type Client interface {
	ResourceClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error)
	// DeleteResourceSlices deletes those that a field selector names.
	DeleteResourceSlices(ctx context.Context, fields string) error
}

// Metrics counts.
type Metrics interface {
	// DRAOperation tells how long preparing or unpreparing (PrepareResources, UnprepareResources) for a pod took.
	DRAOperation(name string, took time.Duration, err error)
	// DRACall tells how long a call of a driver took, and its status code.
	DRACall(driver, method, code string, took time.Duration)
	// DRAClaims tells how many claims with devices of each driver are in use, and in all ("<any>").
	DRAClaims(byDriver map[string]int)
}

// Config is what a Manager needs. Everything is required.
type Config struct {
	// RootDir is the kubelet's: the file of what is prepared is in it, and drivers' sockets are beneath it.
	RootDir string
	// Node is the node's name.
	Node   string
	Client Client
	// Wake is called when a device that a pod has becomes healthy or unhealthy.
	Wake    func(uid types.UID)
	Metrics Metrics
	Now     func() time.Time
	Log     *slog.Logger
}

// Manager knows the drivers and which claims are prepared. It is safe for concurrent use.
//
// mu guards the maps and everything in them, except turn and the names. It is never held while a driver is asked: what
// must not happen at the same time for one claim is kept apart by the claim's turn.
type Manager struct {
	cfg  Config
	file cm.StateFile

	mu      sync.Mutex
	drivers map[string][]*driver // by name, in the order of their registration: the last one is asked
	left    map[string]time.Time // drivers that are gone, since when
	claims  map[types.UID]*claim
	watches sync.WaitGroup
}

// claim is one that pods of the node use.
type claim struct {
	// turn has room for one: who prepares or unprepares the claim.
	turn chan struct{}

	uid             types.UID
	namespace, name string
	pods            map[types.UID]bool
	// devices are by driver, of those that were asked to prepare it; none before a driver has.
	devices map[string][]device
	// prepared: by this kubelet. It is done again after a restart.
	prepared bool
}

// device is one that a driver has prepared.
type device struct {
	pool, name string
	share      *types.UID
	// requests are those of the claim that it is for; none: all.
	requests []string
	cdi      []string
}

// New reads what was prepared before a restart of the kubelet.
func New(cfg Config) (*Manager, error) {
	m := &Manager{cfg: cfg, file: cm.StateFile{Dir: cfg.RootDir, Name: "dra_manager_state"},
		drivers: map[string][]*driver{}, left: map[string]time.Time{},
		claims: map[types.UID]*claim{}}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("prepared claims: %w", err)
	}
	return m, nil
}

// claim returns the entry of a claim, a new one if there is none; m is locked.
func (m *Manager) claim(c *resourcev1.ResourceClaim) *claim {
	e := m.claims[c.UID]
	if e == nil {
		e = &claim{turn: make(chan struct{}, 1), uid: c.UID, namespace: c.Namespace, name: c.Name,
			pods: map[types.UID]bool{}, devices: map[string][]device{}}
		m.claims[c.UID] = e
	}
	return e
}

// lock takes the turns of claims, in an order that all keep; unlock gives them back.
//
// The order is by uid: two pods with the same two claims cannot wait for each other.
func lock(ctx context.Context, claims []*claim) (unlock func(), err error) {
	claims = slices.Clone(claims)
	slices.SortFunc(claims, func(a, b *claim) int {
		switch {
		case a.uid < b.uid:
			return -1
		case a.uid > b.uid:
			return 1
		}
		return 0
	})
	claims = slices.Compact(claims)
	taken := 0
	unlock = func() {
		for _, c := range claims[:taken] {
			<-c.turn
		}
	}
	for _, c := range claims {
		select {
		case c.turn <- struct{}{}:
			taken++
		case <-ctx.Done():
			unlock()
			return nil, ctx.Err()
		}
	}
	return unlock, nil
}

// ofPod are the claims that a pod uses; m is locked.
func (m *Manager) ofPod(uid types.UID) (out []*claim) {
	for _, c := range m.claims {
		if c.pods[uid] {
			out = append(out, c)
		}
	}
	return out
}

// count tells how many claims are in use; m is locked.
func (m *Manager) count() {
	by := map[string]int{}
	by["<any>"] = len(m.claims)
	for _, c := range m.claims {
		for name := range c.devices {
			by[name]++
		}
	}
	m.cfg.Metrics.DRAClaims(by)
}

// sortedKeys are a map's keys, sorted.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
