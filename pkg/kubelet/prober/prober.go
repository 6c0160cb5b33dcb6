// Package prober runs the probes of containers: one goroutine per container and kind of probe, from the start of its
// pod to its end. It keeps results by container id, so that a new container never inherits those of its predecessor,
// and wakes the pod's worker, which acts on them.
//
// The rules: https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/.
package prober

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// Kind is one of the three kinds of probes.
type Kind int

// The kinds of probes.
const (
	Startup Kind = iota
	Readiness
	Liveness
)

// String returns the kind as events name it.
func (k Kind) String() string { return [...]string{"Startup", "Readiness", "Liveness"}[k] }

// Target is the running container a probe is about.
type Target struct {
	// ID is the container's id ("containerd://…"), "" if it does not run.
	ID      string
	RawID   string
	Started time.Time
	// PodIP is the pod's primary address, the node's own for pods of the host network.
	PodIP string
	// StartupDone is set if the startup probe has succeeded, or there is none.
	StartupDone bool
	// Ready is the container's readiness as last reported at the API server.
	Ready bool
}

// Config is what a Manager needs. All fields but Exec, Metrics and Tracer are required.
type Config struct {
	// Exec runs a command in a container.
	Exec func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error)
	// Changed is called when a result changed; it must not block.
	Changed func(types.UID)
	// Event records an event about a container.
	Event func(pod *corev1.Pod, container, kind, reason, message string)
	// Metrics counts; nil: nothing is counted.
	Metrics *Metrics
	// Started is when this kubelet started: containers that ran before keep their readiness until a probe says
	// otherwise.
	Started time.Time
	// Tracer records the steps of pods; nil: nothing is recorded.
	Tracer *trace.Tracer
	Log    *slog.Logger
}

// Manager runs the probes of all pods. It is safe for concurrent use. mu guards pods and results; no probe runs under
// it, and Changed is called without it.
type Manager struct {
	cfg Config

	mu      sync.Mutex
	ctx     context.Context
	wg      sync.WaitGroup
	pods    map[types.UID]*podProbes
	results map[key]runtime.ProbeResult
}

type key struct {
	id   string
	kind Kind
}

type podProbes struct {
	pod     *corev1.Pod
	cancel  context.CancelFunc
	ctx     context.Context
	targets map[string]Target
	workers map[workerKey]*worker
}

type workerKey struct {
	container string
	kind      Kind
}

// New returns a Manager whose probes live as long as ctx.
func New(ctx context.Context, cfg Config) *Manager {
	return &Manager{cfg: cfg, ctx: ctx, pods: map[types.UID]*podProbes{}, results: map[key]runtime.ProbeResult{}}
}

// Wait returns when all probes have ended, which they do when the manager's context has.
func (m *Manager) Wait() { m.wg.Wait() }

// Update starts the pod's probes that do not run yet, and gives all of them the present containers. Results of
// containers that no longer run are dropped first.
func (m *Manager) Update(pod *corev1.Pod, targets map[string]Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[pod.UID]
	if p == nil {
		p = &podProbes{workers: map[workerKey]*worker{}}
		p.ctx, p.cancel = context.WithCancel(m.ctx)
		m.pods[pod.UID] = p
	}
	m.forgetOld(p, targets)
	m.adoptLocked(p, targets)
	p.pod, p.targets = pod, targets
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			m.ensure(p, c)
		}
	}
	for i := range pod.Spec.Containers {
		m.ensure(p, &pod.Spec.Containers[i])
	}
	for _, w := range p.workers {
		w.wake.Notify()
	}
}

// adoptLocked takes over the reported state of containers that ran before this kubelet: they stay ready and started
// until a probe says otherwise. Without this, a restart of the kubelet would take every pod out of its Services.
func (m *Manager) adoptLocked(p *podProbes, targets map[string]Target) {
	for name, t := range targets {
		if p.targets[name].ID == t.ID || !t.Started.Before(m.cfg.Started) {
			continue
		}
		if t.Ready {
			m.results[key{t.ID, Readiness}] = runtime.ProbeSuccess
		}
		if t.StartupDone {
			m.results[key{t.ID, Startup}] = runtime.ProbeSuccess
		}
	}
}

// forgetOld drops the results of containers that no longer run.
func (m *Manager) forgetOld(p *podProbes, targets map[string]Target) {
	for name, old := range p.targets {
		if old.ID != "" && targets[name].ID != old.ID {
			for _, k := range []Kind{Startup, Readiness, Liveness} {
				delete(m.results, key{old.ID, k})
			}
		}
	}
}

// ensure starts the probes of a container that do not run yet. Each gets a random delay within one period, by which run
// postpones the first probe of a container that started before the kubelet.
func (m *Manager) ensure(p *podProbes, c *corev1.Container) {
	for kind, probe := range map[Kind]*corev1.Probe{Startup: c.StartupProbe, Readiness: c.ReadinessProbe,
		Liveness: c.LivenessProbe} {
		k := workerKey{c.Name, kind}
		if probe == nil || p.workers[k] != nil || m.ctx.Err() != nil {
			continue
		}
		w := &worker{manager: m, pod: p.pod, uid: p.pod.UID, container: c, kind: kind, probe: probe, wake: notify.New()}
		p.workers[k] = w
		m.wg.Go(func() { w.run(p.ctx, time.Duration(rand.Int64N(int64(period(probe))))) })
	}
}

// StopLivenessAndStartup ends those probes of a pod that terminates; readiness goes on until the pod has ended.
func (m *Manager) StopLivenessAndStartup(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil {
		return
	}
	for k, w := range p.workers {
		if k.kind != Readiness {
			w.stopped.Store(true)
		}
	}
}

// Remove ends all probes of a pod and forgets their results.
func (m *Manager) Remove(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil {
		return
	}
	p.cancel()
	m.forgetOld(p, nil)
	m.cfg.Metrics.forget(p.pod, uid)
	delete(m.pods, uid)
}

// Result returns the last result of the container's probe of that kind.
func (m *Manager) Result(id string, kind Kind) runtime.ProbeResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.results[key{id, kind}]
}

// set records a result, if its container is still the pod's, and wakes the pod's worker if it is another one.
func (m *Manager) set(uid types.UID, id string, kind Kind, r runtime.ProbeResult) {
	m.mu.Lock()
	k := key{id, kind}
	known := false
	if p := m.pods[uid]; p != nil {
		for _, t := range p.targets {
			known = known || t.ID == id
		}
	}
	changed := known && m.results[k] != r
	if changed {
		m.results[k] = r
	}
	m.mu.Unlock()
	if changed {
		m.cfg.Changed(uid)
	}
}

// target returns the pod and the running container of a name, which may have changed since the last probe.
func (m *Manager) target(uid types.UID, container string) (*corev1.Pod, Target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pods[uid]
	if p == nil {
		return nil, Target{}
	}
	return p.pod, p.targets[container]
}

func period(p *corev1.Probe) time.Duration {
	return time.Duration(max(p.PeriodSeconds, 1)) * time.Second
}

// TargetsOf returns the running containers of a pod by name, with their state in the pod's status. ip is the pod's
// primary address.
func TargetsOf(pod *corev1.Pod, st *runtime.PodStatus, ip string) map[string]Target {
	out := map[string]Target{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			cs := st.Container(list[i].Name)
			if cs == nil || cs.State != runtime.StateRunning {
				continue
			}
			out[list[i].Name] = Target{ID: cs.ID.String(), RawID: cs.ID.ID, Started: cs.StartedAt, PodIP: ip,
				StartupDone: list[i].StartupProbe == nil}
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			if t, ok := out[s.Name]; ok && t.ID == s.ContainerID {
				t.Ready = s.Ready
				t.StartupDone = t.StartupDone || (s.Started != nil && *s.Started)
				out[s.Name] = t
			}
		}
	}
	return out
}
