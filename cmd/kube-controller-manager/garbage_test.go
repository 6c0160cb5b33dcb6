package main

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
)

// garbage: background, foreground and orphaning deletion, and an owner that never was.
func (w *world) garbage(t *testing.T) {
	ns := w.makeNamespace(t, "t-garbage")
	left := func() (names []string) {
		sets, err := apps.ReplicaSets(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pods, err := core.Pods(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, rs := range sets {
			names = append(names, "rs/"+rs.Name)
		}
		for _, p := range pods {
			names = append(names, "pod/"+p.Name)
		}
		return names
	}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground,
		metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		name := strings.ToLower(string(policy))
		if _, err := apps.Deployments(w.Client).Create(t.Context(), webDeployment(ns, name, 2)); err != nil {
			t.Fatal(err)
		}
		w.available(t, ns, name, 2)
		if err := apps.Deployments(w.Client).DeleteWith(t.Context(), ns, name,
			metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		controllertest.Eventually(t, name+" deletion", func() string {
			_, err := apps.Deployments(w.Client).Get(t.Context(), ns, name)
			names := left()
			if want := map[bool]int{false: 0,
				true: 3}[policy == metav1.DeletePropagationOrphan]; apierrors.IsNotFound(err) && len(names) == want {
				return ""
			}
			return fmt.Sprint(err, names)
		})
	}
	sets, err := apps.ReplicaSets(w.Client).List(t.Context(), ns, metav1.ListOptions{})
	if err != nil || len(sets) != 1 || len(sets[0].OwnerReferences) != 0 {
		t.Errorf("the orphaned ReplicaSet: %v, %v", sets, err)
	}
	child := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "child",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "never", UID: "no-such-uid"}}}}
	if _, err := core.ConfigMaps(w.Client).Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "a child without owner to go", func() string {
		if _, err := core.ConfigMaps(w.Client).Get(t.Context(), ns, "child"); !apierrors.IsNotFound(err) {
			return fmt.Sprint("still there: ", err)
		}
		return ""
	})
}
