// Package kubelet is the node's agent. The work is done by the packages below it, each with its own data; this one says what there is and who
// is told of what (compose.go), and runs it. Start at Run for the order of things, at podsyncer.Sync for the life of a pod.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	kubeletconfigv1 "k8s.io/kubelet/config/v1"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cpu"
	"bonsai/pkg/kubelet/cm/devices"
	"bonsai/pkg/kubelet/cm/dra"
	"bonsai/pkg/kubelet/cm/memory"
	"bonsai/pkg/kubelet/cm/userns"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/events"
	"bonsai/pkg/kubelet/eviction"
	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/host"
	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/metrics"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/pleg"
	"bonsai/pkg/kubelet/podmanager"
	"bonsai/pkg/kubelet/podsyncer"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/remote"
	"bonsai/pkg/kubelet/runtimeclass"
	"bonsai/pkg/kubelet/server"
	"bonsai/pkg/kubelet/shutdown"
	"bonsai/pkg/kubelet/stats"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/kubelet/syncloop"
	"bonsai/pkg/kubelet/sysctl"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/csi"
	"bonsai/pkg/kubelet/volume/csi/csinode"
)

// Config is what a Kubelet needs. All but what says otherwise is required.
type Config struct {
	NodeName string
	Client   *remote.API
	// RootDir is the kubelet's directory.
	RootDir string
	// Logs is where the containers' logs are. One grows to LogMaxSize bytes, and LogMaxFiles of a container are kept. They are looked at
	// each LogPeriod, 10 s by default.
	Logs        logs.Files
	LogMaxSize  int64
	LogMaxFiles int
	LogPeriod   time.Duration
	// StaticPodPath is a directory of manifests, or one file; empty: no static pods. StaticPeriod is how often it is read again.
	StaticPodPath string
	StaticPeriod  time.Duration
	Runtime       cri.Config
	Cgroups       cgroup.Config
	Images        images.Config
	ImageGC       images.Policy
	ContainerGC   housekeeping.ContainerPolicy
	// CredentialProviders are asked for credentials of images; their programs are in CredentialProviderDir.
	CredentialProviders   []kubeletconfigv1.CredentialProvider
	CredentialProviderDir string
	// Shutdown is what pods get for their end when the node goes down; nothing: they end with it.
	Shutdown []shutdown.Period
	Eviction pressure.Policy
	DNS      dns.Config
	// Node is completed with the client, the runtime and the images.
	Node node.Config
	// MaxBackOff is the longest delay between restarts of a crashing container, 0 for upstream's 5 min.
	MaxBackOff time.Duration
	// Machine is what CPUs and NUMA nodes there are; Topology, whose nodes and distances follow from it, and CPUs and Memory how they are given to pods.
	Machine  cm.Machine
	Topology cm.Topology
	CPUs     cpu.Settings
	Memory   memory.Settings
	// Users are the node's ids that pods may have as users of their own.
	Users userns.Ranges
	// Sysctls are the kernel parameters that pods may set.
	Sysctls *sysctl.Allowed
	// AppArmor: whether the node can confine containers by AppArmor.
	AppArmor bool
	// Metrics gets the kubelet's own metrics; nil: none are kept.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Kubelet runs the pods of one node. It is the list of its parts.
type Kubelet struct {
	cfg       Config
	cri       *cri.Client
	cgroups   *cgroup.Manager
	resources *cm.Manager
	devices   *devices.Manager
	dra       *dra.Manager
	cpu       *cpu.Manager
	images    *images.Manager
	unused    *images.Collector
	events    *events.Recorder
	metrics   *metrics.Metrics
	// probeMetrics are those of probes, which are served apart.
	probeMetrics *prometheus.Registry
	node         *node.Node
	// nodeChanged is notified when something changed that the Node's status shows.
	nodeChanged notify.Signal
	status      *status.Writer
	pods        *podmanager.Manager
	admission   *admission.Admitter
	objects     *objects.Cache
	services    *env.Services
	classes     *runtimeclass.Classes
	volumes     *volume.Manager
	// csi are the volumes of storage drivers, csiDrivers the node's, csiNode tells of them.
	csi        *csi.Source
	csiDrivers *csi.Drivers
	csiNode    *csinode.Announcer
	storage    *localstorage.Watcher
	localUse   *localstorage.Recent
	eviction   *eviction.Manager
	shutdown   *shutdown.Manager
	probes     *prober.Manager
	executor   *executor.Executor
	syncer     *podsyncer.Syncer
	workers    *podworker.Workers
	sources    *syncloop.Loop
	relist     *pleg.Generator
	host       host.Host
	stats      *stats.Collector
}

// New connects to the runtime and composes the parts; nothing runs yet. Probes live as long as ctx.
func New(ctx context.Context, cfg Config) (*Kubelet, error) {
	if cfg.NodeName == "" || cfg.Client == nil || cfg.Log == nil || cfg.Sysctls == nil {
		return nil, errors.New("kubelet: NodeName, Client, Sysctls and Log are required")
	}
	k := &Kubelet{cfg: cfg, nodeChanged: notify.New(), metrics: metrics.New(cfg.Metrics), probeMetrics: prometheus.NewRegistry(), events: events.New(cfg.Client.Scheme(), cfg.NodeName)}
	k.metrics.Began(machineStarted(), time.Now())
	k.status = status.New(cfg.Client, k.metrics.StatusSynced, cfg.Log)
	k.cfg.Cgroups.Observe = k.metrics.CgroupWork
	var err error
	if k.cgroups, err = cgroup.New(k.cfg.Cgroups); err != nil {
		return nil, fmt.Errorf("prepare cgroups: %w", err)
	}
	if k.cri, err = k.dial(ctx); err != nil {
		return nil, err
	}
	if err := k.compose(ctx); err != nil {
		return nil, errors.Join(err, k.cri.Close())
	}
	if cfg.Metrics != nil {
		k.countPods(cfg.Metrics)
		cfg.Metrics.MustRegister(newVolumeMetrics(k.volumes), newWorkingPods(k.workers.Count))
	}
	return k, nil
}

// Run does the node's work until ctx ends; pods go on running after it. Order: cgroups, what reports (status, events), the
// workers, the node, and last the sources of pods.
func (k *Kubelet) Run(ctx context.Context) error {
	if err := k.cgroups.Setup(); err != nil {
		return fmt.Errorf("make the cgroups of pods: %w", err)
	}
	defer k.cri.Close()
	defer k.events.Start(k.cfg.Client.Events(ctx))()
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
	run("plug-ins", k.plugins().Run)
	run("device plug-ins", k.devices.Run)
	run("DRA drivers", k.dra.Run)
	run("CPU manager", k.cpu.Run)
	run("pod-resources API", k.podResources().Run)
	run("CSINode", func(ctx context.Context) error { return k.csiNode.Run(ctx, k.node.Registered()) })
	run("services", k.services.Run)
	run("runtime classes", k.classes.Run)
	run("pod workers", k.workers.Run)
	run("node", k.node.Run)
	run("sources of pods", k.sources.Run)
	run("mirror pods", func(ctx context.Context) error { return k.pods.Run(ctx, k.node.Registered(), k.sources.Synced) })
	run("relist", k.relist.Run)
	run("housekeeping", func(ctx context.Context) error { return housekeeping.Run(ctx, k.housekeeping(), k.cfg.Log) })
	run("storage limits", k.storage.Run)
	run("eviction", k.eviction.Run)
	run("shutdown", k.shutdown.Run)
	run("rotation of logs", k.rotator().Run)
	<-ctx.Done()
	wg.Wait()
	k.probes.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Server returns the server of the kubelet's HTTPS API; cfg is completed with what it shows of the node.
func (k *Kubelet) Server(cfg server.Config) (*server.Server, error) {
	cfg.NodeName, cfg.Log, cfg.Healthy = k.cfg.NodeName, k.cfg.Log, k.Healthy
	cfg.Pods, cfg.Runtime, cfg.Logs, cfg.Stats = k.pods, k.host, k.host, k.stats.Summary
	cfg.Probes = promhttp.HandlerFor(k.probeMetrics, promhttp.HandlerOpts{})
	var err error
	if cfg.Cadvisor, err = k.cadvisorMetrics(); err != nil {
		return nil, fmt.Errorf("prepare /metrics/cadvisor: %w", err)
	}
	return server.New(cfg)
}

// Healthy is nil while the container runtime lists its pods.
func (k *Kubelet) Healthy() error { return k.relist.Healthy(time.Now()) }

// Addresses are the node's addresses as the API shows them.
func (k *Kubelet) Addresses() []corev1.NodeAddress { return k.node.Addresses() }

// NodeIPs are the node's addresses, the primary one first.
func (k *Kubelet) NodeIPs() []string { return k.node.HostIPs() }
