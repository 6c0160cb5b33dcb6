package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/quota"
	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/coordination"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// quotas: a quota lets exactly so much pass, no matter who asks and how many at once, and gives back what goes, ends,
// or was charged in vain.
func (w *world) quotas(t *testing.T) {
	ns := w.makeNamespace(t, "t-quota")
	controllertest.Eventually(t, "the root CA", func() string {
		_, err := core.ConfigMaps(w.Client).Get(t.Context(), ns, "kube-root-ca.crt")
		return text(err)
	})
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "q"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for name, n := range map[corev1.ResourceName]string{"pods": "3", "count/deployments.apps": "1",
		"count/leases.coordination.k8s.io": "1", "configmaps": "5",
		"services.nodeports": "9", "count/no.such.kind": "1", "resourcequotas": "1"} {
		q.Spec.Hard[name] = resource.MustParse(n)
	}
	if _, err := core.ResourceQuotas(w.Client).Create(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	w.used(t, ns, "configmaps=1,count/deployments.apps=0,count/leases.coordination.k8s.io=0,pods=0,resourcequotas=1,services.nodeports=0")

	if _, err := apps.Deployments(w.Client).Create(t.Context(), webDeployment(ns, "web", 5)); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the ReplicaSet to say what it lacks", func() string {
		sets, err := apps.ReplicaSets(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil || len(sets) != 1 || sets[0].Status.Replicas != 3 ||
			!strings.Contains(fmt.Sprint(sets[0].Status.Conditions),
				"exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3") {
			return fmt.Sprint(sets, err)
		}
		return ""
	})
	w.used(t, ns, "configmaps=1,count/deployments.apps=1,count/leases.coordination.k8s.io=0,pods=3,resourcequotas=1,services.nodeports=0")
	if _, err := apps.Deployments(w.Client).Create(t.Context(),
		webDeployment(ns, "more", 1)); !apierrors.IsForbidden(err) {
		t.Errorf("a second deployment: got %v", err)
	}
	if err := apps.Deployments(w.Client).Delete(t.Context(), ns, "web", ""); err != nil {
		t.Fatal(err)
	}
	w.used(t, ns, "configmaps=1,count/deployments.apps=0,count/leases.coordination.k8s.io=0,pods=0,resourcequotas=1,services.nodeports=0")
	w.quotaRush(t, ns)
	w.quotaMetadata(t, ns)
	if _, err := core.ResourceQuotas(w.Client).Patch(t.Context(), ns, "q", types.MergePatchType,
		[]byte(`{"spec":{"hard":{"pods":"4","secrets":"1"}}}`)); err != nil {
		t.Fatal(err)
	}
	w.used(t, ns, "configmaps=1,count/deployments.apps=0,count/leases.coordination.k8s.io=1,pods=2,resourcequotas=1,secrets=0,services.nodeports=0")
}

// used waits until the status of the quota q says so.
func (w *world) used(t *testing.T, ns, want string) {
	t.Helper()
	controllertest.Eventually(t, "usage "+want, func() string {
		q, err := core.ResourceQuotas(w.Client).Get(t.Context(), ns, "q")
		if err != nil {
			return err.Error()
		}
		if !quota.Equal(q.Status.Hard, q.Spec.Hard) || quota.Text(q.Status.Used) != want {
			return fmt.Sprint("hard ", quota.Text(q.Status.Hard), " used ", quota.Text(q.Status.Used))
		}
		return ""
	})
}

// quotaRush: of twenty who create at once three pass; one pod that ends makes room for one more.
func (w *world) quotaRush(t *testing.T, ns string) {
	t.Helper()
	rush := func() int {
		var all sync.WaitGroup
		var mu sync.Mutex
		passed := 0
		for range 20 {
			all.Go(func() {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "p-"},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "one"}}}}
				_, err := core.Pods(w.Client).Create(t.Context(), pod)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					passed++
				} else if !apierrors.IsForbidden(err) ||
					!strings.Contains(err.Error(),
						"exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3") {
					t.Errorf("got %v", err)
				}
			})
		}
		all.Wait()
		return passed
	}
	if n := rush(); n != 3 {
		t.Errorf("%d passed, want 3", n)
	}
	pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil || len(pods) != 3 {
		t.Fatal(len(pods), err)
	}
	if _, err := core.Pods(w.Client).Patch(t.Context(), ns, pods[0].Name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), "status"); err != nil {
		t.Fatal(err)
	}
	const rest = ",resourcequotas=1,services.nodeports=0"
	w.used(t, ns, "configmaps=1,count/deployments.apps=0,count/leases.coordination.k8s.io=0,pods=2"+rest)
	if n := rush(); n != 1 {
		t.Errorf("%d passed, want 1", n)
	}
	zero := int64(0)
	if err := core.Pods(w.Client).DeleteWith(t.Context(), ns, pods[1].Name,
		metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	w.used(t, ns, "configmaps=1,count/deployments.apps=0,count/leases.coordination.k8s.io=0,pods=2"+rest)
}

// quotaMetadata: objects that no controller caches are counted, too; what was charged for one that was not stored after
// all is given back.
func (w *world) quotaMetadata(t *testing.T, ns string) {
	t.Helper()
	lease := func(name string) error {
		_, err := coordination.Leases(w.Client).Create(t.Context(),
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
		return err
	}
	if err := lease("a"); err != nil {
		t.Fatal(err)
	}
	if err := lease("b"); !apierrors.IsForbidden(err) {
		t.Errorf("a second lease: got %v", err)
	}
	if err := coordination.Leases(w.Client).Delete(t.Context(), ns, "a", ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "room for another lease", func() string { return text(lease("b")) })
	root := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "kube-root-ca.crt"}}
	if _, err := core.ConfigMaps(w.Client).Create(t.Context(), root); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the same again: got %v", err)
	}
	w.used(t, ns, "configmaps=1,count/deployments.apps=0,count/leases.coordination.k8s.io=1,pods=2,resourcequotas=1,services.nodeports=0")
}
