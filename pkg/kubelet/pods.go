package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/core"
	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/allocation"
	"bonsai/pkg/kubelet/apparmor"
	"bonsai/pkg/kubelet/cniresult"
	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/eviction"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/podsyncer"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/runtimeclass"
	"bonsai/pkg/kubelet/shutdown"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/kubelet/syncloop"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/emptydir"
)

// podParts are the parts that take pods from their sources through their lives.
type podParts struct {
	services *env.Services
	classes  *runtimeclass.Classes
	probes   *prober.Manager
	syncer   *podsyncer.Syncer
	sources  *syncloop.Loop
	// storage ends pods that exceed their limits of local storage, eviction before the node runs short, shutdown before
	// it goes down.
	storage  *localstorage.Watcher
	eviction *eviction.Manager
	shutdown *shutdown.Manager
}

// newPodParts constructs the parts in the order of their dependencies: admission, probes and executor, the syncer that
// uses them, the sources that feed it, and last the three that may end pods. Probes live as long as ctx.
func newPodParts(ctx context.Context, cfg *Config, r reporting, s signals, c *containers,
	n *nodeParts, v *volumeParts) (*podParts, error) {
	p := &podParts{}
	var err error
	if p.services, err = env.NewServices(cfg.Client.Objects("services", "", "")); err != nil {
		return nil, err
	}
	// Services and RuntimeClasses are watched as a whole, because any pod may need any of them.
	if p.classes, err = runtimeclass.New(cfg.Client.RuntimeClasses()); err != nil {
		return nil, err
	}
	// Admission decides on allocations from the checkpoint, so it must be open before the first pod is known.
	admitter, err := newAdmitter(cfg, r, s, n)
	if err != nil {
		return nil, err
	}
	// Probes have the context of New and not of Run: they start with containers, and Run waits for them at its end.
	p.probes = prober.New(ctx, prober.Config{Exec: c.cri.ExecSync, Changed: s.changed, Event: r.events.Container,
		Started: time.Now(), Tracer: cfg.Tracer, Log: cfg.Log,
		Metrics: prober.NewMetrics(r.probes)})
	act, err := executor.New(executor.Config{Runtime: c.cri, Images: c.images, Volumes: v.manager,
		Resources: n.resources, Cgroups: c.cgroups,
		Allocations: admitter, Node: n.node, Classes: p.classes, Events: r.events, Metrics: r.metrics,
		Environment: environment{p.services, v.objects, n.node}.build, Secret: v.objects.Secret, Message: cri.Message,
		ImageVolumeFailed: cri.ImageVolumeFailed, DNS: cfg.DNS, Logs: cfg.Logs, Capacity: cfg.Node.Machine.Capacity(),
		MaxBackOff: cfg.MaxBackOff, Tracer: cfg.Tracer,
		NetworkTimes: cniresult.Dir(cniresult.Default).Times, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	p.syncer = podsyncer.New(podsyncer.Config{Runtime: c.cri, Executor: act, Pods: s.pods, Status: r.status,
		Admission: admitter, Probes: p.probes, Volumes: v.manager, Cgroups: c.cgroups, Resources: n.resources,
		Objects: v.objects, Logs: cfg.Logs, Events: r.events, Changes: s.changes,
		Evicted: r.metrics.Evicted, Rejected: r.metrics.PodRejected,
		Running: r.metrics.PodRunning, Terminated: r.metrics.Terminated, Resizes: r.metrics,
		HostIPs: n.node.HostIPs, Active: s.active, Now: time.Now, Tracer: cfg.Tracer,
		Log: cfg.Log})
	if p.sources, err = newSources(cfg, r, s, n, v, admitter); err != nil {
		return nil, err
	}
	// The three below share it, so that a pod is ended once, with the first reason.
	end := ending{p.syncer, s.workers}.end
	if p.storage, err = newStorage(cfg, r, s, c, v, end); err != nil {
		return nil, err
	}
	if p.eviction, err = newEviction(cfg, r, s, c, p.sources, v, p.storage, end); err != nil {
		return nil, err
	}
	p.shutdown, err = shutdown.New(shutdown.Config{Periods: cfg.Shutdown, Connect: shutdown.ConnectSystemBus,
		Pods: s.active,
		End:  end, State: s.shutdown, Changed: s.node.Notify, Began: r.metrics.ShutdownBegan,
		Over: r.metrics.ShutdownOver,
		Log:  cfg.Log})
	return p, err
}

// newAdmitter returns the admission of pods. Its checkpoint of allocations lets pods keep, across a restart of the
// kubelet, the resources that an in-place resize gave them. A preempted pod is interrupted: the sync that is under way
// would only prolong its life.
func newAdmitter(cfg *Config, r reporting, s signals, n *nodeParts) (*admission.Admitter, error) {
	allocations, err := allocation.Open(filepath.Join(cfg.RootDir, "allocations"))
	if err != nil {
		return nil, err
	}
	return admission.New(admission.Config{Node: n.node.Object, Allocatable: n.node.Allocatable,
		Allocated: n.devices.Manages,
		MayResize: n.resources.MayResize, Refuse: s.refuse, Sysctls: cfg.Sysctls.Check,
		AppArmor: func(pod *corev1.Pod) error { return apparmor.Check(cfg.AppArmor, pod) },
		Wake:     s.workers.Wake, Checkpoint: allocations, Log: cfg.Log,
		Accepted: func(why admission.Trigger) { r.metrics.Accepted(string(why)) },
		Admitted: r.metrics.PodAdmitted,
		// Admission preempts a pod to make room for a critical one.
		Preempted: func(uid types.UID, lacked corev1.ResourceName) {
			r.metrics.Preempted(lacked)
			s.workers.Interrupt(uid)
		}}), nil
}

// newSources returns the loop over the sources of pods: the API and, if configured, a directory and a URL of manifests.
// The field selector spec.nodeName is what the node authorizer allows a kubelet to watch.
func newSources(cfg *Config, r reporting, s signals, n *nodeParts, v *volumeParts,
	admitter *admission.Admitter) (*syncloop.Loop, error) {
	api, err := config.NewAPI(cfg.Client.Objects("pods", "", "spec.nodeName="+cfg.NodeName))
	if err != nil {
		return nil, err
	}
	x := syncloop.Config{API: api, Pods: s.pods, Workers: s.workers, Admission: admitter, Objects: v.objects,
		Volumes: v.manager, Own: status.Own, Orphaned: r.metrics.Orphaned, Registered: n.node.Registered(),
		Tracer: cfg.Tracer, Log: cfg.Log}
	var static config.Static
	if cfg.StaticPodPath != "" {
		static.Files = &config.Files{Path: cfg.StaticPodPath, Node: cfg.NodeName, Period: cfg.StaticPeriod,
			Defaults: completeStatic, Log: cfg.Log}
	}
	if cfg.StaticPodURL != nil {
		static.URL = &config.URL{URL: cfg.StaticPodURL, Header: cfg.StaticPodURLHeader, Node: cfg.NodeName,
			Period: cfg.StaticURLPeriod, Defaults: completeStatic, Log: cfg.Log}
	}
	if static != (config.Static{}) {
		x.Static = static
	}
	return syncloop.New(x), nil
}

// completeStatic is the API server's defaulting and validation of a static pod, which never passes there.
func completeStatic(p *corev1.Pod) error {
	core.DefaultPod(p)
	podspec.DefaultPodResources(&p.Spec)
	p.Status.QOSClass = podspec.QOSClass(p)
	return podspec.Validate(&p.Spec, field.NewPath("spec")).ToAggregate()
}

// newStorage returns the watcher that ends pods beyond their limits of local storage. Measuring walks directories and
// may take long; Measured shows for how long.
func newStorage(cfg *Config, r reporting, s signals, c *containers, v *volumeParts,
	end func(types.UID, runtime.Ending) bool) (*localstorage.Watcher, error) {
	return localstorage.NewWatcher(localstorage.Config{Runtime: c.cri, Pods: s.active, Log: cfg.Log,
		Exceeded: func(uid types.UID, why runtime.Ending) { end(uid, why) },
		Measured: func(took time.Duration) { r.metrics.VolumeMeasured("du", took) },
		LogDir:   func(pod *corev1.Pod) string { return cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID) },
		EmptyDir: func(pod *corev1.Pod, volume string) (string, error) {
			dir, err := v.manager.PodDir(pod.UID)
			return emptydir.Path(dir, volume), err
		},
		Messages: func(pod *corev1.Pod, container string) (string, error) {
			return v.manager.TerminationLogs(pod.UID, container)
		}})
}

// ending ends pods that the node cannot keep. Eviction, shutdown and the limits of storage all use it.
//
// It may be called from any goroutine. The order inside matters: a worker that is interrupted before the reason is
// recorded would sync the pod as usual.
type ending struct {
	syncer  *podsyncer.Syncer
	workers *podworker.Workers
}

// end reports false if the pod is ending already, or if no worker has begun with it. It interrupts the worker only when
// the reason was recorded: an interrupted sync looks for it.
func (e ending) end(uid types.UID, why runtime.Ending) bool {
	ends := e.syncer.End(uid, why)
	if ends {
		e.workers.Interrupt(uid)
	}
	return ends
}

// environment builds the variables of containers.
type environment struct {
	services *env.Services
	objects  *objects.Cache
	node     *node.Node
}

// build returns the variables of a container whose pod has these volumes. Services waits until the Services are known,
// so that the container of a pod of the API does not start with some of their variables missing.
func (e environment) build(ctx context.Context, pod *corev1.Pod, c *corev1.Container, a executor.Addresses,
	volumes map[string]volume.Mounted) ([]env.Var, error) {
	// The wait ends with ctx, which is the worker's: an interrupted sync does not wait on.
	services, err := e.services.For(ctx, pod)
	if err != nil {
		return nil, err
	}
	return env.Build(ctx, env.Input{Pod: pod, Container: c, PodIPs: a.Pod, HostIPs: a.Host,
		Allocatable: e.node.Allocatable(), Services: services},
		variables{e.objects, volumes})
}

// variables are the sources of one pod's variables.
type variables struct {
	*objects.Cache
	volumes map[string]volume.Mounted
}

// File implements env.Sources. A block device has no files, and a volume without a path on the host is not mounted
// here.
func (s variables) File(name, path string) ([]byte, error) {
	v, ok := s.volumes[name]
	if !ok || v.HostPath == "" || v.Device {
		return nil, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", name)
	}
	return v.ReadFile(path)
}
