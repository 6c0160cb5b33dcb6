// Package node keeps the kubelet's own Node object: it registers the node, reports its status and renews its lease.
// Pure functions compute the status from the state of the machine and the runtime. A PATCH is sent only on a change or
// every five minutes, because the lease is the heartbeat.
//
// The contract: https://kubernetes.io/docs/reference/node/node-status/ and .../architecture/nodes/#heartbeats.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
)

// Runtime is the container runtime.
type Runtime interface {
	Health(ctx context.Context) (runtime.Health, error)
	Version() runtime.Version
}

// Client is the API server as the node's object needs it.
type Client interface {
	Leases
	Objects(resource, namespace, field string) cache.ListerWatcher
	Node(ctx context.Context, name string) (*corev1.Node, error)
	CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error)
	PatchNode(ctx context.Context, name string, kind types.PatchType, patch []byte,
		subresource ...string) (*corev1.Node, error)
}

// Startup receives the times of the node's first steps, each once and in this order: its registration began, it was
// registered, and the API showed it ready.
type Startup interface {
	Registering(at time.Time)
	Registered(at time.Time)
	Ready(at time.Time)
}

type noStartup struct{}

func (noStartup) Registering(time.Time) {}
func (noStartup) Registered(time.Time)  {}
func (noStartup) Ready(time.Time)       {}

// Config is what a Node needs. Client, Name, Runtime, Machine, Now and Log are required.
type Config struct {
	Client Client
	// Name is the Node's name; Hostname its host name, by default the same.
	Name, Hostname string
	// IPs are the node's addresses, the primary one first. Without any, or with a lone 0.0.0.0 or ::, which chooses the
	// family, the address is found by the default route.
	IPs []net.IP
	// ExternalCloud leaves the Node's addresses, and the removal of the taint that keeps pods away until then, to a
	// cloud controller manager.
	ExternalCloud bool
	// Labels and Taints are given to a new Node (--node-labels, --register-with-taints); ProviderID is its
	// spec.providerID.
	Labels     map[string]string
	Taints     []corev1.Taint
	ProviderID string
	// NoRegister: another program makes the Node (--register-node=false).
	NoRegister bool
	Runtime    Runtime
	// Down, if set, returns why the node is not ready although its parts are, nil if it is ready.
	Down func() error
	// Relisted, if set, returns what is wrong with the lists of the runtime's pods at that time, nil if nothing is.
	Relisted func(now time.Time) error
	Machine  Machine
	// Changed, if set, is notified when something changed that the status depends on: the status is computed at once.
	Changed notify.Signal
	// Pressure returns which resources of the node are short; nil: none ever is.
	Pressure func() Pressure
	// Images returns the runtime's images; nil reports none.
	Images func(ctx context.Context) ([]corev1.ContainerImage, error)
	// MaxImages is how many of them the Node shows, the largest; negative: all.
	MaxImages int
	// Devices, if set, returns the resources of device plug-ins; an amount may be 0.
	Devices func() (capacity, allocatable corev1.ResourceList)
	// VolumesInUse returns the attached volumes that are mounted or about to be. With an error the Node also keeps
	// showing the previous ones. nil reports none.
	VolumesInUse func() ([]corev1.UniqueVolumeName, error)
	// Startup, if set, receives the node's first steps.
	Startup Startup
	// Observed, if set, is called whenever a newer Node was seen in the API.
	Observed func()
	// Resources says how much of the machine pods may have.
	Resources Resources
	// Port is the kubelet's, 10250 by default; Version its version.
	Port    int32
	Version string
	// Interval is how often the status is computed (10 s), Report the most time between two PATCHes (5 min),
	// LeaseDuration the lease's length (40 s; it is renewed after a quarter of it).
	Interval, Report, LeaseDuration time.Duration
	Now                             func() time.Time
	Log                             *slog.Logger
}

// Node keeps one Node object. object and checked are replaced as a whole and read without a lock; mu guards the rest.
type Node struct {
	cfg        Config
	addresses  []corev1.NodeAddress
	registered chan struct{}
	object     atomic.Pointer[corev1.Node]
	checked    atomic.Pointer[checked]
	// reported is set once this kubelet has reported the status. Only the goroutine of keepStatus uses it.
	reported bool

	mu sync.Mutex
	// news is closed when object is replaced; nil while no goroutine waits for that.
	news     chan struct{}
	images   []corev1.ContainerImage
	imagesAt time.Time
}

// checked is the last good check of the runtime.
type checked struct {
	health runtime.Health
	at     time.Time
}

// New checks the configuration and finds the node's addresses. It sends nothing.
func New(cfg Config) (*Node, error) {
	if cfg.Client == nil || cfg.Name == "" || cfg.Runtime == nil || cfg.Machine == nil || cfg.Now == nil ||
		cfg.Log == nil {
		return nil, errors.New("node: Client, Name, Runtime, Machine, Now and Log are required")
	}
	defaultTo(&cfg.Hostname, cfg.Name)
	defaultTo[Startup](&cfg.Startup, noStartup{})
	defaultTo(&cfg.Changed, notify.New())
	defaultTo(&cfg.Port, 10250)
	defaultTo(&cfg.Interval, 10*time.Second)
	defaultTo(&cfg.Report, 5*time.Minute)
	defaultTo(&cfg.LeaseDuration, 40*time.Second)
	addresses, err := findAddresses(cfg.IPs, cfg.Hostname, cfg.ExternalCloud)
	if err != nil {
		return nil, err
	}
	return &Node{cfg: cfg, addresses: addresses, registered: make(chan struct{})}, nil
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Addresses returns the node's addresses as the API shows them, or, before it shows any, as this kubelet found them.
func (n *Node) Addresses() []corev1.NodeAddress {
	if o := n.object.Load(); o != nil && len(o.Status.Addresses) > 0 {
		return o.Status.Addresses
	}
	return n.addresses
}

// HostIPs returns the node's internal addresses, the primary one first: status.hostIPs of its pods. With a cloud
// provider they come from the API, and there may be none until it has set them.
func (n *Node) HostIPs() []string {
	from := n.addresses
	if n.cfg.ExternalCloud {
		from = n.Addresses()
	}
	var ips []string
	for _, a := range from {
		if a.Type == corev1.NodeInternalIP {
			ips = append(ips, a.Address)
		}
	}
	return ips
}

// Object returns the Node as last seen in the API, read only; nil before it was registered.
func (n *Node) Object() *corev1.Node { return n.object.Load() }

// UID returns the Node's UID, "" before it was registered.
func (n *Node) UID() types.UID {
	if o := n.Object(); o != nil {
		return o.UID
	}
	return ""
}

// Allocatable returns what all pods together may have: what this kubelet computes from its machine and settings, and
// the extended resources that others have added to the Node. Our own amounts are not read from the Node, which may
// still show those of an earlier kubelet with other settings.
func (n *Node) Allocatable() corev1.ResourceList {
	var shown corev1.ResourceList
	if o := n.object.Load(); o != nil {
		shown = o.Status.Allocatable
	}
	all := merge(shown, n.cfg.Resources.Allocatable(n.cfg.Machine.Capacity()))
	_, devices := n.devices()
	maps.Copy(all, devices)
	return all
}

// Registered is closed once the Node exists in the API.
func (n *Node) Registered() <-chan struct{} { return n.registered }

// ShowInUse returns when the Node in the API shows volume as in use. VolumesInUse must name it already.
func (n *Node) ShowInUse(ctx context.Context, volume corev1.UniqueVolumeName) error {
	n.cfg.Changed.Notify()
	for {
		n.mu.Lock()
		if n.news == nil {
			n.news = make(chan struct{})
		}
		shown, news := n.object.Load(), n.news
		n.mu.Unlock()
		if shown != nil && slices.Contains(shown.Status.VolumesInUse, volume) {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("volume %s has not been added to the list of VolumesInUse in the node's status: %w",
				volume, ctx.Err())
		}
	}
}

// Run registers the node and keeps it until ctx is done. Lease and watch begin after the registration, which both need.
func (n *Node) Run(ctx context.Context) error {
	n.cfg.Startup.Registering(n.cfg.Now())
	if !n.register(ctx) {
		return nil // ctx is done
	}
	n.cfg.Startup.Registered(n.cfg.Now())
	close(n.registered)
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { n.keepLease(ctx) })
	parts.Go(func() { n.watchSelf(ctx) })
	n.keepStatus(ctx)
	return nil
}

// How soon an unready node checks again whether it is ready: first after unreadyFirst, then after pauses that grow by a
// quarter, up to unreadyMost. So a node is reported Ready within about a fifth of the time that it took to become so,
// and a dead runtime is asked less and less often.
const (
	unreadyFirst = 100 * time.Millisecond
	unreadyMost  = 5 * time.Second
)

// keepStatus reports the status until ctx is done: after each Interval, at once after a change, and sooner after an
// error or while the node is not ready.
func (n *Node) keepStatus(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures, unready := 0, unreadyFirst
	wasReady := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-n.cfg.Changed:
			unready = unreadyFirst
		}
		ready, err := n.syncStatus(ctx)
		if ready && err == nil && !wasReady {
			wasReady = true
			n.cfg.Startup.Ready(n.cfg.Now())
		}
		wait := n.cfg.Interval
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case err != nil:
			failures++
			n.cfg.Log.Error("node status not reported", "node", n.cfg.Name, "failures", failures, "err", err)
			wait = min(time.Duration(failures)*time.Second, n.cfg.Interval)
		case !ready:
			failures, wait = 0, min(unready, n.cfg.Interval)
			unready = min(unready+unready/4, unreadyMost)
		default:
			failures, unready = 0, unreadyFirst
		}
		timer.Reset(wait)
	}
}
