package nodelifecycle

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// podWrites are the writes of pods.
func (w *world) podWrites() []string {
	return slices.DeleteFunc(w.writes(), func(n string) bool { return !strings.HasPrefix(n, "PUT /api/v1/namespaces") })
}

// TestKubeletReportsNotReady: a kubelet that reports its own node as not ready goes on reporting its pods. The
// controller leaves them alone, however often they and the node change.
func TestKubeletReportsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	n := node(corev1.ConditionFalse)
	n.Name = "a"
	for i := range 3 {
		w.now = w.now.Add(time.Second)
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(w.now)
		n.ResourceVersion = strconv.Itoa(i + 1)
		controllertest.Put(t, w.nodes, n.DeepCopy())
		if err := w.reconcile(t, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.podWrites(); len(got) > 0 {
		t.Errorf("writes of pods %v, want none", got)
	}
}

// TestSilentNodeUnreadiesOnce: marking a node Unknown marks its pods unready, until that succeeded once.
func TestSilentNodeUnreadiesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "a")
	answer, refuse := w.fake.Answer, true
	w.fake.Answer = func(call controllertest.Call) (runtime.Object, error) {
		if refuse && call.Name() == "PUT /api/v1/namespaces/ns/pods/on-a/status" {
			return nil, apierrors.NewInternalError(errors.New("not now"))
		}
		return answer(call)
	}
	w.now = w.now.Add(grace + time.Second)
	if err := w.reconcile(t, "a"); err == nil {
		t.Fatal("no error although the pod could not be written")
	}
	unknown := node(corev1.ConditionUnknown)
	unknown.Name = "a"
	unknown.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(1_000_000, 0))
	controllertest.Put(t, w.nodes, unknown)
	refuse = false
	for range 3 { // the cache still has the pod as ready, as it would if its kubelet wrote it
		if err := w.reconcile(t, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.podWrites(); len(got) != 2 {
		t.Errorf("%d writes of pods, want the one that failed and one more: %v", len(got), got)
	}
}

// TestPodBoundToUnreadyNode: a pod that is ready when it is bound to such a node is marked. On a ready node it is not.
func TestPodBoundToUnreadyNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ready corev1.ConditionStatus
		want  int
	}{{corev1.ConditionFalse, 1}, {corev1.ConditionUnknown, 1}, {corev1.ConditionTrue, 0}, {"", 0}} {
		w := newWorld(t, "a")
		n := node(c.ready)
		n.Name = "a"
		controllertest.Put(t, w.nodes, n)
		if _, err := w.podPlaced(t.Context(), controller.Key{Namespace: "ns", Name: "on-a"}); err != nil {
			t.Fatal(err)
		}
		if got := w.podWrites(); len(got) != c.want {
			t.Errorf("node Ready=%q: writes of pods %v, want %d", c.ready, got, c.want)
		}
	}
}
