// Package kubelet is the node's agent: it composes the parts that lie in its subpackages, feeds each pod's worker and does
// what a worker asks for (Sync, Terminate, …). Start at Run for the order of things, at Sync for the life of a pod.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/api/core"
	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/client"
	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/pleg"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/stats"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/kubelet/sysctl"
	"bonsai/pkg/kubelet/volume"
)

// Config is what a Kubelet needs. All but what says otherwise is required.
type Config struct {
	NodeName string
	Client   *client.Client
	// RootDir is the kubelet's directory.
	RootDir string
	// Logs is where the containers' logs are.
	Logs logs.Files
	// StaticPodPath is a directory of manifests, or one file; empty: no static pods. StaticPeriod is how often it is read anew.
	StaticPodPath string
	StaticPeriod  time.Duration
	Runtime       cri.Config
	Cgroups       cgroup.Config
	Images        images.Config
	ImageGC       images.Policy
	DNS           dns.Config
	// Node is completed with the client, the runtime and the images.
	Node node.Config
	// MaxBackOff is the longest delay between restarts of a crashing container, 0 for upstream's 5 min.
	MaxBackOff time.Duration
	// Sysctls are the kernel parameters that pods may set.
	Sysctls *sysctl.Allowed
	// Metrics gets the kubelet's own metrics; nil: none are kept.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Kubelet runs the pods of one node.
type Kubelet struct {
	cfg     Config
	log     *slog.Logger
	cri     *cri.Client
	workers *podworker.Workers
	// admission owns who has a place on the node.
	admission *admission.Admitter
	// exec carries out what is planned for pods.
	exec     *executor.Executor
	status   *status.Writer
	storage  *localstorage.Watcher
	images   *images.Manager
	volumes  *volume.Manager
	cgroups  *cgroup.Manager
	objects  *objects.Cache
	probes   *prober.Manager
	node     *node.Node
	events   *recorder
	services cache.SharedIndexInformer
	api      *config.API
	files    *config.Files
	relist   *pleg.Generator
	stats    *stats.Collector
	metrics  *metrics
	capacity corev1.ResourceList

	// listedOnce is closed when the runtime was first listed: which pods it had before is known then.
	listedOnce chan struct{}
	// earlier are the static pods that it had, by uid; read only once listedOnce is closed.
	earlier map[types.UID]*corev1.Pod
	// sources is locked while a source tells of a pod.
	sources sync.Mutex
	// mirrorsDue makes the mirror pods be looked at.
	mirrorsDue chan struct{}

	mu      sync.Mutex
	pods    map[types.UID]*corev1.Pod // by the pod's own uid, mirrors not among them
	mirrors map[string]*corev1.Pod    // by namespace/name
	// outlived holds the mirrors, by their own uid, of static pods that have ended: what they say is not of a pod that comes back.
	outlived map[types.UID]bool
	states   map[types.UID]*podState
}

// New connects to the runtime and composes the parts; nothing runs yet. Probes live as long as ctx.
func New(ctx context.Context, cfg Config) (*Kubelet, error) {
	if cfg.NodeName == "" || cfg.Client == nil || cfg.Log == nil || cfg.Sysctls == nil {
		return nil, errors.New("kubelet: NodeName, Client, Sysctls and Log are required")
	}
	k := &Kubelet{cfg: cfg, log: cfg.Log, metrics: newMetrics(cfg.Metrics), mirrorsDue: make(chan struct{}, 1), listedOnce: make(chan struct{}), earlier: map[types.UID]*corev1.Pod{}, pods: map[types.UID]*corev1.Pod{},
		mirrors: map[string]*corev1.Pod{}, outlived: map[types.UID]bool{}, states: map[types.UID]*podState{}}
	var err error
	if k.cgroups, err = cgroup.New(cfg.Cgroups); err != nil {
		return nil, fmt.Errorf("prepare cgroups: %w", err)
	}
	cfg.Runtime.CgroupV2 = k.cgroups.Version() == 2
	cfg.Runtime.Observe = k.metrics.called
	cfg.Runtime.SystemdCgroups = cfg.Cgroups.Driver == cgroup.DriverSystemd
	dial, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if k.cri, err = cri.Dial(dial, cfg.Runtime); err != nil {
		return nil, err
	}
	cfg.Images.Service = k.cri
	k.images = images.New(cfg.Images)
	k.capacity = cfg.Node.Machine.Capacity()
	k.events = newRecorder(cfg.Client, cfg.NodeName)
	k.status = status.New(cfg.Client, cfg.Log)
	k.workers = podworker.New(k, func(pod *corev1.Pod) { k.metrics.restartedPod(runtime.IsStatic(pod)) }, cfg.Log)
	k.probes = prober.New(ctx, prober.Config{Exec: k.probeExec, Changed: k.changed, Event: k.events.Container, Started: time.Now(), Log: cfg.Log})
	if err = k.composeVolumes(); err == nil {
		err = k.composeNode()
	}
	if err == nil {
		err = k.composeStats()
	}
	if err == nil {
		err = k.composeSources()
	}
	if err != nil {
		return nil, errors.Join(err, k.cri.Close())
	}
	k.composeAdmission()
	if k.exec, err = k.newExecutor(); err != nil {
		return nil, errors.Join(err, k.cri.Close())
	}
	if k.storage, err = k.newStorage(); err != nil {
		return nil, errors.Join(err, k.cri.Close())
	}
	return k, nil
}

func (k *Kubelet) composeNode() error {
	n := k.cfg.Node
	n.Client, n.Name, n.Runtime, n.Images, n.Log, n.Now = k.cfg.Client, k.cfg.NodeName, k.cri, k.nodeImages, k.log, time.Now
	n.Relisted = func(now time.Time) error { return k.relist.Healthy(now) } // asked by Run only, when relist is there
	var err error
	if k.node, err = node.New(n); err != nil {
		return fmt.Errorf("prepare the node object: %w", err)
	}
	return nil
}

func (k *Kubelet) composeSources() error {
	var err error
	if k.api, err = config.NewAPI(k.cfg.Client.Objects("pods", "", "spec.nodeName="+k.cfg.NodeName), &k.sources); err != nil {
		return err
	}
	if k.cfg.StaticPodPath != "" {
		k.files = &config.Files{Path: k.cfg.StaticPodPath, Node: k.cfg.NodeName, Period: k.cfg.StaticPeriod, Mu: &k.sources, Log: k.log,
			Defaults: func(p *corev1.Pod) { core.DefaultPod(p); p.Status.QOSClass = podspec.QOSClass(p) }}
	}
	if k.services, err = newServices(k.cfg.Client.Objects("services", "", "")); err != nil {
		return err
	}
	k.relist = pleg.New(pleg.Config{Runtime: k.cri, Changed: k.changed, Listed: k.listed, Observe: k.metrics.relisted, Unsupported: cri.ErrNoEvents, Log: k.log})
	return nil
}

// Run does the node's work until ctx ends; pods go on running after it. Order: cgroups, what reports (status, events), the
// workers, the node, and last the sources of pods.
func (k *Kubelet) Run(ctx context.Context) error {
	if err := k.cgroups.Setup(); err != nil {
		return fmt.Errorf("make the cgroups of pods: %w", err)
	}
	defer k.cri.Close()
	stopEvents := k.events.start(ctx)
	defer stopEvents()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	run := func(name string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	run("status writer", k.status.Run)
	run("objects", k.objects.Run)
	run("volumes", k.volumes.Run)
	run("services", func(ctx context.Context) error { k.services.RunWithContext(ctx); return nil })
	run("pod workers", k.workers.Run)
	run("node", k.node.Run)
	run("static pods", k.runFiles)
	run("pods of the API server", k.runAPI)
	run("admission", k.openAdmission)
	run("mirror pods", k.runMirrors)
	run("relist", k.relist.Run)
	run("housekeeping", k.housekeeping)
	run("storage limits", k.storage.Run)
	<-ctx.Done()
	wg.Wait()
	k.probes.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// runAPI and runFiles tell of pods only when it is known which of them ran before: these keep their places.
func (k *Kubelet) runAPI(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.listedOnce:
	}
	return k.api.Run(ctx, apiSource{k, ctx})
}

func (k *Kubelet) runFiles(ctx context.Context) error {
	if k.files == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-k.listedOnce:
	}
	k.files.Earlier = k.earlier
	// The statuses of static pods are in their mirrors: they are worth a short wait, but not more, for the API server may be one of them.
	patience, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	cache.WaitForCacheSync(patience.Done(), k.api.Synced)
	return k.files.Run(ctx, fileSource{k})
}

// Synced tells whether all sources have told of all their pods once.
func (k *Kubelet) Synced() bool {
	return k.api.Synced() && (k.files == nil || k.files.Synced())
}

// Healthy is nil while the container runtime lists its pods.
func (k *Kubelet) Healthy() error { return k.relist.Healthy(time.Now()) }
