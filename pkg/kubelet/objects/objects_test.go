package objects

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
)

func pod(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "ns", UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{
					Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
						{Secret: &corev1.SecretProjection{
							LocalObjectReference: corev1.LocalObjectReference{Name: "s1"}}},
						{ConfigMap: &corev1.ConfigMapProjection{
							LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}}}},
				{Name: "c", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s2"}}}},
			Containers: []corev1.Container{{
				EnvFrom: []corev1.EnvFromSource{
					{SecretRef: &corev1.SecretEnvSource{
						LocalObjectReference: corev1.LocalObjectReference{Name: "s3"}}}},
				Env: []corev1.EnvVar{{Name: "plain"},
					{ValueFrom: &corev1.EnvVarSource{
						ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
							LocalObjectReference: corev1.LocalObjectReference{Name: "cm2"}}}}}}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		}}
}

func TestRefs(t *testing.T) {
	t.Parallel()
	got := refsOf(pod("u"))
	want := []ref{{configMap, "ns", "cm"}, {secret, "ns", "s1"}, {secret, "ns", "s2"}, {secret, "ns", "s3"},
		{configMap, "ns", "cm2"}, {secret, "ns", "pull"}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestCacheFollowsObject(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset()
	changed := make(chan []types.UID, 100)
	c, err := New(Config{Client: kubelettest.Client{Interface: client}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- c.Run(ctx, func(p []types.UID) { changed <- p }) }()
	c.Track(pod("u1"))
	c.Track(pod("u2"))
	if _, err := c.ConfigMap(ctx, "ns", "cm"); !apierrors.IsNotFound(err) || err.Error() != `configmap "cm" not found` {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cm", ResourceVersion: "1"},
		Data: map[string]string{"k": "1"}}
	if _, err := client.CoreV1().ConfigMaps("ns").Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := c.ConfigMap(ctx, "ns", "cm"); err != nil || got.Data["k"] != "1" {
		t.Fatal("a new object must be seen at once:", got, err)
	}
	waitFor(t, changed, 2)
	cm = cm.DeepCopy()
	cm.Data["k"], cm.ResourceVersion = "2", "2"
	if _, err := client.CoreV1().ConfigMaps("ns").Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, changed, 2)
	if got, err := c.ConfigMap(ctx, "ns", "cm"); err != nil || got.Data["k"] != "2" {
		t.Fatal(got, err)
	}
	c.Untrack("u1")
	if err := client.CoreV1().ConfigMaps("ns").Delete(ctx, "cm", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, changed, 1)
	if _, err := c.ConfigMap(ctx, "ns", "cm"); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if _, err := c.Secret(ctx, "ns", "none"); err == nil || err.Error() != `secret "none" not found` {
		t.Fatal(err)
	}
	c.Untrack("u2")
	c.mu.Lock()
	left := len(c.entries) + len(c.pods)
	c.mu.Unlock()
	if left != 0 {
		t.Error("entries left:", left)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, changed <-chan []types.UID, users int) {
	t.Helper()
	select {
	case got := <-changed:
		if len(got) != users {
			t.Fatalf("changed tells %v, want %d pods", got, users)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no change seen")
	}
}
