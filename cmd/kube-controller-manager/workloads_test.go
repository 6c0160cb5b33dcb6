package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

func webDeployment(ns, name string, n int32) *appsv1.Deployment {
	l := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: l},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "c", Image: "one", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
				}}}},
		},
	}
}

// makeReady plays the kubelet for the pods of a namespace: those without an address run now; those being deleted go.
func (w *world) makeReady(t *testing.T, ns string) {
	t.Helper()
	pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Status.PodIP != "" || p.DeletionTimestamp != nil {
			continue
		}
		w.ips++
		ip := fmt.Sprintf("10.9.%d.%d", w.ips/250, w.ips%250+1)
		patch := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`, ip, ip, time.Now().UTC().Format(time.RFC3339))
		if _, err := core.Pods(w.Client).Patch(t.Context(), ns, p.Name, types.StrategicMergePatchType, []byte(patch),
			"status"); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// available waits until the Deployment is complete with n replicas of its current template.
func (w *world) available(t *testing.T, ns, name string, n int32) {
	t.Helper()
	controllertest.Eventually(t, "the rollout of "+name, func() string {
		w.makeReady(t, ns)
		d, err := apps.Deployments(w.Client).Get(t.Context(), ns, name)
		if err != nil {
			return err.Error()
		}
		s := d.Status
		if s.ObservedGeneration == d.Generation && s.UpdatedReplicas == n && s.Replicas == n &&
			s.AvailableReplicas == n {
			return ""
		}
		return fmt.Sprintf("%+v", s)
	})
}

// rollout: create, update, scale, roll back; revisions and pods as Kubernetes has them.
func (w *world) rollout(t *testing.T) {
	ns := w.makeNamespace(t, "t-rollout")
	begin := time.Now()
	if _, err := apps.Deployments(w.Client).Create(t.Context(), webDeployment(ns, "web", 30)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "30 pods", func() string {
		pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil || len(pods) != 30 {
			return fmt.Sprint(len(pods), err)
		}
		return ""
	})
	t.Logf("30 pods created %s after their Deployment", time.Since(begin).Round(time.Millisecond))
	w.available(t, ns, "web", 30)
	for _, patch := range []string{`{"spec":{"replicas":4}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"one"}]}}}}`} {
		if _, err := apps.Deployments(w.Client).Patch(t.Context(), ns, "web", types.StrategicMergePatchType,
			[]byte(patch)); err != nil {
			t.Fatal(err)
		}
		w.available(t, ns, "web", 4)
	}
	sets, err := apps.ReplicaSets(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int32{}
	for _, rs := range sets {
		got[rs.Annotations["deployment.kubernetes.io/revision"]] = *rs.Spec.Replicas
	}
	if len(sets) != 2 || got["2"] != 0 || got["3"] != 4 {
		t.Errorf("replicas by revision = %v, want revision 1 to have become 3", got)
	}
	pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if p.Spec.Containers[0].Image != "one" {
			t.Errorf("pod %s runs %s after the rollback", p.Name, p.Spec.Containers[0].Image)
		}
	}
}

// replicationController: it adopts a matching orphan, fills up, and releases a pod that no longer matches.
func (w *world) replicationController(t *testing.T) {
	ns := w.makeNamespace(t, "t-rc")
	l := map[string]string{"app": "rc"}
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "one"}}}
	if _, err := core.Pods(w.Client).Create(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orphan", Labels: l}, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	rc := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "rc"},
		Spec: corev1.ReplicationControllerSpec{
			Replicas: new(int32(2)), Selector: l,
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}, Spec: spec},
		}}
	if _, err := core.ReplicationControllers(w.Client).Create(t.Context(), rc); err != nil {
		t.Fatal(err)
	}
	count := func(wantOwned, wantAll int) func() string {
		return func() string {
			pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
			owned := len(slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
				return metav1.GetControllerOf(p) == nil
			}))
			if err != nil || owned != wantOwned || len(pods) != wantAll {
				return fmt.Sprint(owned, " of ", len(pods), err)
			}
			return ""
		}
	}
	controllertest.Eventually(t, "adoption", count(2, 2))
	if _, err := core.Pods(w.Client).Patch(t.Context(), ns, "orphan", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app":"other"}}}`)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "release and replacement", count(2, 3))
}
