package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/volumetest"
	"bonsai/pkg/loopdevice"
)

// TestLocalDevice: a pod gets a device of the node, held while it has it, also over a restart of the kubelet; the
// device outlives the pod.
func TestLocalDevice(t *testing.T) {
	needRoot(t)
	t.Parallel()
	b, dir := &bound{}, filepath.Join(t.TempDir(), "pods")
	disk := volumetest.Disk(t)
	_, v := b.add("c", localAt(disk))
	v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	pod := claimed("uid-1", "c", true)
	pod.Spec.Containers = []corev1.Container{
		{Name: "c", VolumeDevices: []corev1.VolumeDevice{{Name: "data", DevicePath: "/dev/x"}}}}
	at := filepath.Join(dir, "uid-1/volumeDevices/kubernetes.io~local-volume/pv-c")
	want := volume.Mounted{HostPath: at, Device: true, ReadOnly: true}
	for range 2 {
		if got, err := b.manager(t, dir).Mount(t.Context(), pod); err != nil || got["data"] != want {
			t.Fatalf("%+v, %v", got, err)
		}
		if to, err := os.Readlink(at); err != nil || to != disk {
			t.Errorf("the link leads to %s, %v", to, err)
		}
	}
	held := filepath.Join(dir, "uid-1/pluginDevices/kubernetes.io~local-volume/pv-c/dev")
	if by, err := loopdevice.Of(held); err != nil || by == "" {
		t.Errorf("held by %q, %v", by, err)
	}
	if err := b.manager(t, dir).Remove(t.Context(), "uid-1"); err != nil {
		t.Fatal(err)
	}
	if by, err := loopdevice.Of(held); err != nil || by != "" {
		t.Errorf("still held by %q, %v", by, err)
	}
	if _, err := os.Stat(disk); err != nil {
		t.Error(err)
	}
}

// TestLocalDisk: a file system is made on a device that has none, and stays with its data; the device is mounted once
// for all its pods.
func TestLocalDisk(t *testing.T) {
	needRoot(t)
	t.Parallel()
	b, dir := &bound{}, filepath.Join(t.TempDir(), "pods")
	b.add("c", localAt(volumetest.Disk(t)))
	m := b.manager(t, dir)
	got := map[string]string{}
	for _, uid := range []string{"one", "two"} {
		at, err := m.Mount(t.Context(), claimed(uid, "c", false))
		if err != nil {
			t.Fatal(err)
		}
		got[uid] = at["data"].HostPath
	}
	if err := os.WriteFile(filepath.Join(got["one"], "f"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	global := filepath.Join(filepath.Dir(dir), "disks/pv-c")
	for _, uid := range []string{"one", "two"} {
		if mounted, err := volume.MountedAt(global); err != nil || !mounted {
			t.Errorf("unmounted with a pod left: %v", err)
		}
		if data, err := os.ReadFile(filepath.Join(got["two"], "f")); err != nil || string(data) != "kept" {
			t.Errorf("the other pod reads %q, %v", data, err)
		}
		if err := b.manager(t, dir).Remove(t.Context(), claimed(uid, "c", false).UID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(global); !os.IsNotExist(err) {
		t.Errorf("the mount is left: %v", err)
	}
	at, err := m.Mount(t.Context(), claimed("three", "c", false))
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(at["data"].HostPath, "f")); err != nil || string(data) != "kept" {
		t.Errorf("a later pod reads %q, %v", data, err)
	}
}

// TestRefusedDevices: what users are told; it is an event of another reason.
func TestRefusedDevices(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*corev1.PersistentVolume){
		`MapVolume.MapPodDevice failed for volume "pv-c" : path "/tmp" is no block device`: func(
			*corev1.PersistentVolume) {
		},
		`MapVolume.FindMapperPluginBySpec failed for volume "pv-c" : `: func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		},
		`MapVolume.NodeAffinity check failed for volume "pv-c" : no matching NodeSelectorTerms`: func(
			v *corev1.PersistentVolume) {
			v.Spec.NodeAffinity = zone("b")
		},
	} {
		b := &bound{}
		_, v := b.add("c", localAt("/tmp"))
		v.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		change(v)
		_, err := b.manager(t, t.TempDir()).Mount(t.Context(), claimed("u", "c", false))
		if _, ok := errors.AsType[*volume.MapError](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
