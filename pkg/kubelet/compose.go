package kubelet

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"

	"bonsai/api/core"
	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/allocation"
	"bonsai/pkg/kubelet/apparmor"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/host"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/images/credentialprovider"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/pleg"
	"bonsai/pkg/kubelet/pluginmanager"
	"bonsai/pkg/kubelet/podmanager"
	"bonsai/pkg/kubelet/podsyncer"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/runtimeclass"
	"bonsai/pkg/kubelet/stats"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/kubelet/syncloop"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/claims"
	"bonsai/pkg/kubelet/volume/csi"
	"bonsai/pkg/kubelet/volume/csi/csinode"
	"bonsai/pkg/kubelet/volume/emptydir"
	"bonsai/pkg/kubelet/volume/growth"
	"bonsai/pkg/kubelet/volume/hostpath"
	"bonsai/pkg/kubelet/volume/image"
	"bonsai/pkg/kubelet/volume/local"
	"bonsai/pkg/kubelet/volume/nfs"
	"bonsai/pkg/kubelet/volume/projected"
)

// dialTimeout is how long the container runtime may take to answer when the kubelet begins.
const dialTimeout = time.Minute

func (k *Kubelet) dial(ctx context.Context) (*cri.Client, error) {
	cfg := k.cfg.Runtime
	cfg.CgroupV2 = k.cgroups.Version() == 2
	cfg.SystemdCgroups = k.cfg.Cgroups.Driver == cgroup.DriverSystemd
	cfg.Observe = k.metrics.Called
	podsDir, err := k.podsDir()
	if err != nil {
		return nil, err
	}
	cfg.TerminationLog = func(uid types.UID, container, path string) bool {
		return volume.IsTerminationLog(podsDir, uid, container, path)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return cri.Dial(ctx, cfg)
}

// podsDir is the directory of all pods' directories, as an absolute path.
func (k *Kubelet) podsDir() (string, error) {
	dir, err := filepath.Abs(filepath.Join(k.cfg.RootDir, "pods"))
	if err != nil {
		return "", fmt.Errorf("find the kubelet's directory: %w", err)
	}
	return dir, nil
}

// compose makes the parts. Each is given those before it; of later ones it gets functions, which are not called before Run.
func (k *Kubelet) compose(ctx context.Context) error {
	if err := k.composeImages(); err != nil {
		return err
	}
	if err := k.composeNode(); err != nil {
		return err
	}
	if err := k.composeResources(); err != nil {
		return err
	}
	k.pods = podmanager.New(podmanager.Config{Status: k.status, Client: k.cfg.Client, Node: k.node.Object, Log: k.cfg.Log})
	allocations, err := allocation.Open(filepath.Join(k.cfg.RootDir, "allocations"))
	if err != nil {
		return err
	}
	k.admission = admission.New(admission.Config{Node: k.node.Object, Allocatable: k.node.Allocatable, Allocated: k.devices.Manages, MayResize: k.resources.MayResize, Refuse: k.refuse, Sysctls: k.cfg.Sysctls.Check,
		AppArmor: func(pod *corev1.Pod) error { return apparmor.Check(k.cfg.AppArmor, pod) },
		Wake:     func(uid types.UID) { k.workers.Wake(uid) }, Checkpoint: allocations, Log: k.cfg.Log,
		Accepted: func(why admission.Trigger) { k.metrics.Accepted(string(why)) },
		Preempted: func(uid types.UID, lacked corev1.ResourceName) {
			k.metrics.Preempted(lacked)
			k.workers.Interrupt(uid)
		}})
	if err := k.composeVolumes(); err != nil {
		return err
	}
	if err := k.composeWorkers(ctx); err != nil {
		return err
	}
	k.unused = k.imageCollector()
	if err := k.composeEviction(); err != nil {
		return err
	}
	if err := k.composeShutdown(); err != nil {
		return err
	}
	if err := k.composeSources(); err != nil {
		return err
	}
	return k.composeHost()
}

// composeImages makes what brings images, and what remembers with whose credentials it did.
func (k *Kubelet) composeImages() error {
	cfg := k.cfg.Images
	cfg.Service, cfg.Account, cfg.Pulled = k.cri, k.cfg.Client.ServiceAccount, k.metrics.ImagePulled
	cfg.Ensured = func(q images.Request) { k.metrics.ImageEnsured(q.Policy, q.Present, q.Pull) }
	cfg.Checked = func(c images.Check) { k.metrics.ImageChecked(string(c)) }
	var err error
	if cfg.Records, err = images.OpenRecords(filepath.Join(k.cfg.RootDir, "image_manager"), time.Now); err != nil {
		return err
	}
	if k.cfg.Metrics != nil {
		countRecords(k.cfg.Metrics, cfg.Records)
	}
	if len(k.cfg.CredentialProviders) > 0 {
		cfg.Providers, err = credentialprovider.New(credentialprovider.Config{Providers: k.cfg.CredentialProviders, BinDir: k.cfg.CredentialProviderDir, Accounts: k.cfg.Client,
			Metrics: credentialprovider.NewMetrics(k.cfg.Metrics), Now: time.Now, Log: k.cfg.Log})
		if err != nil {
			return err
		}
	}
	k.images = images.New(cfg)
	return nil
}

func (k *Kubelet) composeNode() error {
	cfg := k.cfg.Node
	cfg.Client, cfg.Name, cfg.Runtime, cfg.Log, cfg.Now = k.cfg.Client, k.cfg.NodeName, k.cri, k.cfg.Log, time.Now
	cfg.Images = func(ctx context.Context) ([]corev1.ContainerImage, error) {
		list, err := k.cri.Images(ctx)
		return images.Named(list), err
	}
	cfg.Pressure, cfg.Down = k.pressure, func() error { return k.shutdown.Err() }
	cfg.Devices = func() (capacity, allocatable corev1.ResourceList) { return k.devices.Capacity() }
	cfg.VolumesInUse = func() ([]corev1.UniqueVolumeName, error) { return k.csi.InUse() }
	cfg.Relisted = func(now time.Time) error { return k.relist.Healthy(now) }
	cfg.Startup, cfg.Changed = k.metrics, k.nodeChanged
	var err error
	if k.node, err = node.New(cfg); err != nil {
		return fmt.Errorf("prepare the node object: %w", err)
	}
	return nil
}

func (k *Kubelet) composeVolumes() error {
	var err error
	k.objects, err = objects.New(objects.Config{Client: k.cfg.Client, Log: k.cfg.Log, Changed: func(uids []types.UID) {
		k.volumes.Changed(uids)
		for _, uid := range uids {
			k.workers.Wake(uid)
		}
	}})
	if err != nil {
		return fmt.Errorf("prepare the cache of configMaps and secrets: %w", err)
	}
	podsDir, err := k.podsDir()
	if err != nil {
		return err
	}
	plugins := filepath.Join(k.cfg.RootDir, "plugins")
	k.csiNode = &csinode.Announcer{Client: k.cfg.Client, Name: k.cfg.NodeName, Log: k.cfg.Log}
	k.csiDrivers = csi.NewDrivers(k.csiNode, k.cfg.Client, k.cfg.Log)
	k.csi = csi.New(csi.Config{Dir: filepath.Join(plugins, "kubernetes.io", "csi"), PodsDir: podsDir, Node: k.cfg.NodeName, Client: k.cfg.Client, Drivers: k.csiDrivers,
		ShowInUse: k.node.ShowInUse})
	sources, err := volumeSources(projected.Config{Objects: k.objects, Tokens: k.cfg.Client, Field: env.Field, Allocatable: k.allocatableMemory, Now: time.Now, Log: k.cfg.Log,
		Resource: func(pod *corev1.Pod, container string, sel *corev1.ResourceFieldSelector) (string, error) {
			return env.ResourceOf(pod, container, sel, k.node.Allocatable())
		}}, local.Config{Dir: filepath.Join(plugins, "kubernetes.io", "local-volume", "mounts"), PodsDir: podsDir, Mounts: mount.NewSafeFormatAndMount(mount.New(""), utilexec.New())}, k.csi)
	if err != nil {
		return err
	}
	k.volumes, err = volume.New(volume.Config{PodsDir: podsDir, Sources: sources, Log: k.cfg.Log, Metrics: k.metrics,
		Claims: &claims.Resolver{Client: k.cfg.Client, Node: k.node.Object},
		Growth: growth.New(growth.Config{Client: k.cfg.Client, Node: k.cfg.NodeName, Event: k.events.Pod, ClaimEvent: k.events.Claim, Now: time.Now})})
	if err != nil {
		return fmt.Errorf("prepare volumes: %w", err)
	}
	return nil
}

// volumeSources is the list of all kinds of volumes; drivers are those of storage drivers.
func volumeSources(api projected.Config, disks local.Config, drivers *csi.Source) ([]volume.Source, error) {
	list := []volume.Source{emptydir.New(api.Allocatable), hostpath.New(), image.New(), local.New(disks), nfs.New(disks.Mounts), drivers}
	files, err := projected.New(api)
	for _, s := range files {
		list = append(list, s)
	}
	return list, err
}

// allocatableMemory is what all pods together may have of the node's memory, in bytes.
func (k *Kubelet) allocatableMemory() int64 {
	all := k.node.Allocatable()
	return all.Memory().Value()
}

// composeWorkers makes what is done to a pod, and the workers that do it.
func (k *Kubelet) composeWorkers(ctx context.Context) error {
	var err error
	if k.services, err = env.NewServices(k.cfg.Client.Objects("services", "", "")); err != nil {
		return err
	}
	if k.classes, err = runtimeclass.New(k.cfg.Client.RuntimeClasses()); err != nil {
		return err
	}
	k.probes = prober.New(ctx, prober.Config{Exec: k.cri.ExecSync, Changed: k.changed, Event: k.events.Container, Started: time.Now(), Log: k.cfg.Log, Metrics: prober.NewMetrics(k.probeMetrics)})
	k.executor, err = executor.New(executor.Config{Runtime: k.cri, Images: k.images, Volumes: k.volumes, Resources: k.resources, Cgroups: k.cgroups, Allocations: k.admission, Node: k.node,
		Classes: k.classes, Events: k.events, Metrics: k.metrics, Environment: k.environment, Secret: k.objects.Secret, Message: cri.Message, ImageVolumeFailed: cri.ImageVolumeFailed, DNS: k.cfg.DNS, Logs: k.cfg.Logs,
		Capacity: k.cfg.Node.Machine.Capacity(), MaxBackOff: k.cfg.MaxBackOff, Log: k.cfg.Log})
	if err != nil {
		return err
	}
	k.storage, err = localstorage.NewWatcher(localstorage.Config{Runtime: k.cri, Exceeded: func(uid types.UID, why runtime.Ending) { k.end(uid, why) }, Pods: k.active, Log: k.cfg.Log,
		Measured: func(took time.Duration) { k.metrics.VolumeMeasured("du", took) },
		LogDir:   func(pod *corev1.Pod) string { return k.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID) },
		EmptyDir: func(pod *corev1.Pod, volume string) (string, error) {
			dir, err := k.volumes.PodDir(pod.UID)
			return emptydir.Path(dir, volume), err
		}})
	if err != nil {
		return err
	}
	k.localUse = localstorage.NewRecent(k.storage, time.Now)
	k.syncer = podsyncer.New(podsyncer.Config{Runtime: k.cri, Executor: k.executor, Pods: k.pods, Status: k.status, Admission: k.admission, Probes: k.probes,
		Volumes: k.volumes, Cgroups: k.cgroups, Resources: k.resources, Objects: k.objects, Logs: k.cfg.Logs, Events: k.events, Evicted: k.metrics.Evicted, Running: k.metrics.PodRunning, Terminated: k.metrics.Terminated, Resizes: k.metrics,
		HostIPs: k.node.HostIPs, Active: k.active, Now: time.Now, Log: k.cfg.Log})
	k.workers = podworker.New(k.syncer, func(pod *corev1.Pod) { k.metrics.RestartedPod(runtime.IsStatic(pod)) }, k.metrics, k.cfg.Log)
	return nil
}

// environment are the variables of a container, of a pod with these volumes.
func (k *Kubelet) environment(ctx context.Context, pod *corev1.Pod, c *corev1.Container, a executor.Addresses, volumes map[string]volume.Mounted) ([]env.Var, error) {
	services, err := k.services.For(ctx, pod)
	if err != nil {
		return nil, err
	}
	return env.Build(ctx, env.Input{Pod: pod, Container: c, PodIPs: a.Pod, HostIPs: a.Host, Allocatable: k.node.Allocatable(), Services: services},
		sources{k.objects, volumes})
}

// sources are what variables of one pod come from.
type sources struct {
	*objects.Cache
	volumes map[string]volume.Mounted
}

// File implements env.Sources.
func (s sources) File(name, path string) ([]byte, error) {
	v, ok := s.volumes[name]
	if !ok || v.HostPath == "" || v.Device {
		return nil, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", name)
	}
	return v.ReadFile(path)
}

// active are the pods whose containers may run.
func (k *Kubelet) active() []*corev1.Pod { return k.workers.Active(k.pods.Told()) }

// changed tells who works on a pod that something happened to it in the runtime or its probes.
func (k *Kubelet) changed(uid types.UID) {
	k.syncer.Changed(uid)
	k.workers.Wake(uid)
}

func (k *Kubelet) composeSources() error {
	api, err := config.NewAPI(k.cfg.Client.Objects("pods", "", "spec.nodeName="+k.cfg.NodeName))
	if err != nil {
		return err
	}
	cfg := syncloop.Config{API: api, Pods: k.pods, Workers: k.workers, Admission: k.admission, Objects: k.objects, Volumes: k.volumes, Own: status.Own, Orphaned: k.metrics.Orphaned,
		Registered: k.node.Registered(), Log: k.cfg.Log}
	if k.cfg.StaticPodPath != "" {
		cfg.Static = &config.Files{Path: k.cfg.StaticPodPath, Node: k.cfg.NodeName, Period: k.cfg.StaticPeriod, Log: k.cfg.Log,
			Defaults: func(p *corev1.Pod) { core.DefaultPod(p); p.Status.QOSClass = podspec.QOSClass(p) }}
	}
	k.sources = syncloop.New(cfg)
	k.relist = pleg.New(pleg.Config{Runtime: k.cri, Changed: k.changed, Listed: k.sources.Listed, Observe: k.metrics.Relisted, Unsupported: cri.ErrNoEvents, Log: k.cfg.Log})
	return nil
}

// composeHost makes what the HTTPS API shows.
func (k *Kubelet) composeHost() error {
	k.host = host.Host{Runtime: k.cri, Checkpoints: filepath.Join(k.cfg.RootDir, "checkpoints"), Now: time.Now, LogPath: k.cfg.Logs.Path,
		ReadLog: func(ctx context.Context, path string, o *corev1.PodLogOptions, running func(context.Context) (bool, error), stdout, stderr io.Writer) error {
			return logs.Read(ctx, path, logs.OptionsOf(o, time.Now()), running, stdout, stderr)
		}}
	var err error
	k.stats, err = stats.New(stats.Config{NodeName: k.cfg.NodeName, Started: time.Now(), Dir: k.cfg.RootDir, Pods: k.pods.Pods, Now: time.Now,
		Pod: func(pod *corev1.Pod) (stats.Usage, error) {
			u, err := k.cgroups.PodUsage(pod)
			return stats.Usage(u), err
		},
		Container: func(pod *corev1.Pod, id string) (stats.Usage, error) {
			u, err := k.cgroups.ContainerUsage(pod, id)
			return stats.Usage(u), err
		}, Network: k.podNetwork, Filesystems: k.filesystems, Disk: k.disks,
		AllPods: func() (stats.Usage, error) {
			u, err := k.cgroups.PodsUsage()
			return stats.Usage(u), err
		}})
	if err != nil {
		return fmt.Errorf("prepare statistics: %w", err)
	}
	return nil
}

// plugins finds the node's plug-ins, and is the list of who works with those of each type.
func (k *Kubelet) plugins() *pluginmanager.Manager {
	return &pluginmanager.Manager{Dir: filepath.Join(k.cfg.RootDir, "plugins_registry"), Log: k.cfg.Log,
		Handlers: map[string]pluginmanager.Handler{registerapi.CSIPlugin: k.csiDrivers, registerapi.DevicePlugin: k.devices, registerapi.DRAPlugin: k.dra}}
}

// rotator keeps the logs of running containers small.
func (k *Kubelet) rotator() *logs.Rotator {
	return &logs.Rotator{MaxSize: k.cfg.LogMaxSize, MaxFiles: k.cfg.LogMaxFiles, Interval: k.cfg.LogPeriod, Runtime: k.cri, Files: k.cfg.Logs, Now: time.Now, Log: k.cfg.Log}
}
