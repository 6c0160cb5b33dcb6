package status

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
)

func object() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", ResourceVersion: "5"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{{Type: "gate", Status: "True"},
				{Type: corev1.PodReady, Status: "False"}}}}
}

func TestPatchKeepsOthersConditions(t *testing.T) {
	t.Parallel()
	b, err := newPatch(object(), &corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: "True"}, {Type: "gate", Status: "False"}}})
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Metadata struct{ UID string }
		Status   struct {
			Phase      string
			Conditions []map[string]any
		}
	}
	if err := json.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	if p.Metadata.UID != "u" || p.Status.Phase != "Running" || len(p.Status.Conditions) != 1 ||
		p.Status.Conditions[0]["type"] != "Ready" {
		t.Errorf("patch %s", b)
	}
}

// The conditions of a resize are taken back once they do not hold, also those of an earlier life of the kubelet.
func TestResizeConditionsGo(t *testing.T) {
	t.Parallel()
	o := object()
	o.Status.Conditions = append(o.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodResizePending, Status: "True"},
		corev1.PodCondition{Type: corev1.PodScheduled, Status: "True"})
	got := merged(&corev1.PodStatus{
		Conditions: []corev1.PodCondition{{Type: corev1.PodResizeInProgress, Status: "True"}}}, &o.Status).Conditions
	if has(got, corev1.PodResizePending) || !has(got, corev1.PodResizeInProgress) || !has(got, corev1.PodScheduled) ||
		!has(got, "gate") {
		t.Errorf("%+v", got)
	}
}

func TestWritesThenDeletes(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(object())
	w := New(kubelettest.Client{Interface: client}, func(time.Duration) {}, nil,
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	w.Observe("u", object())
	w.Set("u", corev1.PodStatus{Phase: corev1.PodRunning})
	eventually(t, func() bool {
		p, err := client.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning
	})
	w.Set("u", corev1.PodStatus{Phase: corev1.PodFailed})
	w.Delete("u")
	eventually(t, func() bool {
		_, err := client.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	var verbs []string
	for _, a := range client.Actions() {
		if a.GetVerb() != "get" {
			verbs = append(verbs, a.GetVerb()+" "+a.GetSubresource())
		}
	}
	// Told twice while it writes, it may write once more, which finds no pod.
	if got := strings.Join(verbs,
		","); !strings.HasPrefix(got, "patch status,") || !strings.Contains(got, "patch status,delete ") {
		t.Errorf("order of writes: %s", got)
	}
	cancel()
	<-done
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if ok() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatal("not within 10 s")
}

func TestAnOlderObjectDoesNotReplaceANewerOne(t *testing.T) {
	t.Parallel()
	w := New(kubelettest.Client{Interface: fake.NewClientset()}, func(time.Duration) {}, nil,
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	first, answer := object(), object()
	first.ResourceVersion = "3"
	w.Observe("u", first)
	w.written("u", w.entry("u"), answer)
	old := object()
	old.ResourceVersion, old.Status.Conditions = "4", nil
	w.Observe("u", old)
	if len(w.Shown(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}).Status.Conditions) != 2 {
		t.Error("the older object won")
	}
}

// After etcd was restored from a snapshot, the watch shows an object older than the one before, or another one of its
// version. The status that the snapshot does not have is written again.
func TestARestoredObjectGetsItsStatusAgain(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]string{"older": "4", "of the same version": "9"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset(object())
			w := New(kubelettest.Client{Interface: client}, func(time.Duration) {}, nil,
				slog.New(slog.NewTextHandler(io.Discard, nil)))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			want := corev1.PodStatus{Phase: corev1.PodRunning}
			w.Set("u", want)
			written := object()
			written.ResourceVersion, written.Status = "9", merged(&want, &written.Status)
			w.Observe("u", written)
			back := object()
			back.ResourceVersion = version
			w.Observe("u", back)
			eventually(t, func() bool {
				p, err := client.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{})
				return err == nil && p.Status.Phase == corev1.PodRunning
			})
			cancel()
			<-done
		})
	}
}

// Whose conditions are whose: a readiness gate's that its controller took away is not to be seen any more.
func TestOthersConditionsAreTheObjects(t *testing.T) {
	t.Parallel()
	w := New(nil, func(time.Duration) {}, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	is := func(kind corev1.PodConditionType, s corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: s}
	}
	st := corev1.PodStatus{Conditions: []corev1.PodCondition{is(corev1.PodReady, "True"),
		is("example.com/kept", "False"), is("example.com/gone", "True")}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: st}
	if got := w.Shown(pod).Status; len(got.Conditions) != 3 {
		t.Errorf("without an object: %v", got.Conditions)
	}
	o := object()
	o.Status.Conditions = []corev1.PodCondition{is(corev1.PodReady, "False"), is(corev1.PodInitialized, "True"),
		is("example.com/kept", "True")}
	w.Observe("u", o)
	want := []corev1.PodCondition{is(corev1.PodReady, "True"), is("example.com/kept", "True"),
		is(corev1.PodInitialized, "True")}
	if got := w.Shown(pod).Status; !slices.Equal(got.Conditions, want) {
		t.Errorf("%v, want %v", got.Conditions, want)
	}
	if got := merged(&st, &o.Status); !slices.Equal(got.Conditions, want) {
		t.Errorf("written: %v, want %v", got.Conditions, want)
	}
	if st.Conditions[1].Status != "False" {
		t.Error("the status that was asked about is changed")
	}
}

// A pod on its way to its start is told of once it runs, or after startingDelay: whichever comes first. All else is
// written at once.
func TestStartingStatusesAreJoined(t *testing.T) {
	t.Parallel()
	waiting := func(phase corev1.PodPhase, reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: phase,
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}}
	}
	creating, running := waiting(corev1.PodPending, "ContainerCreating"), corev1.PodStatus{Phase: corev1.PodRunning}
	withIP := creating
	withIP.PodIP = "10.0.0.1"
	again := *creating.DeepCopy()
	again.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	refused := creating
	refused.Message = "no room"
	type step struct {
		after time.Duration
		st    corev1.PodStatus
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  []time.Duration // when it is written
	}{
		{"runs soon", []step{{0, creating}, {200 * time.Millisecond, withIP}, {100 * time.Millisecond, running}},
			[]time.Duration{300 * time.Millisecond}},
		{"runs later", []step{{0, creating}, {200 * time.Millisecond, withIP}, {time.Second, running}},
			[]time.Duration{500 * time.Millisecond, 1200 * time.Millisecond}},
		{"waits for its image", []step{{0, waiting(corev1.PodPending, "ErrImagePull")}}, []time.Duration{0}},
		{"starts again", []step{{0, again}}, []time.Duration{0}},
		{"waits for a reason", []step{{0, refused}}, []time.Duration{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, version := time.Now(), 5
				var got []time.Duration
				w := New(nil, func(time.Duration) {}, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
				w.client = server{patch: func() (*corev1.Pod, error) {
					got = append(got, time.Since(begun))
					p := object()
					version++
					w.mu.Lock()
					defer w.mu.Unlock()
					p.ResourceVersion, p.Status = strconv.Itoa(version), merged(w.pods["u"].want, &p.Status)
					return p, nil
				}}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				w.Observe("u", object())
				for _, s := range c.steps {
					time.Sleep(s.after)
					w.Set("u", s.st)
				}
				time.Sleep(5 * time.Second)
				cancel()
				if <-done; !slices.Equal(got, c.want) {
					t.Errorf("written after %v, want %v", got, c.want)
				}
			})
		})
	}
}

// server answers as the test says.
type server struct {
	patch  func() (*corev1.Pod, error)
	delete func() error
}

func (s server) PatchPodStatus(context.Context, string, string, []byte) (*corev1.Pod, error) {
	return s.patch()
}
func (s server) DeletePod(context.Context, string, string, metav1.DeleteOptions) error {
	return s.delete()
}

func TestAForgottenPodStaysForgotten(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*Writer){
		"forgotten":     func(w *Writer) { w.Forget("u") },
		"its object":    func(w *Writer) { w.Unobserve("u") },
		"and came back": func(w *Writer) { w.Forget("u"); w.Set("u", corev1.PodStatus{}) },
	} {
		w := New(nil, func(time.Duration) {}, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
		w.client = server{patch: func() (*corev1.Pod, error) {
			forget(w) // while the server answers
			p := object()
			p.ResourceVersion = "6"
			return p, nil
		}}
		w.Observe("u", object())
		w.Set("u", corev1.PodStatus{Phase: corev1.PodRunning})
		if err := w.write(t.Context(), "u"); err != nil {
			t.Fatal(err)
		}
		if e := w.pods["u"]; e != nil && e.object != nil {
			t.Errorf("%s: the answer of a write brought it back", name)
		}
	}
}

func TestAConflictIsTriedAgain(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("written by others"))
	tries := 0
	w := New(nil, func(time.Duration) {}, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	w.client = server{
		patch: func() (*corev1.Pod, error) {
			if tries++; tries < 3 {
				return nil, conflict
			}
			p := object()
			p.Status.Phase, p.ResourceVersion = corev1.PodRunning, "6"
			return p, nil
		},
		delete: func() error {
			if tries++; tries < 6 {
				return conflict
			}
			return nil
		}}
	w.Observe("u", object())
	w.Set("u", corev1.PodStatus{Phase: corev1.PodRunning})
	w.Delete("u")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	eventually(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.pods["u"].object.ResourceVersion == "6" })
	cancel()
	<-done
	for tries < 6 {
		if err := w.write(t.Context(), "u"); err == nil && tries < 6 {
			t.Fatal("a conflict of the deletion ended it")
		}
	}
}

// A status that the API server refuses, again and again, keeps no pod from being deleted; one that could not be written
// for another reason does.
func TestARefusedStatusKeepsNoPod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		goes bool
	}{
		"refused":  {apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p", nil), true},
		"denied":   {apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("by a webhook")), true},
		"overload": {apierrors.NewTooManyRequests("later", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var deleted atomic.Bool
				w := New(server{patch: func() (*corev1.Pod, error) {
					return nil, c.err
				}, delete: func() error { deleted.Store(true); return nil }},
					func(time.Duration) {}, nil, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.Run(ctx) }()
				w.Observe("u", object())
				w.Set("u", corev1.PodStatus{Phase: corev1.PodFailed})
				w.Delete("u")
				time.Sleep(time.Second)
				if deleted.Load() {
					t.Error("deleted at once: what is refused for a moment, as to a node whose pod is not known yet, is lost")
				}
				time.Sleep(time.Minute)
				if deleted.Load() != c.goes {
					t.Errorf("deleted: %t", deleted.Load())
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
