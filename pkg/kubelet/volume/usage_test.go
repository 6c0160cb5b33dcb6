package volume_test

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

// TestUsage: how full a claim's file system is, each claim once, is known once its pod's volumes were looked after, and forgotten with the pod; what pods are to
// have and have is counted by kind.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bound{}
		b.add("c", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}})
		m := b.manager(t, filepath.Join(t.TempDir(), "pods"))
		pod := claimed("u", "c", false)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			corev1.Volume{Name: "missing", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/does/not/exist", Type: new(corev1.HostPathDirectory)}}})
		if _, err := m.Mount(t.Context(), pod); err == nil {
			t.Fatal("a directory that is not there is mounted")
		}
		desired, actual := m.Count()
		if !maps.Equal(desired, map[string]int{"host-path": 2, "empty-dir": 1}) || !maps.Equal(actual, map[string]int{"host-path": 1, "empty-dir": 1}) {
			t.Errorf("to have %v, have %v", desired, actual)
		}
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- m.Run(ctx) }()
		m.Update(pod)
		synctest.Wait()
		got := m.Usage()
		if len(got) != 1 || got[0].Claim.Name != "c" || got[0].Capacity == 0 || got[0].Capacity < got[0].Used || got[0].InodesUsed+got[0].InodesFree != got[0].Inodes {
			t.Errorf("%+v", got)
		}
		if err := m.Unmount(ctx, "u"); err != nil {
			t.Fatal(err)
		}
		desired, _ = m.Count()
		if len(m.Usage()) > 0 || len(desired) > 0 {
			t.Error("the figures outlive the pod")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
