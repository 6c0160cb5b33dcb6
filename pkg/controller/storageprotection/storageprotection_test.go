package storageprotection

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func meta(finalizer string, leaving bool) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: "o", UID: "u"}
	if finalizer != "" {
		m.Finalizers = []string{"a/b", finalizer}
	}
	if leaving {
		m.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
	}
	return m
}

func user(claim, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p-uid"}}
	p.Spec.NodeName = node
	p.Spec.Volumes = []corev1.Volume{
		{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return p
}

// written are the finalizers that the only update wrote, nil if there was none.
func written(t *testing.T, fake *controllertest.Fake) []string {
	t.Helper()
	var out []string
	for _, c := range fake.Calls() {
		if c.Method == "PUT" {
			out = append(out, strings.Join(c.Object.(metav1.Object).GetFinalizers(), " "))
		}
	}
	return out
}

// TestClaims: who keeps a claim, and what the cache does not know the server says.
func TestClaims(t *testing.T) {
	t.Parallel()
	own := user("", "n")
	own.Name, own.Spec.Volumes[0] = "o",
		corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	ended := user("o", "n")
	ended.Status.Phase = corev1.PodSucceeded
	for name, c := range map[string]struct {
		finalizer    string
		leaving      bool
		cached, live *corev1.Pod
		want         []string
	}{
		"new, without":               {want: []string{volumebinding.ClaimProtection}},
		"protected":                  {finalizer: volumebinding.ClaimProtection},
		"leaving, unused":            {finalizer: volumebinding.ClaimProtection, leaving: true, want: []string{"a/b"}},
		"leaving, without":           {leaving: true},
		"leaving, used":              {finalizer: volumebinding.ClaimProtection, leaving: true, cached: user("o", "n")},
		"leaving, used by one ended": {finalizer: volumebinding.ClaimProtection, leaving: true, cached: ended},
		"leaving, used, not cached":  {finalizer: volumebinding.ClaimProtection, leaving: true, live: user("o", "n")},
		"used by a pod without node": {finalizer: volumebinding.ClaimProtection, leaving: true, cached: user("o", ""),
			want: []string{"a/b"}},
		"another is used": {finalizer: volumebinding.ClaimProtection, leaving: true, cached: user("x", "n"),
			want: []string{"a/b"}},
		"made for another pod": {finalizer: volumebinding.ClaimProtection, leaving: true, cached: own,
			want: []string{"a/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if call.Method != "GET" {
					return call.Object, nil
				}
				list := &corev1.PodList{}
				if c.live != nil {
					list.Items = append(list.Items, *c.live)
				}
				return list, nil
			}}
			ctl, err := NewClaims(fake.Deps(t, time.Time{}))
			if err != nil {
				t.Fatal(err)
			}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(c.finalizer, c.leaving)}
			claim.Namespace = "ns"
			controllertest.Put(t, ctl.objects, claim)
			if c.cached != nil {
				controllertest.Put(t, controller.InformerFor(ctl.Informers, core.Pods), c.cached)
			}
			if _, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "o"}); err != nil {
				t.Error(err)
			}
			if got := written(t, fake); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestUnused: what a kube-controller-manager v1.37.2 writes into a claim's conditions, per pod with it.
func TestUnused(t *testing.T) {
	t.Parallel()
	now := time.Unix(7, 0)
	is := func(status corev1.ConditionStatus, at int64) []corev1.PersistentVolumeClaimCondition {
		c := corev1.PersistentVolumeClaimCondition{Type: "Unused", Status: status,
			LastTransitionTime: metav1.Unix(at, 0), Reason: "NoPodsUsingPVC",
			Message: "No pods are currently referencing this PVC"}
		if status == corev1.ConditionFalse {
			c.Reason, c.Message = "PodUsingPVC", "A pod is currently referencing this PVC"
		}
		return []corev1.PersistentVolumeClaimCondition{c}
	}
	ended, leaving, other := user("o", "n"), user("o", "n"), user("", "n")
	ended.Status.Phase = corev1.PodFailed
	leaving.DeletionTimestamp = ptr.To(metav1.Unix(1, 0))
	other.Name, other.Spec.Volumes[0] = "o",
		corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	for name, c := range map[string]struct {
		claim     string
		phase     corev1.PersistentVolumeClaimPhase
		leaving   bool
		was, want []corev1.PersistentVolumeClaimCondition
		pod       *corev1.Pod
	}{
		"bound":                 {phase: corev1.ClaimBound, want: is(corev1.ConditionTrue, 7)},
		"pending":               {phase: corev1.ClaimPending},
		"lost":                  {phase: corev1.ClaimLost, was: is(corev1.ConditionFalse, 1)},
		"leaving":               {phase: corev1.ClaimBound, leaving: true, was: is(corev1.ConditionFalse, 1)},
		"used without a node":   {phase: corev1.ClaimBound, pod: user("o", ""), want: is(corev1.ConditionFalse, 7)},
		"used":                  {phase: corev1.ClaimBound, pod: user("o", "n"), want: is(corev1.ConditionFalse, 7)},
		"another is used":       {phase: corev1.ClaimBound, pod: user("x", "n"), want: is(corev1.ConditionTrue, 7)},
		"used by one that ends": {phase: corev1.ClaimBound, pod: leaving, want: is(corev1.ConditionTrue, 7)},
		"used by one ended":     {phase: corev1.ClaimBound, pod: ended, want: is(corev1.ConditionTrue, 7)},
		"made for another pod": {phase: corev1.ClaimBound, claim: "o-v", pod: other,
			want: is(corev1.ConditionTrue, 7)},
		"still unused": {phase: corev1.ClaimBound, was: is(corev1.ConditionTrue, 1)},
		"still used":   {phase: corev1.ClaimBound, was: is(corev1.ConditionFalse, 1), pod: user("o", "n")},
		"no longer used": {phase: corev1.ClaimBound, was: is(corev1.ConditionFalse, 1),
			want: is(corev1.ConditionTrue, 7)},
		"used again": {phase: corev1.ClaimBound, was: is(corev1.ConditionTrue, 1), pod: user("o", ""),
			want: is(corev1.ConditionFalse, 7)},
	} {
		fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
			if call.Method == "GET" {
				return &corev1.PodList{Items: []corev1.Pod{*user("o", "n")}}, nil
			}
			return call.Object, nil
		}}
		ctl, err := NewClaims(fake.Deps(t, now))
		if err != nil {
			t.Fatal(err)
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(volumebinding.ClaimProtection, c.leaving)}
		claim.Namespace = "ns"
		if c.claim != "" {
			claim.Name = c.claim
		}
		claim.Status.Phase, claim.Status.Conditions = c.phase, c.was
		controllertest.Put(t, ctl.objects, claim)
		if c.pod != nil {
			controllertest.Put(t, controller.InformerFor(ctl.Informers, core.Pods), c.pod)
		}
		if _, err := ctl.Reconcile(t.Context(), controller.KeyOf(claim)); err != nil {
			t.Error(err)
		}
		var got []corev1.PersistentVolumeClaimCondition
		for _, call := range fake.Calls() {
			if call.Method == "PUT" && strings.HasSuffix(call.Path, "/status") {
				got = call.Object.(*corev1.PersistentVolumeClaim).Status.Conditions
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestVolumes: a bound one stays.
func TestVolumes(t *testing.T) {
	t.Parallel()
	for phase, want := range map[corev1.PersistentVolumePhase][]string{corev1.VolumeBound: nil,
		corev1.VolumeReleased: {"a/b"}, corev1.VolumeAvailable: {"a/b"}} {
		fake := &controllertest.Fake{}
		ctl, err := NewVolumes(fake.Deps(t, time.Time{}))
		if err != nil {
			t.Fatal(err)
		}
		v := &corev1.PersistentVolume{ObjectMeta: meta(volumebinding.VolumeProtection, true)}
		v.Status.Phase = phase
		controllertest.Put(t, ctl.objects, v)
		if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "o"}); err != nil {
			t.Error(err)
		}
		if got := written(t, fake); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", phase, got, want)
		}
	}
}

// TestAttributesClasses: each way to use one keeps it.
func TestAttributesClasses(t *testing.T) {
	t.Parallel()
	claim := func(change func(*corev1.PersistentVolumeClaim)) runtime.Object {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		change(c)
		return c
	}
	volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{VolumeAttributesClassName: ptr.To("o")}}
	for name, c := range map[string]struct {
		of   runtime.Object
		want []string
	}{
		"asked for": {of: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeAttributesClassName = ptr.To("o")
		})},
		"had": {of: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.CurrentVolumeAttributesClassName = ptr.To("o")
		})},
		"on its way": {of: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "o"}
		})},
		"a volume's": {of: volume},
		"another": {of: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeAttributesClassName = ptr.To("x")
		}), want: []string{"a/b"}},
	} {
		for _, cached := range []bool{true, false} {
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
				if of, ok := c.of.(*corev1.PersistentVolumeClaim); ok && !cached {
					claims.Items = append(claims.Items, *of)
				}
				if of, ok := c.of.(*corev1.PersistentVolume); ok && !cached {
					volumes.Items = append(volumes.Items, *of)
				}
				switch {
				case strings.HasSuffix(call.Path, "persistentvolumeclaims"):
					return claims, nil
				case strings.HasSuffix(call.Path, "persistentvolumes"):
					return volumes, nil
				}
				return call.Object, nil
			}}
			ctl, err := NewAttributesClasses(fake.Deps(t, time.Time{}))
			if err != nil {
				t.Fatal(err)
			}
			controllertest.Put(t, ctl.objects,
				&storagev1.VolumeAttributesClass{ObjectMeta: meta(volumebinding.AttributesProtection, true)})
			if of, ok := c.of.(*corev1.PersistentVolumeClaim); ok && cached {
				controllertest.Put(t, controller.InformerFor(ctl.Informers, core.PersistentVolumeClaims), of)
			}
			if of, ok := c.of.(*corev1.PersistentVolume); ok && cached {
				controllertest.Put(t, controller.InformerFor(ctl.Informers, core.PersistentVolumes), of)
			}
			if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "o"}); err != nil {
				t.Error(err)
			}
			if got := written(t, fake); !slices.Equal(got, c.want) {
				t.Errorf("%s, cached %v: %q, want %q", name, cached, got, c.want)
			}
		}
	}
}
