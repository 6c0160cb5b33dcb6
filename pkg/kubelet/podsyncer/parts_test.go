package podsyncer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
)

// parts are all that a Syncer works with. They note what is done, in order, and fail where fail says so, by the note's
// first word.
type parts struct {
	mu    sync.Mutex
	notes []string
	fail  map[string]error
	// rt is what the runtime has; act changes it.
	rt  runtime.PodStatus
	act func(plan lifecycle.Plan)
	// killing, if not nil, holds up the end of containers.
	killing chan struct{}
	told    *corev1.Pod
	status  corev1.PodStatus // as last set
	said    string           // the last event's message
	ends    []int32          // exit codes that were counted
	verdict admission.Verdict
	why     *admission.Rejection
	ending  *runtime.Ending
	started int           // how often it was told that a pod runs that did not
	created time.Duration // how old it was then, and how much of that was for its images and init containers
	images  time.Duration
	facts   int // how often they were gathered
	resize  runtime.Resizing
	// allocated and freed count what pods were given of what the node has few of.
	allocated, freed int
}

func (p *parts) note(format string, args ...any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := fmt.Sprintf(format, args...)
	p.notes = append(p.notes, n)
	what, _, _ := strings.Cut(n, " ")
	return p.fail[what]
}

// took returns the notes so far and starts over.
func (p *parts) took() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := strings.Join(p.notes, ", ")
	p.notes = nil
	return n
}

func (p *parts) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rt := p.rt
	rt.Containers = slices.Clone(p.rt.Containers)
	return &rt, p.fail["look"]
}

// set changes what the runtime has.
func (p *parts) set(f func(*runtime.PodStatus)) { p.mu.Lock(); defer p.mu.Unlock(); f(&p.rt) }

func (p *parts) RemoveContainer(_ context.Context, id string) error {
	return p.note("container- %s", id)
}

func (p *parts) RemoveSandbox(_ context.Context, id string) error { return p.note("sandbox- %s", id) }

func (p *parts) RetryPulls(context.Context, *corev1.Pod, *executor.Pod) {}

func (p *parts) BackOff(*corev1.Pod, *executor.Pod, *runtime.PodStatus) map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts++
	return nil
}

func (p *parts) HoldBack(lifecycle.Facts, *executor.Pod, lifecycle.Plan) {}

func (p *parts) PrepareRunning(context.Context, *corev1.Pod, *executor.Pod, *runtime.PodStatus) error {
	return p.note("prepare")
}

func (p *parts) Act(_ context.Context, _ lifecycle.Facts, _ *executor.Pod, plan lifecycle.Plan) error {
	if p.act != nil {
		p.act(plan)
	}
	return p.note("act sandbox=%v start=%d", plan.NewSandbox, len(plan.Start))
}

func (p *parts) KillPod(ctx context.Context, _ *corev1.Pod, _ *runtime.PodStatus, grace time.Duration) error {
	if p.killing != nil {
		select {
		case <-p.killing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.note("kill %s", grace)
}

func (p *parts) Begin(types.UID) *corev1.Pod { p.note("begin"); return p.told }

func (p *parts) Shown(pod *corev1.Pod) *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := *pod
	shown.Status = *p.status.DeepCopy()
	return &shown
}

func (p *parts) Forget(*corev1.Pod) { p.note("forget") }

func (p *parts) Set(_ types.UID, st corev1.PodStatus) {
	p.note("status %s %s", st.Phase, st.Reason)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = st
}

func (p *parts) Delete(types.UID) { p.note("delete") }

func (p *parts) Admit(*corev1.Pod) (admission.Verdict, *admission.Rejection) { return p.verdict, p.why }

func (p *parts) Allocation(pod *corev1.Pod) (*corev1.Pod, runtime.Resizing) {
	if p.resize.Containers == nil {
		return pod, runtime.Resizing{}
	}
	return p.resize.Of(pod), p.resize
}

func (p *parts) Release(types.UID) { p.note("release") }

func (p *parts) Requested(runtime.Resources, runtime.Resources) { p.note("requested") }

func (p *parts) Infeasible(static bool) { p.note("infeasible %v", static) }

func (p *parts) States(*corev1.Pod, string, bool) {}

func (p *parts) Resolved(_ *corev1.Pod, resolution string, _ time.Duration) { p.note("%s", resolution) }

func (p *parts) Done(_ time.Duration, err error) { p.note("done %v", err) }

func (p *parts) Update(_ *corev1.Pod, targets map[string]prober.Target) {
	p.note("probes %d", len(targets))
}

func (p *parts) Result(string, prober.Kind) runtime.ProbeResult { return runtime.ProbeSuccess }

func (p *parts) StopLivenessAndStartup(types.UID) { p.note("readiness only") }

func (p *parts) Unmount(context.Context, types.UID) error { return p.note("unmount") }

func (p *parts) UpdateQoS(_ context.Context, pods []*corev1.Pod) error {
	return p.note("qos %d", len(pods))
}

func (p *parts) Unprepare(context.Context, types.UID) error { return p.note("unprepare") }

func (p *parts) Track(*corev1.Pod) { p.note("track") }

func (p *parts) Untrack(types.UID) { p.note("untrack") }

func (p *parts) Pod(_ *corev1.Pod, _, reason, message string) {
	p.note("event %s", reason)
	p.said = message
}

// What has other methods of the same names.
type (
	probes  struct{ *parts }
	volumes struct{ *parts }
	// resources says only what fails.
	resources struct{ *parts }
	logs      struct{ *parts }
)

func (r resources) Admit(context.Context, *corev1.Pod) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allocated++
	return r.fail["allocate"]
}

func (r resources) Release(types.UID) { r.mu.Lock(); defer r.mu.Unlock(); r.freed++ }

func (r resources) Health(*corev1.Pod) map[string][]corev1.ResourceStatus {
	return map[string][]corev1.ResourceStatus{"c": {{Name: "example.com/foo"}}}
}

func (p probes) Remove(types.UID) { p.note("probes-") }

func (v volumes) Remove(context.Context, types.UID) error { return v.note("directory-") }

func (l logs) RemovePod(namespace, name string, _ types.UID) error {
	return l.note("logs- %s %s", namespace, name)
}

// setup returns a Syncer of a node where a pod is admitted and nothing runs.
func setup() (*Syncer, *parts) {
	p := &parts{verdict: admission.Admitted, fail: map[string]error{}}
	return New(Config{Runtime: p, Executor: p, Pods: p, Status: p, Admission: p, Probes: probes{p}, Volumes: volumes{p},
		Cgroups: p, Resources: resources{p}, Objects: p,
		Logs: logs{p}, Events: p, Changes: NewChanges(), Resizes: p, Terminated: func(_ runtime.Kind, exit int32) {
			p.ends = append(p.ends, exit)
		}, Rejected: func(reason string) { p.note("rejected %s", reason) }, Evicted: func(signal string) {
			p.note("evicted %s", signal)
		}, Running: func(_, created, images time.Duration) {
			p.started, p.created, p.images = p.started+1, created, images
		}, HostIPs: func() []string { return []string{"192.0.2.1"} },
		Active: func() []*corev1.Pod { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}), p
}

func onePod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Namespace: "ns"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
}

// runs is a pod whose only container runs.
func runs(rt *runtime.PodStatus) {
	rt.Sandboxes = []runtime.Sandbox{{ID: "s1", Ready: true, IPs: []string{"10.0.0.1"}}}
	rt.Containers = []runtime.Container{
		{ID: runtime.ContainerID{Type: "r", ID: "c1"}, Name: "c", SandboxID: "s1", State: runtime.StateRunning,
			StartedAt: time.Now(),
			Hash:      lifecycle.Hash(&corev1.Container{Name: "c"})}}
}

// ended is one whose container and sandbox have ended.
func ended(rt *runtime.PodStatus) {
	rt.Sandboxes[0].Ready = false
	rt.Containers[0].State, rt.Containers[0].FinishedAt = runtime.StateExited, time.Now()
}

func expect(t *testing.T, what string, p *parts, want string) {
	t.Helper()
	if got := p.took(); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}
