package volume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// counted notes what it is told, except single tries.
type counted struct{ notes []string }

func (c *counted) VolumeWork(string, string, time.Duration, error) {}
func (c *counted) VolumeThere(source string, took time.Duration) {
	c.notes = append(c.notes, fmt.Sprintf("%s there after %s", source, took))
}
func (c *counted) VolumeMeasured(by string, _ time.Duration) {
	c.notes = append(c.notes, "measured by "+by)
}
func (c *counted) VolumesSwept(removed, failed int) {
	c.notes = append(c.notes, fmt.Sprintf("swept %d %d", removed, failed))
}

func (c *counted) took() string {
	n := strings.Join(c.notes, ", ")
	c.notes = nil
	return n
}

// TestHowLongVolumesTake: a volume is counted when it is there for the first time, from the pod's first try on; how
// full it is, each time.
func TestHowLongVolumesTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, told := t.TempDir(), &counted{}
		late := filepath.Join(dir, "late")
		b := &bound{metrics: told}
		b.add("c", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}})
		m := b.manager(t, filepath.Join(dir, "pods"))
		pod := claimed("u", "c", false)
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: "late",
				VolumeSource: corev1.VolumeSource{
					HostPath: &corev1.HostPathVolumeSource{Path: late, Type: new(corev1.HostPathDirectory)}}})
		expect := func(what, want string) {
			t.Helper()
			if got := told.took(); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		mount := func() error { _, err := m.Mount(t.Context(), pod); return err }
		if err := mount(); err == nil {
			t.Error("a directory that is not there is mounted")
		}
		expect("the first try", "host-path there after 0s")
		time.Sleep(3 * time.Second)
		if err := os.Mkdir(late, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := mount(); err != nil {
				t.Fatal(err)
			}
		}
		expect("later tries", "host-path there after 3s")
		done := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- m.Run(ctx) }()
		m.Update(pod)
		synctest.Wait()
		expect("a look", "measured by statfs")
		if err := m.Unmount(ctx, "u"); err != nil {
			t.Fatal(err)
		}
		if err := mount(); err != nil {
			t.Fatal(err)
		}
		expect("another life", "host-path there after 0s, host-path there after 0s")
		if err := m.Unmount(ctx, "u"); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestASweepThatFails: what could not be removed is told of, too.
func TestASweepThatFails(t *testing.T) {
	t.Parallel()
	told := &counted{}
	m := newManager(t, &api{metrics: told})
	for _, uid := range []types.UID{"a", "b"} {
		if _, err := m.WriteHosts(uid, []byte("h")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(m.PodsDir(), "b", "volumes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Cleanup(t.Context(), func(_ types.UID, remove func() error) error { return remove() }); err == nil {
		t.Error("a directory that cannot be read is removed")
	}
	if want := []string{"swept 1 1"}; !slices.Equal(told.notes, want) {
		t.Errorf("%v, want %v", told.notes, want)
	}
	if err := os.Remove(filepath.Join(m.PodsDir(), "b", "volumes")); err != nil {
		t.Fatal(err)
	}
}
