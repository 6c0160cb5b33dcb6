package statefulset

import (
	"errors"
	"maps"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const claimsPath = "/api/v1/namespaces/ns/persistentvolumeclaims"

// claiming is a stage whose set has a claim template.
func claiming(t *testing.T, n int32, policy *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy,
	answer func(controllertest.Call) (runtime.Object, error)) (*Controller, *controllertest.Fake, *appsv1.StatefulSet,
	*appsv1.ControllerRevision) {
	t.Helper()
	c, f, set, r := stage(t, n, answer)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{
		{ObjectMeta: metav1.ObjectMeta{Name: "www", Labels: map[string]string{"mine": "1"}}}}
	set.Spec.PersistentVolumeClaimRetentionPolicy = policy
	controllertest.Put(t, c.revisions, r)
	return c, f, set, r
}

func retention(
	deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType,
) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled}
}

const (
	keep = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	drop = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
)

// TestClaimsFirst: the claim of a pod comes before the pod, with the labels of the template and of the selector. The
// events are those of kube-controller-manager v1.36.
func TestClaimsFirst(t *testing.T) {
	t.Parallel()
	var claim *corev1.PersistentVolumeClaim
	c, f, set, _ := claiming(t, 1, retention(drop, keep), func(call controllertest.Call) (runtime.Object, error) {
		if o, ok := call.Object.(*corev1.PersistentVolumeClaim); ok {
			claim = o
		}
		return call.Object, nil
	})
	reconcile(t, c, set)
	if names := strings.Join(f.Names(), " "); !strings.Contains(names, "POST "+claimsPath+" POST "+podsPath) {
		t.Errorf("the calls were %s", names)
	}
	if claim == nil || claim.Name != "www-web-0" ||
		!maps.Equal(claim.Labels, map[string]string{"mine": "1", "app": "web"}) {
		t.Fatalf("the claim is %+v", claim)
	}
	if o := metav1.GetControllerOf(claim); o == nil || o.UID != set.UID {
		t.Errorf("its owners are %+v", claim.OwnerReferences)
	}
	if got, want := events(c),
		"Normal SuccessfulCreate Create Claim www-web-0 Pod web-0 in StatefulSet web success\nNormal SuccessfulCreate Create Pod web-0 in StatefulSet web successful"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRefusedClaim: without its claim a pod is not created.
func TestRefusedClaim(t *testing.T) {
	t.Parallel()
	no := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "www-web-0",
		errors.New("no"))
	c, f, set, _ := claiming(t, 1, nil, func(call controllertest.Call) (runtime.Object, error) {
		if call.Name() == "POST "+claimsPath {
			return nil, no
		}
		return call.Object, nil
	})
	if _, err := c.Reconcile(t.Context(), controller.KeyOf(set)); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if calls(f, "POST "+podsPath) != 0 {
		t.Error("the pod was created")
	}
	if got, want := events(c),
		"Warning FailedCreate Create Claim www-web-0 for Pod web-0 in StatefulSet web failed error: "+no.Error()+
			"\nWarning FailedCreate Create Pod web-0 in StatefulSet web failed error: failed to create PVC www-web-0: "+
			no.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestClaimInEndingNamespace: that nothing can be created there any more is no news to tell.
func TestClaimInEndingNamespace(t *testing.T) {
	t.Parallel()
	c, f, set, _ := claiming(t, 1, nil, func(call controllertest.Call) (runtime.Object, error) {
		if call.Method == "POST" {
			return nil, controllertest.Ending()
		}
		return call.Object, nil
	})
	if _, err := c.Reconcile(t.Context(), controller.KeyOf(set)); !controller.NamespaceEnding(err) {
		t.Errorf("got %v", err)
	}
	if calls(f, "POST "+podsPath) != 0 || events(c) != "" {
		t.Errorf("calls %v, events %q", f.Names(), events(c))
	}
}

// TestKeptClaims: a claim that is there is taken over, one that goes is waited for.
func TestKeptClaims(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		pods int
	}{
		"there":   {metav1.ObjectMeta{}, 1},
		"deleted": {metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"a/b"}}, 0},
		"of old pod": {metav1.ObjectMeta{
			OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "web-0", UID: "before"}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctl, f, set, _ := claiming(t, 1, nil, nil)
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: c.meta}
			claim.Namespace, claim.Name = "ns", "www-web-0"
			controllertest.Put(t, ctl.claims, claim)
			if _, err := ctl.Reconcile(t.Context(), controller.KeyOf(set)); (err == nil) != (c.pods == 1) {
				t.Errorf("got %v", err)
			}
			if n := calls(f, "POST "+podsPath); n != c.pods || calls(f, "POST "+claimsPath) != 0 {
				t.Errorf("the calls were %v", f.Names())
			}
		})
	}
}

// TestClaimOwners:
// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#persistentvolumeclaim-retention
func TestClaimOwners(t *testing.T) {
	t.Parallel()
	other := metav1.OwnerReference{Kind: "ConfigMap", Name: "x", UID: "x"}
	mine := true
	foreign := metav1.OwnerReference{Kind: "Other", Name: "x", UID: "x", Controller: &mine}
	for name, c := range map[string]struct {
		policy  *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy
		surplus bool
		old     []metav1.OwnerReference
		want    string
	}{
		"no policy": {nil, true, nil, ""},
		"kept":      {retention(keep, keep), true, nil, ""},
		"no longer with the set": {retention(keep, keep), false,
			[]metav1.OwnerReference{other, {Kind: "StatefulSet", UID: "set"}}, "ConfigMap"},
		"with the set": {retention(drop, keep), false, nil, "StatefulSet"},
		"surplus, with the set": {retention(drop, keep), true, []metav1.OwnerReference{{Kind: "Pod", UID: "pod"}},
			"StatefulSet"},
		"with the pod, in place": {retention(keep, drop), false, []metav1.OwnerReference{{Kind: "Pod", UID: "pod"}},
			""},
		"with the pod, surplus": {retention(keep, drop), true, nil, "Pod"},
		"with both, in place": {retention(drop, drop), false, []metav1.OwnerReference{{Kind: "Pod", UID: "pod"}},
			"StatefulSet"},
		"with both, surplus": {retention(drop, drop), true,
			[]metav1.OwnerReference{{Kind: "StatefulSet", UID: "set"}, other}, "ConfigMap Pod"},
		"controlled by a foreign": {retention(drop, drop), true, []metav1.OwnerReference{foreign}, "Other"},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "set"},
			Spec: appsv1.StatefulSetSpec{PersistentVolumeClaimRetentionPolicy: c.policy}}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "pod"}}
		var kinds []string
		for _, r := range claimOwners(set, p, c.surplus, c.old) {
			kinds = append(kinds, r.Kind)
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestRetain: the claim of a surplus pod gets its owner before the pod is deleted; a pending pod gets back a claim it
// lost.
func TestRetain(t *testing.T) {
	t.Parallel()
	c, f, set, r := claiming(t, 1, retention(keep, drop), nil)
	for n, phase := range []rune{'?', '+'} {
		p := podAs(set, n, phase, r.Name)
		maps.Copy(p.Labels, set.Spec.Template.Labels)
		p.Status.Phase = map[rune]corev1.PodPhase{'?': corev1.PodPending, '+': corev1.PodRunning}[phase]
		controllertest.Put(t, c.pods, p)
	}
	controllertest.Put(t, c.claims,
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "www-web-1"}})
	reconcile(t, c, set)
	names := strings.Join(f.Names(), " ")
	owned, deleted := strings.Index(names, "PUT "+claimsPath+"/www-web-1"),
		strings.Index(names, "DELETE "+podsPath+"/web-1")
	if owned < 0 || deleted < owned || calls(f, "POST "+claimsPath) != 1 {
		t.Errorf("the calls were %s", names)
	}
}
