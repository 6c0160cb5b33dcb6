package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/allocation"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/kubelettest"
	"bonsai/pkg/kubelet/metrics"
	"bonsai/pkg/kubelet/objects"
	"bonsai/pkg/kubelet/podmanager"
	"bonsai/pkg/kubelet/podsyncer"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/status"
	"bonsai/pkg/kubelet/syncloop"
)

// told is a source that tells of pods and then has nothing more to say.
type told struct {
	pods   []*corev1.Pod
	synced atomic.Bool
}

func (s *told) Run(ctx context.Context, h syncloop.Handler) error {
	for _, p := range s.pods {
		h.Update(p)
	}
	s.synced.Store(true)
	<-ctx.Done()
	return nil
}

func (s *told) Synced() bool { return s.synced.Load() }

// empty is a runtime in which nothing runs any more, and an executor that has nothing to end.
type empty struct {
	podsyncer.Runtime
	*executor.Executor
}

func (empty) PodStatus(context.Context, types.UID) (*runtime.PodStatus, error) {
	return &runtime.PodStatus{}, nil
}

func (empty) KillPod(context.Context, *corev1.Pod, *runtime.PodStatus, time.Duration) error {
	return nil
}

// A pod that the runtime had before the kubelet began keeps its place; a place is free before the API hears of the
// pod's end.
func TestPlacesAcrossARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pod := func(uid types.UID) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid), Namespace: "ns"}}
		}
		log, client := slog.New(slog.DiscardHandler), kubelettest.Client{Interface: fake.NewClientset()}
		m := metrics.New(nil)
		statuses := status.New(client, func(time.Duration) {}, nil, log)
		pods := podmanager.New(podmanager.Config{Status: statuses, Client: client, Changed: func() {},
			Log: log})
		allocations, err := allocation.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		admitter := admission.New(admission.Config{Node: func() *corev1.Node { return nil }, Wake: func(types.UID) {},
			Allocatable: func() corev1.ResourceList {
				return corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
			},
			Refuse:    func(*corev1.Pod) *admission.Rejection { return nil },
			MayResize: func(*corev1.Pod, runtime.Resources) string { return "" },
			Allocated: func(corev1.ResourceName) bool { return false },
			Sysctls:   func(*corev1.Pod) error { return nil }, AppArmor: func(*corev1.Pod) error { return nil },
			Preempted:  func(types.UID, corev1.ResourceName) {},
			Checkpoint: allocations, Accepted: func(admission.Trigger) {}, Log: log})
		cache, err := objects.New(objects.Config{Client: client, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		syncer := podsyncer.New(podsyncer.Config{Runtime: empty{}, Executor: empty{Executor: &executor.Executor{}},
			Pods: pods, Status: statuses, Admission: admitter, Changes: podsyncer.NewChanges(),
			Resources: &cm.Manager{Log: log},
			Probes:    prober.New(t.Context(), prober.Config{}), Resizes: m, Running: m.PodRunning,
			Terminated: m.Terminated, HostIPs: func() []string { return nil }, Now: time.Now, Log: log})
		workers := podworker.New(func(*corev1.Pod) {}, m, log)
		registered := make(chan struct{})
		close(registered)
		sources := syncloop.New(syncloop.Config{API: &told{pods: []*corev1.Pod{pod("first"), pod("ran"),
			pod("second")}}, Pods: pods, Workers: workers,
			Admission: admitter, Objects: cache, Own: status.Own, Registered: registered, Log: log})
		ctx, cancel := context.WithCancel(t.Context())
		done, written := make(chan error), make(chan error)
		go func() { done <- sources.Run(ctx) }()
		go func() { written <- statuses.Run(ctx) }()
		sources.Listed([]*runtime.PodStatus{{UID: "ran", Name: "ran", Sandboxes: []runtime.Sandbox{{ID: "s"}}}})
		time.Sleep(time.Second)
		synctest.Wait()
		admitted := func(uid types.UID) bool {
			verdict, _ := admitter.Admit(pod(uid))
			return verdict == admission.Admitted
		}
		if admitted("first") || !admitted("ran") { // the node has room for one
			t.Error("a new pod took the place of one that ran before")
		}
		if err := syncer.Terminate(ctx, pod("ran"), 0); err != nil {
			t.Error(err)
		}
		if !admitted("second") {
			t.Error("the place of the pod that has ended is not free")
		}
		cancel()
		if err := errors.Join(<-done, <-written); err != nil {
			t.Error(err)
		}
	})
}
