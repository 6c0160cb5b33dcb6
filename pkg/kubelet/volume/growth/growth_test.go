package growth_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/growth"
)

// world is an API server with one claim and its volume, and the storage driver.
type world struct {
	volume.Expander
	t        *testing.T
	claim    corev1.PersistentVolumeClaim
	pv       corev1.PersistentVolume
	fail     error
	expanded []string
	events   []string
	// statuses are those of the claim's storage, as it had them one after the other.
	statuses []corev1.ClaimResourceStatus
}

func (w *world) PersistentVolumeClaim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	return w.claim.DeepCopy(), nil
}

func (w *world) PersistentVolume(context.Context, string) (*corev1.PersistentVolume, error) {
	return w.pv.DeepCopy(), nil
}

func (w *world) PatchClaimStatus(_ context.Context, _, _ string, patch []byte) error {
	old, err := json.Marshal(&w.claim)
	if err != nil {
		return err
	}
	now, err := strategicpatch.StrategicMergePatch(old, patch, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	next := corev1.PersistentVolumeClaim{}
	if err := json.Unmarshal(now, &next); err != nil {
		return err
	}
	if next.UID != w.claim.UID {
		w.t.Errorf("patched as of UID %q: %s", next.UID, patch)
	}
	w.claim = next
	w.statuses = append(w.statuses, next.Status.AllocatedResourceStatuses["storage"])
	return nil
}

func (w *world) Expand(_ context.Context, _ volume.Request, to resource.Quantity) (resource.Quantity, error) {
	w.expanded = append(w.expanded, to.String())
	return to, w.fail
}

func newWorld(t *testing.T) (*world, *growth.Grower) {
	w := &world{t: t}
	w.claim.Namespace, w.claim.Name, w.claim.UID = "ns", "c", "uid"
	w.claim.Status.Capacity = sized("1Gi")
	w.claim.Status.AllocatedResources = sized("2Gi")
	w.claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
		"storage": corev1.PersistentVolumeClaimNodeResizePending}
	w.claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
		{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: "True"},
		{Type: corev1.PersistentVolumeClaimVolumeModifyVolumeError, Status: "True"}}
	w.pv.Name, w.pv.Spec.Capacity = "pv", sized("2Gi")
	return w, growth.New(growth.Config{Client: w, Node: "n1", Now: func() time.Time { return time.Unix(100, 0) },
		Event: func(_ *corev1.Pod, kind, reason, message string) {
			w.events = append(w.events, kind+" "+reason+" "+message)
		},
		ClaimEvent: func(claim *corev1.PersistentVolumeClaim, kind, reason, message string) {
			w.events = append(w.events, "of "+claim.Name+": "+kind+" "+reason+" "+message)
		}})
}

func sized(s string) corev1.ResourceList {
	return corev1.ResourceList{"storage": resource.MustParse(s)}
}

func (w *world) request(renew bool) volume.Request {
	return volume.Request{Pod: &corev1.Pod{}, Renew: renew,
		Spec: volume.Spec{Volume: &corev1.Volume{}, Claim: w.claim.DeepCopy(), PV: w.pv.DeepCopy()}}
}

// TestGrow: before the pod starts and while it runs, once for each size; other conditions stay.
func TestGrow(t *testing.T) {
	t.Parallel()
	w, g := newWorld(t)
	for range 2 {
		if err := g.Grow(t.Context(), w.request(false), w); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(w.expanded, []string{"2Gi"}) ||
		!slices.Equal(w.statuses, []corev1.ClaimResourceStatus{corev1.PersistentVolumeClaimNodeResizeInProgress, ""}) {
		t.Errorf("expanded %v, statuses %v", w.expanded, w.statuses)
	}
	s := w.claim.Status
	if s.Capacity.Storage().String() != "2Gi" || s.AllocatedResources.Storage().String() != "2Gi" ||
		len(s.Conditions) != 1 || s.Conditions[0].Type != corev1.PersistentVolumeClaimVolumeModifyVolumeError {
		t.Errorf("the claim is %+v", s)
	}
	w.pv.Spec.Capacity = sized("3Gi")
	if err := g.Grow(t.Context(), w.request(true), w); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(w.expanded, []string{"2Gi", "3Gi"}) || w.claim.Status.Capacity.Storage().String() != "3Gi" {
		t.Errorf("while it runs: expanded %v, the claim is %+v", w.expanded, w.claim.Status)
	}
	const done = `Normal FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv" n1`
	if told := []string{done, "of c: " + done}; !slices.Equal(w.events, slices.Concat(told, told)) {
		t.Errorf("events %q", w.events)
	}
}

// TestSeveralNodes: a claim that has grown on another node grows on this one too, which has the volume since before; it
// has nothing to tell then.
func TestSeveralNodes(t *testing.T) {
	t.Parallel()
	w, g := newWorld(t)
	w.pv.Spec.Capacity = sized("1Gi")
	if err := g.Grow(t.Context(), w.request(false), w); err != nil || len(w.expanded) > 0 {
		t.Fatalf("expanded %v, %v", w.expanded, err)
	}
	w.pv.Spec.Capacity, w.claim.Status.Capacity = sized("2Gi"), sized("2Gi")
	w.statuses = nil
	for range 2 {
		if err := g.Grow(t.Context(), w.request(true), w); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(w.expanded, []string{"2Gi"}) || len(w.statuses) > 0 {
		t.Errorf("expanded %v, statuses %v", w.expanded, w.statuses)
	}
	g.Forget("pv")
	w.pv.Spec.Capacity = sized("2Gi")
	if err := g.Grow(t.Context(), w.request(false), w); err != nil || len(w.expanded) != 1 {
		t.Errorf("a volume that comes anew has the claim's size: expanded %v, %v", w.expanded, err)
	}
}

// TestFailures: what can never be is told and left alone, and the pod starts; the rest is tried again. Without an
// answer nothing is known.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		fail      error
		status    corev1.ClaimResourceStatus
		condition bool
		err       bool
		again     int
	}{
		{"infeasible", &volume.ExpandError{Err: errors.New("too large"), Infeasible: true},
			corev1.PersistentVolumeClaimNodeResizeInfeasible, true, false, 1},
		{"refused", &volume.ExpandError{Err: errors.New("too large")}, corev1.PersistentVolumeClaimNodeResizeInProgress,
			true, true, 2},
		{"unanswered", errors.New("too large"), corev1.PersistentVolumeClaimNodeResizeInProgress, false, true, 2},
	} {
		w, g := newWorld(t)
		w.fail = c.fail
		if err := g.Grow(t.Context(), w.request(false), w); (err != nil) != c.err {
			t.Errorf("%s: error %v", c.name, err)
		}
		if got := w.claim.Status.AllocatedResourceStatuses["storage"]; got != c.status {
			t.Errorf("%s: status %s, want %s", c.name, got, c.status)
		}
		i := slices.IndexFunc(w.claim.Status.Conditions, func(o corev1.PersistentVolumeClaimCondition) bool {
			return o.Type == corev1.PersistentVolumeClaimNodeResizeError
		})
		if (i >= 0) != c.condition {
			t.Errorf("%s: conditions %+v", c.name, w.claim.Status.Conditions)
		} else if i >= 0 && (w.claim.Status.Conditions[i].Message != "failed to expand pvc with too large" ||
			!w.claim.Status.Conditions[i].LastTransitionTime.Equal(&metav1.Time{Time: time.Unix(100, 0)})) {
			t.Errorf("%s: condition %+v", c.name, w.claim.Status.Conditions[i])
		}
		const failed = `Warning FileSystemResizeFailed MountVolume.NodeExpandVolume failed for volume "pv" : too large`
		if !slices.Equal(w.events, []string{failed, "of c: " + failed}) {
			t.Errorf("%s: events %q", c.name, w.events)
		}
		_ = g.Grow(t.Context(), w.request(true), w)
		if len(w.expanded) != c.again {
			t.Errorf("%s: tried %d times, want %d", c.name, len(w.expanded), c.again)
		}
	}
	w, g := newWorld(t)
	r := w.request(false)
	r.ReadOnly = true
	if err := g.Grow(t.Context(), r, w); err != nil || len(w.expanded) > 0 || len(w.events) != 2 {
		t.Errorf("read-only: expanded %v, events %v, %v", w.expanded, w.events, err)
	}
}
