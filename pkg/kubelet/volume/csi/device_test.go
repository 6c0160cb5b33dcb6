package csi_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/volumetest"
	"bonsai/pkg/loopdevice"
)

// TestDevice: a volume that is a device is staged and published where Kubernetes does it, held open while a pod has it,
// known to a kubelet that has just started, and leaves nothing behind.
func TestDevice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	h.driver.Device = volumetest.Disk(t)
	h.notAttached(nil)
	v := persistent()
	v.PV.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	r := h.request("a", v)
	dir := filepath.Join(h.root, "pods/a")
	r.Place = volume.Place{PodUID: "a", Name: "pv", Dir: filepath.Join(dir, "volumeDevices/kubernetes.io~csi/pv"),
		Notes: filepath.Join(dir, "pluginDevices/kubernetes.io~csi/pv"), Device: true}
	r.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(4000))}
	s := h.restarted()
	want := volume.Mounted{HostPath: r.Dir, Device: true}
	if got, err := publish(t, s, r); err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	h.expect("the pod", "stage vol", "publish vol")
	devices := filepath.Join(h.root, "plugins/kubernetes.io/csi/volumeDevices")
	st, p := h.driver.LastStaged(), h.driver.LastPublished()
	if st.VolumeCapability.GetBlock() == nil || p.VolumeCapability.GetBlock() == nil ||
		st.StagingTargetPath != filepath.Join(devices, "staging/pv") ||
		p.StagingTargetPath != st.StagingTargetPath || p.TargetPath != filepath.Join(devices, "publish/pv/a") {
		t.Errorf("staged with %v, published with %v", st, p)
	}
	if to, err := os.Readlink(r.Dir); err != nil || to != p.TargetPath {
		t.Errorf("the link leads to %s, %v", to, err)
	}
	if is, err := volume.IsBlockDevice(r.Dir); err != nil || !is {
		t.Errorf("it leads to no device: %v", err)
	}
	held, err := loopdevice.Of(filepath.Join(r.Notes, "dev"))
	if err != nil || held == "" {
		t.Errorf("nothing holds the device: %v", err)
	}
	s = h.restarted()
	if got, err := publish(t, s, r); err != nil || got != want {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
	h.expect("after a restart")
	if again, err := loopdevice.Of(filepath.Join(r.Notes, "dev")); err != nil || again != held {
		t.Errorf("held by %s, was %s: %v", again, held, err)
	}
	h.inUse("without an attachment")
	h.driver.Fail(errors.New("busy"))
	if err := s.TakeDown(t.Context(), r.Place); err == nil {
		t.Error("a driver that fails is no error")
	}
	h.expect("a driver that fails", "unpublish vol")
	if err := h.restarted().TakeDown(t.Context(), r.Place); err != nil {
		t.Error(err)
	}
	h.expect("the pod ends", "unpublish vol", "unstage vol")
	if held, err := loopdevice.Of(filepath.Join(r.Notes, "dev")); err != nil || held != "" {
		t.Errorf("held by %s: %v", held, err)
	}
	for _, path := range []string{r.Dir, r.Notes, filepath.Join(devices, "publish/pv"), st.StagingTargetPath} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

// TestDeviceSteps: what users are told has failed.
func TestDeviceSteps(t *testing.T) {
	t.Parallel()
	h := newHouse(t, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	v := persistent()
	v.PV.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	r := h.request("a", v)
	r.Device = true
	_, err := publish(t, h.restarted(), r)
	if step, ok := errors.AsType[*volume.StepError](err); !ok || step.Step != "MapVolume.WaitForAttach failed" {
		t.Errorf("not attached: %v", err)
	}
	h.notAttached(nil)
	h.driver.Fail(errors.New("no such disk"))
	_, err = publish(t, h.restarted(), r)
	if step, ok := errors.AsType[*volume.StepError](err); !ok || step.Step != "MapVolume.SetUpDevice failed" ||
		!strings.Contains(err.Error(), "no such disk") {
		t.Errorf("not staged: %v", err)
	}
}
