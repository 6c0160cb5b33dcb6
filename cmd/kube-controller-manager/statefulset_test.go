package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// statefulSet: pods come one after the other, are updated down to the partition, rolled back, deleted from the highest,
// and repaired.
func (w *world) statefulSet(t *testing.T) {
	ns := w.makeNamespace(t, "t-stateful")
	l := map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(3)), ServiceName: "svc", Selector: &metav1.LabelSelector{MatchLabels: l},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "one"}}}},
	}}
	if _, err := apps.StatefulSets(w.Client).Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	first := w.stateful(t, ns, "web-0=one web-1=one web-2=one", 3, "")
	patch := func(text string) {
		t.Helper()
		if _, err := apps.StatefulSets(w.Client).Patch(t.Context(), ns, "web", types.StrategicMergePatchType,
			[]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}},"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`)
	w.stateful(t, ns, "web-0=one web-1=one web-2=two", 1, "")
	w.losePod(t, ns, "web-0")
	w.stateful(t, ns, "web-0=one web-1=one web-2=two", 1, "")
	patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	w.stateful(t, ns, "web-0=two web-1=two web-2=two", 3, "")
	patch(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"one"}]}}}}`)
	if back := w.stateful(t, ns, "web-0=one web-1=one web-2=one", 3, ""); back != first {
		t.Errorf("rolled back to revision %s, want %s", back, first)
	}
	revisions, err := apps.ControllerRevisions(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil || len(revisions) != 2 {
		t.Errorf("%d revisions, want 2 (%v)", len(revisions), err)
	}
	patch(`{"spec":{"replicas":1}}`)
	w.stateful(t, ns, "web-0=one", 1, "")
	// Last, so that the labels that are missing for a moment trouble nobody.
	if _, err := core.Pods(w.Client).Patch(t.Context(), ns, "web-0", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"apps.kubernetes.io/pod-index":null}}}`)); err != nil {
		t.Fatal(err)
	}
	w.stateful(t, ns, "web-0=one", 1, "0")
	w.statefulClaims(t, ns)
}

// stateful waits until the set web has exactly these pods ("<name>=<image>"), all ready, and so many of the newest
// revision, whose name it returns. Meanwhile it makes pods ready. index, if set, is the label that they must have.
func (w *world) stateful(t *testing.T, ns, want string, updated int32, index string) (revision string) {
	t.Helper()
	controllertest.Eventually(t, "the pods "+want, func() string {
		w.makeReady(t, ns)
		set, err := apps.StatefulSets(w.Client).Get(t.Context(), ns, "web")
		if err != nil {
			return err.Error()
		}
		pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err.Error()
		}
		var got []string
		for _, p := range pods {
			got = append(got, p.Name+"="+p.Spec.Containers[0].Image)
			if i := p.Labels[appsv1.PodIndexLabel]; index != "" && i != index {
				return p.Name + " has the index " + i
			}
		}
		slices.Sort(got)
		n, s := int32(len(pods)), set.Status
		if strings.Join(got, " ") == want && s.ObservedGeneration == set.Generation && s.Replicas == n &&
			s.AvailableReplicas == n && s.UpdatedReplicas == updated &&
			(updated < n) == (s.CurrentRevision != s.UpdateRevision) {
			revision = s.UpdateRevision
			return ""
		}
		return fmt.Sprintf("%v %+v", got, s)
	})
	return revision
}

// losePod deletes a pod at once.
func (w *world) losePod(t *testing.T, ns, name string) {
	t.Helper()
	if err := core.Pods(w.Client).DeleteWith(t.Context(), ns, name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// statefulClaims: the pods of a set with claims have them; by its policy they go with the pod that scaling down takes
// away, and with the set.
func (w *world) statefulClaims(t *testing.T, ns string) {
	l := map[string]string{"app": "db"}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceStorage: *resource.NewQuantity(1<<20, resource.BinarySI)}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: l},
		PodManagementPolicy:  appsv1.ParallelPodManagement,
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
		PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
			WhenScaled:  appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "c", Image: "one", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}}}},
	}}
	if _, err := apps.StatefulSets(w.Client).Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "pods with claims", func() string {
		pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{LabelSelector: "app=db"})
		if err != nil || len(pods) != 2 {
			return fmt.Sprint(len(pods), " pods ", err)
		}
		for _, p := range pods {
			if v := p.Spec.Volumes[0]; v.Name != "data" || v.PersistentVolumeClaim.ClaimName != "data-"+p.Name {
				return fmt.Sprintf("%s has %+v", p.Name, v)
			}
		}
		return ""
	})
	w.claims(t, ns, "data-db-0 data-db-1")
	if _, err := apps.StatefulSets(w.Client).Patch(t.Context(), ns, "db", types.MergePatchType,
		[]byte(`{"spec":{"replicas":1}}`)); err != nil {
		t.Fatal(err)
	}
	w.claims(t, ns, "data-db-0")
	if err := apps.StatefulSets(w.Client).Delete(t.Context(), ns, "db", ""); err != nil {
		t.Fatal(err)
	}
	w.claims(t, ns, "")
}

// claims waits until those of the namespace that are not being deleted have the given names.
func (w *world) claims(t *testing.T, ns, want string) {
	t.Helper()
	controllertest.Eventually(t, "the claims "+want, func() string {
		all, err := core.PersistentVolumeClaims(w.Client).List(t.Context(), ns,
			metav1.ListOptions{LabelSelector: "app=db"})
		var names []string
		for _, c := range all {
			if c.DeletionTimestamp == nil {
				names = append(names, c.Name)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); err != nil || got != want {
			return fmt.Sprintf("%q, %v", got, err)
		}
		return ""
	})
}
