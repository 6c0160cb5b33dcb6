package objects

import (
	"context"
	"log/slog"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
)

// TestTrustBundles: sources find bundles by name, or by signer and labels, and the pods that ask for a bundle hear of
// its changes.
func TestTrustBundles(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	bundle := func(name, signer, label string) *certificatesv1.ClusterTrustBundle {
		return &certificatesv1.ClusterTrustBundle{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"l": label}, ResourceVersion: "1"},
			Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer}}
	}
	client := fake.NewClientset(bundle("s:1", "s", "a"), bundle("s:2", "s", "b"), bundle("plain", "", "a"))
	changed := make(chan []types.UID, 100)
	c, err := New(Config{Client: kubelettest.Client{Interface: client}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- c.Run(ctx, func(p []types.UID) { changed <- p }) }()
	byName := &corev1.ClusterTrustBundleProjection{Name: new("plain")}
	all := &corev1.ClusterTrustBundleProjection{SignerName: new("s"), LabelSelector: &metav1.LabelSelector{}}
	asking := func(uid string, ask *corev1.ClusterTrustBundleProjection) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ClusterTrustBundle: ask}}}}}}}}
	}
	c.Track(asking("u1", byName))
	c.Track(asking("u2", all))
	waitFor(t, changed, 2)
	for name, want := range map[string]struct {
		ask   *corev1.ClusterTrustBundleProjection
		found int
	}{
		"name":       {byName, 1},
		"all":        {all, 2},
		"no labels":  {&corev1.ClusterTrustBundleProjection{SignerName: new("s")}, 0},
		"labels":     {&corev1.ClusterTrustBundleProjection{SignerName: new("s"), LabelSelector: labelled("b")}, 1},
		"no signer":  {&corev1.ClusterTrustBundleProjection{SignerName: new(""), LabelSelector: labelled("a")}, 1},
		"no bundles": {&corev1.ClusterTrustBundleProjection{SignerName: new("t"), LabelSelector: labelled("a")}, 0},
	} {
		if found, err := c.TrustBundles(ctx, want.ask); err != nil || len(found) != want.found {
			t.Errorf("%s: %d, %v", name, len(found), err)
		}
	}
	missing := &corev1.ClusterTrustBundleProjection{Name: new("missing")}
	if _, err := c.TrustBundles(ctx, missing); !apierrors.IsNotFound(err) ||
		err.Error() != `clustertrustbundle.certificates.k8s.io "missing" not found` {
		t.Error(err)
	}

	api := client.CertificatesV1().ClusterTrustBundles()
	if _, err := api.Create(ctx, bundle("s:3", "s", "a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, changed, 1)
	if err := api.Delete(ctx, "plain", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, changed, 1)
	c.Untrack("u1")
	c.Track(asking("u2", byName))
	if err := api.Delete(ctx, "s:3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Create(ctx, bundle("plain", "", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, changed, 1)
	c.Untrack("u2")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	select {
	case pods := <-changed:
		t.Errorf("%v were told of a bundle that they no longer ask for", pods)
	case <-time.After(0):
	}
}

func labelled(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"l": value}}
}

// TestUnlistedTrustBundles: a pod does not wait for ever for an API server that does not list them.
func TestUnlistedTrustBundles(t *testing.T) {
	t.Parallel()
	c, err := New(Config{Client: kubelettest.Client{Interface: fake.NewClientset()},
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.TrustBundles(ctx, &corev1.ClusterTrustBundleProjection{Name: new("x")}); err == nil {
		t.Error("an unknown bundle is answered")
	}
}
