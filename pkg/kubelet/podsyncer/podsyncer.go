// Package podsyncer does what a pod's worker asks for (podworker.Steps): round by round it looks at the pod in the
// runtime, gathers the facts once, has a plan made of them, reports the status and has the plan carried out, until the
// plan is empty; and it ends pods and takes away what is left of them. It owns what is remembered of a pod between
// rounds.
package podsyncer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// Runtime is the container runtime.
type Runtime interface {
	PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error)
	RemoveContainer(ctx context.Context, id string) error
	RemoveSandbox(ctx context.Context, id string) error
}

// Executor carries out plans.
type Executor interface {
	// RetryPulls lets containers be tried again at once if their pull secrets have changed.
	RetryPulls(ctx context.Context, pod *corev1.Pod, p *executor.Pod)
	// BackOff returns, by name, the times before which containers must not be started again.
	BackOff(pod *corev1.Pod, p *executor.Pod, rt *runtime.PodStatus) map[string]time.Time
	// HoldBack records why containers wait that the plan holds back.
	HoldBack(f lifecycle.Facts, p *executor.Pod, plan lifecycle.Plan)
	// PrepareRunning gives a pod that already runs when the kubelet starts what it needs on the node.
	PrepareRunning(ctx context.Context, pod *corev1.Pod, p *executor.Pod, rt *runtime.PodStatus) error
	Act(ctx context.Context, f lifecycle.Facts, p *executor.Pod, plan lifecycle.Plan) error
	// KillPod ends all containers within the grace period, then the sandboxes.
	KillPod(ctx context.Context, pod *corev1.Pod, rt *runtime.PodStatus, grace time.Duration) error
}

// Pods has the pods as their sources want them.
type Pods interface {
	// Begin is called when a life of a pod begins; it returns what the source last had, nil if the pod is gone.
	Begin(uid types.UID) *corev1.Pod
	// Shown is the pod with its newest status.
	Shown(pod *corev1.Pod) *corev1.Pod
	// Forget is called when a life of a pod has ended.
	Forget(pod *corev1.Pod)
}

// Status is the record of statuses, from which they are written to the API server.
type Status interface {
	Set(uid types.UID, st corev1.PodStatus)
	// Delete deletes the pod's object after its last status was written.
	Delete(uid types.UID)
}

// Admission gives pods their places on the node.
type Admission interface {
	Admit(pod *corev1.Pod) (admission.Verdict, *admission.Rejection)
	// Allocation returns the pod with its spec replaced by the allocated resources, and the state of its resize.
	Allocation(pod *corev1.Pod) (*corev1.Pod, runtime.Resizing)
	Release(uid types.UID)
}

// Probes runs the probes of containers.
type Probes interface {
	Update(pod *corev1.Pod, targets map[string]prober.Target)
	Result(id string, kind prober.Kind) runtime.ProbeResult
	StopLivenessAndStartup(uid types.UID)
	Remove(uid types.UID)
}

// Volumes removes volumes.
type Volumes interface {
	// Unmount removes the volumes of a pod whose containers are gone, Remove its directory.
	Unmount(ctx context.Context, uid types.UID) error
	Remove(ctx context.Context, uid types.UID) error
}

// Cgroups divides the node's CPU.
type Cgroups interface {
	UpdateQoS(ctx context.Context, pods []*corev1.Pod) error
}

// Resources gives pods the scarce resources of the node, and takes back all that they were given.
type Resources interface {
	// Admit gives a pod what it asks for. A *cm.Refusal is why the node does not take the pod.
	Admit(ctx context.Context, pod *corev1.Pod) error
	// Release frees what other pods may have now. Unprepare, later, removes the traces.
	Release(uid types.UID)
	// Health returns the health of the devices that a pod has, by container name.
	Health(pod *corev1.Pod) map[string][]corev1.ResourceStatus
	Unprepare(ctx context.Context, uid types.UID) error
}

// Objects watches what pods refer to.
type Objects interface {
	Track(pod *corev1.Pod)
	Untrack(uid types.UID)
}

// Logs has the containers' logs.
type Logs interface {
	RemovePod(namespace, name string, uid types.UID) error
}

// Events tells users of steps, in upstream's words. kind is Normal or Warning.
type Events interface {
	Pod(pod *corev1.Pod, kind, reason, message string)
}

// Resizes counts resizes.
type Resizes interface {
	// Requested counts what containers of a pod ask for in place of what they have.
	Requested(has, asks runtime.Resources)
	// Infeasible counts a resize that will never be possible, of a static pod or of another.
	Infeasible(static bool)
	// States records the state of a pod's resize: whether it is Deferred or Infeasible ("": neither), and whether it is
	// in progress.
	States(pod *corev1.Pod, pending string, inProgress bool)
	// Resolved records how the wait of a deferred resize ended (accepted, reverted or terminated), after how long.
	Resolved(pod *corev1.Pod, resolution string, waited time.Duration)
	// Done records a resize that was done, or failed.
	Done(took time.Duration, err error)
}

// Config is what a Syncer needs; everything is required.
type Config struct {
	Runtime   Runtime
	Executor  Executor
	Pods      Pods
	Status    Status
	Admission Admission
	Probes    Probes
	Volumes   Volumes
	Cgroups   Cgroups
	Resources Resources
	Objects   Objects
	Logs      Logs
	Events    Events
	// Changes has a signal for each pod, which is notified when something happens to the pod.
	Changes *Changes
	// Evicted counts a pod that was ended to relieve what the signal names.
	Evicted func(signal string)
	// Rejected counts a pod that got no place, by the reason in its status.
	Rejected func(reason string)
	Resizes  Resizes
	// Running receives the time from a pod's first round until it ran, and from its creation, 0 if that is unknown,
	// with the part that its images and init containers took. Only pods that this kubelet has started count.
	Running func(seen, created, images time.Duration)
	// Terminated counts a container that has ended, with its exit code.
	Terminated func(kind runtime.Kind, exit int32)
	// HostIPs are the node's addresses, the primary one first.
	HostIPs func() []string
	// Active are the pods whose containers may run.
	Active func() []*corev1.Pod
	Now    func() time.Time
	// Tracer records the steps of pods; nil: nothing is recorded.
	Tracer *trace.Tracer
	Log    *slog.Logger
}

// Syncer does the steps of all pods. Its methods are safe for concurrent use. The steps of one pod come one after the
// other, from its worker.
type Syncer struct {
	cfg Config

	mu     sync.Mutex
	states map[types.UID]*podState
}

// New returns a Syncer that remembers nothing of any pod.
func New(cfg Config) *Syncer { return &Syncer{cfg: cfg, states: map[types.UID]*podState{}} }

// podState is what is remembered about a pod between rounds. Only the pod's worker touches it, except for changed and,
// under the Syncer's mu, ending.
type podState struct {
	// begun: the first round has begun; since is when.
	begun bool
	since time.Time
	// ran: it was reported that the pod runs.
	ran bool
	// ended are the containers in the runtime whose end was counted, by id.
	ended map[string]bool
	// admitted: the pod has its place, and counts in the cgroups of the QoS classes.
	admitted bool
	// rejected is why the node does not take, or not keep, the pod.
	rejected *admission.Rejection
	// disruption is why the kubelet ends a pod that it had taken, "" while it does not.
	disruption string
	// ending is why the node ends the pod, nil while it does not.
	ending *runtime.Ending
	// exec is what the executor remembers about the pod.
	exec *executor.Pod
	// resize is what users and metrics have been told about the pod's resize.
	resize resize
	// changed is notified when something happened to the pod.
	changed notify.Signal
}

// state returns what is remembered about a pod, made on first use.
func (s *Syncer) state(uid types.UID) *podState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.states[uid]
	if st == nil {
		st = &podState{exec: executor.NewPod(), changed: s.cfg.Changes.begin(uid)}
		s.states[uid] = st
	}
	return st
}
