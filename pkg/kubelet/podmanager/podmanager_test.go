package podmanager

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"bonsai/pkg/kubelet/kubelettest"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/status"
)

// static is a version of the static pod job-n1.
func static(uid types.UID, hash string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-n1", Namespace: "default", UID: uid,
		Annotations: map[string]string{
			runtime.AnnotationConfigSource: runtime.SourceFile, runtime.AnnotationConfigHash: hash}}}
}

// owner is a Node that is registered when it is closed.
type owner chan struct{}

func (o owner) Registered() <-chan struct{} { return o }
func (owner) Object() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-uid"}}
}

// setup returns a Manager with the real record of statuses, and its API server.
func setup() (*Manager, *status.Writer, kubelettest.Client) {
	client := kubelettest.Client{Interface: fake.NewClientset()}
	w := status.New(client, func(time.Duration) {}, nil, slog.New(slog.DiscardHandler))
	return New(Config{Status: w, Client: client, Changed: func() {},
		Log: slog.New(slog.DiscardHandler)}), w, client
}

func TestMirror(t *testing.T) {
	t.Parallel()
	_, _, client := setup()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node-uid"}}
	p := static("s", "1")
	get := func() *corev1.Pod {
		m, err := client.CoreV1().Pods("default").Get(t.Context(), "job-n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if err := ensureMirror(t.Context(), client, p, nil, node); err != nil {
		t.Fatal(err)
	}
	m := get()
	if !runtime.IsMirror(m) || runtime.IsStatic(m) || !matches(m, p) || m.OwnerReferences[0].UID != "node-uid" {
		t.Errorf("mirror %+v", m.ObjectMeta)
	}
	changed := static("s", "2")
	if err := ensureMirror(t.Context(), client, changed, m, node); err != nil {
		t.Fatal(err)
	}
	if m = get(); !matches(m, changed) || matches(m, p) {
		t.Error("the mirror was not replaced")
	}
}

// A mirror that only its finalizers keep is not deleted again: whoever makes many of them would have each change of one
// delete all.
func TestFinalizersKeepAMirror(t *testing.T) {
	t.Parallel()
	m, _, client := setup()
	now, zero, long := metav1.Now(), int64(0), int64(30)
	for name, grace := range map[string]*int64{"kept": &zero, "ending": &long, "alive": nil} {
		mirror := static(types.UID(name), "h")
		mirror.Name, mirror.Finalizers = name, []string{"example.com/kept"}
		mirror.Annotations[runtime.AnnotationConfigMirror] = "h"
		if mirror.DeletionGracePeriodSeconds = grace; grace != nil {
			mirror.DeletionTimestamp = &now
		}
		m.UpdateMirror(mirror)
	}
	m.syncMirrors(t.Context(), owner(nil))
	var deleted []string
	for _, a := range client.Interface.(*fake.Clientset).Actions() {
		if d, ok := a.(clienttesting.DeleteAction); ok {
			deleted = append(deleted, d.GetName())
		}
	}
	if slices.Sort(deleted); !slices.Equal(deleted, []string{"alive", "ending"}) {
		t.Errorf("deleted are %q", deleted)
	}
}

// A static pod that comes back starts over; the mirror of its earlier life would say that it has ended already.
func TestAMirrorSpeaksOfOneLife(t *testing.T) {
	t.Parallel()
	m, _, _ := setup()
	pod := static("s", "h")
	mirror := func(uid types.UID) *corev1.Pod {
		x := mirrorOf(pod, nil)
		x.UID, x.ResourceVersion, x.Status.Phase = uid, string(uid), corev1.PodSucceeded
		return x
	}
	phase := func() corev1.PodPhase { return m.Shown(pod).Status.Phase }
	m.Update(pod)
	m.UpdateMirror(mirror("1"))
	if got := phase(); got != corev1.PodSucceeded {
		t.Fatalf("phase %q", got)
	}
	m.Forget(pod)
	late := mirror("1")
	late.ResourceVersion = "9" // what was written last comes back late
	m.UpdateMirror(late)
	if m.Begin("s") == nil {
		t.Error("the pod is not known")
	}
	if got := phase(); got != "" {
		t.Errorf("phase of an earlier life: %q", got)
	}
	m.RemoveMirror(late)
	m.UpdateMirror(mirror("2"))
	if got := phase(); got != corev1.PodSucceeded || len(m.outlived) != 0 {
		t.Errorf("the new mirror is not taken: %q", got)
	}
	m.UpdateMirror(mirrorOf(static("s", "other"), nil))
	if m.Forget(pod); len(m.outlived) != 0 {
		t.Error("the mirror of another version counts as this life's")
	}
}

// The record of statuses forgets a pod with the end of its life; one that begins again is shown by the same object,
// unless it is gone.
func TestBegin(t *testing.T) {
	t.Parallel()
	m, w, _ := setup()
	gate := corev1.PodCondition{Type: "example.com/gate", Status: corev1.ConditionTrue}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{gate}}}
	shows := func() bool {
		return slices.Contains(m.Shown(&corev1.Pod{ObjectMeta: pod.ObjectMeta}).Status.Conditions, gate)
	}
	if m.Begin("u") != nil || m.Known("u") || m.Update(pod) != nil || m.Update(pod) != pod || !m.Known("u") {
		t.Error("what is known of a pod before and after its source has told of it")
	}
	if w.Forget("u"); shows() {
		t.Fatal("the record does not forget")
	}
	if m.Begin("u") != pod || !shows() {
		t.Error("the object that shows the pod is not told of again")
	}
	m.Remove(pod)
	if m.Begin("u") != nil || shows() || m.Known("u") {
		t.Error("a pod that is gone is still shown")
	}
}

func TestPodByName(t *testing.T) {
	t.Parallel()
	m, w, _ := setup()
	gone := metav1.Now()
	m.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "old",
		DeletionTimestamp: &gone}})
	m.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "new"}})
	m.Update(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "other", UID: "other"}})
	w.Set("new", corev1.PodStatus{Phase: corev1.PodRunning})
	if got, ok := m.Pod("ns", "p"); !ok || got.UID != "new" || got.Status.Phase != corev1.PodRunning {
		t.Errorf("%v %+v", ok, got)
	}
	if _, ok := m.Pod("ns", "none"); ok {
		t.Error("found a pod that is not there")
	}
	if got := m.Pods(); len(got) != 3 || len(m.Desired()) != 3 || !slices.ContainsFunc(got, func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning
	}) {
		t.Errorf("%d pods", len(got))
	}
}

// The mirrors are made equal to the static pods at once on a change, not before the Node is there and all pods are
// known.
func TestMirrorsFollowTheStaticPods(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, w, client := setup()
		exists := func() bool {
			_, err := client.CoreV1().Pods("default").Get(t.Context(), "job-n1", metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			return err == nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var synced atomic.Bool
		registered := make(chan struct{})
		done, written := make(chan error), make(chan error)
		pod := static("s", "h")
		m.Update(pod)
		go func() { written <- w.Run(ctx) }()
		go func() { done <- m.Run(ctx, owner(registered), synced.Load) }()
		if synctest.Wait(); exists() {
			t.Error("a mirror before the Node is there")
		}
		close(registered)
		if synctest.Wait(); exists() {
			t.Error("a mirror before all pods are known")
		}
		synced.Store(true)
		time.Sleep(mirrorPeriod)
		if synctest.Wait(); !exists() {
			t.Fatal("no mirror")
		}
		mirror, err := client.CoreV1().Pods("default").Get(t.Context(), "job-n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.UpdateMirror(mirror)
		m.Remove(pod)
		if synctest.Wait(); exists() {
			t.Error("the mirror outlives its pod")
		}
		m.RemoveMirror(mirror)
		m.Update(static("t", "h"))
		if synctest.Wait(); !exists() {
			t.Error("no mirror of the pod that came back")
		}
		cancel()
		if err := errors.Join(<-done, <-written); err != nil {
			t.Error(err)
		}
	})
}
