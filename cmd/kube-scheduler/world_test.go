package main

import (
	"log/slog"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// TestControllersWhosePodsAreSpread: pods of replication controllers, replica sets and stateful sets are spread by
// default (concepts/scheduling-eviction/topology-spread-constraints, "Cluster-level default constraints").
func TestControllersWhosePodsAreSpread(t *testing.T) {
	t.Parallel()
	c, err := newClient(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(c, slog.New(slog.DiscardHandler))
	meta, sel := metav1.ObjectMeta{Namespace: "d", Name: "o", UID: "u"},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	w.owners.controllers.Set(
		&corev1.ReplicationController{ObjectMeta: meta,
			Spec: corev1.ReplicationControllerSpec{Selector: sel.MatchLabels}})
	w.owners.replicas.Set(&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: sel}})
	w.owners.sets.Set(&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: sel}})
	for _, x := range []struct {
		version, kind string
		uid           types.UID
		want          string
	}{
		{"v1", "ReplicationController", "u", "app=web"},
		{"apps/v1", "ReplicaSet", "u", "app=web"},
		{"apps/v1", "StatefulSet", "u", "app=web"},
		{"apps/v1", "StatefulSet", "another of that name", ""},
		{"apps/v1", "DaemonSet", "u", ""},
		{"example.com/v1", "StatefulSet", "u", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: x.version, Kind: x.kind, Name: "o", UID: x.uid, Controller: new(true)}}}}
		got := ""
		if s := w.workloads.SelectorFor(pod); s != nil {
			got = s.String()
		}
		if got != x.want {
			t.Errorf("%s %s %s: %q, want %q", x.version, x.kind, x.uid, got, x.want)
		}
	}
}
