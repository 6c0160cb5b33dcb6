package volume_test

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/claims"
	"bonsai/pkg/kubelet/volume/growth"
	"bonsai/pkg/kubelet/volume/hostpath"
	"bonsai/pkg/kubelet/volume/projected"
)

// TestUsage: how full a claim's file system is, each claim once, is known once its pod's volumes were looked after, and
// forgotten with the pod; what pods are to have and have is counted by kind.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bound{}
		b.add("c", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}})
		m := b.manager(t, filepath.Join(t.TempDir(), "pods"))
		pod := claimed("u", "c", false)
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			corev1.Volume{Name: "missing",
				VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: "/does/not/exist",
						Type: new(corev1.HostPathDirectory)}}})
		if _, err := m.Mount(t.Context(), pod); err == nil {
			t.Fatal("a directory that is not there is mounted")
		}
		desired, actual := m.Count()
		if !maps.Equal(desired, map[string]int{"host-path": 2, "empty-dir": 1}) ||
			!maps.Equal(actual, map[string]int{"host-path": 1, "empty-dir": 1}) {
			t.Errorf("to have %v, have %v", desired, actual)
		}
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- m.Run(ctx) }()
		m.Update(pod)
		synctest.Wait()
		got := m.Usage()
		if len(got) != 1 || got[0].Claim.Name != "c" || got[0].Capacity == 0 || got[0].Capacity < got[0].Used ||
			got[0].InodesUsed+got[0].InodesFree != got[0].Inodes {
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

// hung is storage whose server does not answer how full it is, not even to who gives up.
type hung struct {
	hostpath.Source
	asked  atomic.Int32
	answer chan struct{}
}

func (h *hung) Supports(s volume.Spec) bool { return s.PV != nil && h.Source.Supports(s) }

func (h *hung) Measure(context.Context, volume.Place, volume.Spec) (volume.Usage, bool) {
	h.asked.Add(1)
	<-h.answer
	return volume.Usage{Capacity: 7}, true
}

// TestStorageThatHangs: a volume that cannot be measured holds up nothing but itself, and is not asked again meanwhile:
// the pod's other volumes are kept fresh, and who runs the manager can stop.
func TestStorageThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bound{}
		b.add("c", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}})
		storage := &hung{Source: hostpath.New(), answer: make(chan struct{})}
		a := &api{objects: map[string]map[string]string{"cm/ns/cfg": {"k": "1"}}}
		files, err := projected.New(projected.Config{Objects: a, Tokens: a, Certificates: a, Allocatable: func() int64 {
			return 64 << 20
		}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Field:    func(*corev1.Pod, string) (string, error) { return "", nil },
			Resource: func(*corev1.Pod, string, *corev1.ResourceFieldSelector) (string, error) { return "", nil }})
		if err != nil {
			t.Fatal(err)
		}
		sources := []volume.Source{storage}
		for _, s := range files {
			sources = append(sources, s)
		}
		m, err := volume.New(volume.Config{Growth: growth.New(growth.Config{}),
			PodsDir: filepath.Join(t.TempDir(), "pods"), Sources: sources, Log: slog.New(slog.DiscardHandler),
			Claims: &claims.Resolver{Client: b, Node: func() *corev1.Node { return &corev1.Node{} }}})
		if err != nil {
			t.Fatal(err)
		}
		pod := claimed("u", "c", false)
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: "cfg",
				VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("cfg")}}})
		mounted, err := m.Mount(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()
		m.Update(pod)
		synctest.Wait()
		a.set("cm/ns/cfg", map[string]string{"k": "2"})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := storage.asked.Load(); n != 1 {
			t.Errorf("asked %d times at once", n)
		}
		if k := read(t, mounted["cfg"].HostPath, "k"); k != "2" {
			t.Errorf("content %q", k)
		}
		storage.answer <- struct{}{}
		synctest.Wait()
		if got := m.Usage(); len(got) != 1 || got[0].Capacity != 7 {
			t.Errorf("once it answers: %+v", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n, got := storage.asked.Load(), m.Usage(); n != 2 || len(got) != 1 {
			t.Errorf("asked %d times, %+v is known while it hangs again", n, got)
		}
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("it does not stop")
		}
		if err := m.Remove(t.Context(), "u"); err != nil {
			t.Error(err)
		}
		close(storage.answer)
	})
}
