package csi_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/kubelet/volume/csi"
	"bonsai/pkg/kubelet/volume/csi/csitest"
)

// TestLife: a volume is staged once for two pods, over restarts of the kubelet, and unstaged with the last of them; its
// record is Kubernetes'.
func TestLife(t *testing.T) {
	t.Parallel()
	h := newHouse(t, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	h.notAttached(nil)
	s := h.restarted()
	a, b := h.request("a", persistent()), h.request("b", persistent())
	got, err := publish(t, s, a)
	if err != nil || got.HostPath != filepath.Join(a.Dir, "mount") || got.ReadOnly {
		t.Fatalf("%+v, %v", got, err)
	}
	h.expect("the first pod", "stage vol", "publish vol")
	if r := h.driver.LastStaged(); r.Secrets["from"] != "s/stage" || r.VolumeContext["a"] != "b" ||
		r.VolumeCapability.GetMount().FsType != "ext4" ||
		r.VolumeCapability.GetMount().MountFlags[0] != "noatime" ||
		r.VolumeCapability.AccessMode.Mode != spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER {
		t.Errorf("staged with %v", r)
	}
	if r := h.driver.LastPublished(); r.Secrets["from"] != "s/publish" ||
		r.StagingTargetPath != h.driver.LastStaged().StagingTargetPath || len(r.VolumeContext) != 1 {
		t.Errorf("published with %v", r)
	}
	var rec map[string]string
	data, err := os.ReadFile(filepath.Join(a.Dir, "vol_data.json"))
	if err := errors.Join(err,
		json.Unmarshal(data, &rec)); err != nil || rec["driverName"] != "d" || rec["volumeHandle"] != "vol" ||
		rec["specVolID"] != "pv" ||
		rec["nodeName"] != "n1" || rec["volumeLifecycleMode"] != "Persistent" {
		t.Errorf("the record is %s, %v", data, err)
	}
	if _, err := publish(t, s, a); err != nil {
		t.Error(err)
	}
	h.expect("a refresh")
	s = h.restarted()
	if _, err := publish(t, s, a); err != nil {
		t.Error(err)
	}
	h.expect("after a restart")
	if _, err := publish(t, s, b); err != nil {
		t.Error(err)
	}
	h.expect("another pod", "stage vol", "publish vol") // staging again is harmless
	s = h.restarted()
	if err := s.TakeDown(t.Context(), a.Place); err != nil {
		t.Error(err)
	}
	h.expect("one of two goes", "unpublish vol")
	h.driver.Fail(errors.New("busy"))
	if err := s.TakeDown(t.Context(), b.Place); err == nil {
		t.Error("a driver that fails is no error")
	}
	h.expect("a driver that fails", "unpublish vol")
	if err := s.TakeDown(t.Context(), b.Place); err != nil {
		t.Error(err)
	}
	h.expect("the last one goes", "unpublish vol", "unstage vol")
	if err := s.TakeDown(t.Context(), b.Place); err != nil {
		t.Error(err)
	}
	h.expect("again")
	if left, _ := filepath.Glob(filepath.Join(h.root, "plugins/kubernetes.io/csi/d/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCleanUnstages: what a kubelet left staged that was killed before the unstaging goes; what a pod uses stays.
func TestCleanUnstages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	h.notAttached(nil)
	s := h.restarted()
	r := h.request("a", persistent())
	if _, err := publish(t, s, r); err != nil {
		t.Fatal(err)
	}
	if err := s.Clean(t.Context()); err != nil {
		t.Error(err)
	}
	h.expect("while it is used", "stage vol", "publish vol")
	if err := volume.RemoveTree(t.Context(), r.Dir); err != nil { // as if the pod's part were done
		t.Fatal(err)
	}
	if err := h.restarted().Clean(t.Context()); err != nil {
		t.Error(err)
	}
	h.expect("when nobody uses it", "unstage vol")
}

// TestAttachment: a volume waits for its attachment, whose metadata the driver gets; the node says that it uses it.
func TestAttachment(t *testing.T) {
	t.Parallel()
	h := newHouse(t, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	s := h.restarted()
	r := h.request("a", persistent())
	name := csi.AttachmentName("vol", "d", "n1")
	a := &storagev1.VolumeAttachment{}
	for want, change := range map[string]func(){
		"has GET error for volume attachment " + name: func() { h.api.attachments = nil },
		"volume vol is not attached yet":              func() { a.Status = storagev1.VolumeAttachmentStatus{} },
		"no such disk": func() {
			a.Status.AttachError = &storagev1.VolumeError{Message: "no such disk"}
		},
		"volume attachment is being deleted": func() { a.DeletionTimestamp = &metav1.Time{} },
	} {
		h.api.attachments = map[string]*storagev1.VolumeAttachment{name: a}
		*a = storagev1.VolumeAttachment{}
		change()
		_, err := publish(t, s, r)
		step := (*volume.StepError)(nil)
		if pending, ok := errors.AsType[*volume.PendingError](err); !ok || pending.Volume != r.Volume.Name {
			t.Errorf("%v is not waited for: %+v", err, pending)
		}
		if !errors.As(err, &step) || step.Step != "MountVolume.WaitForAttach failed" ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	*a = storagev1.VolumeAttachment{
		Status: storagev1.VolumeAttachmentStatus{Attached: true,
			AttachmentMetadata: map[string]string{"path": "/dev/x"}}}
	h.api.attachments = map[string]*storagev1.VolumeAttachment{name: a}
	const unique = corev1.UniqueVolumeName("kubernetes.io/csi/d^vol")
	h.show = func() error {
		h.inUse("when the Node is to show it", unique)
		return errors.New("not shown yet")
	}
	if _, err := publish(t, s, r); err == nil || !strings.Contains(err.Error(), "not shown yet") {
		t.Errorf("the Node does not show the volume: %v", err)
	}
	h.expect("before the Node shows the volume")
	h.show = nil
	if _, err := publish(t, s, r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.shown, []corev1.UniqueVolumeName{unique, unique}) {
		t.Errorf("the Node was to show %v", h.shown)
	}
	if h.driver.LastPublished().PublishContext["path"] != "/dev/x" ||
		h.driver.LastStaged().PublishContext["path"] != "/dev/x" {
		t.Error("the driver does not know the attachment")
	}
	h.inUse("published", unique)
	if err := volume.RemoveTree(t.Context(), r.Dir); err != nil { // as if the pod's part were done
		t.Fatal(err)
	}
	h.inUse("staged, without a pod", unique)
	if err := s.Clean(t.Context()); err != nil {
		t.Error(err)
	}
	h.inUse("unstaged")
}

// TestInUseUnread: what cannot be read may be in use; it hides none of what can.
func TestInUseUnread(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := h.request("a", persistent())
	if err := errors.Join(os.MkdirAll(r.Dir, 0o750),
		os.WriteFile(filepath.Join(r.Dir, "vol_data.json"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	other := h.request("b", persistent())
	if err := errors.Join(os.MkdirAll(other.Dir, 0o750),
		os.WriteFile(filepath.Join(other.Dir, "vol_data.json"),
			[]byte(`{"driverName":"d","volumeHandle":"vol","attachmentID":"a"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := h.records().InUse(); err == nil ||
		!slices.Equal(got, []corev1.UniqueVolumeName{"kubernetes.io/csi/d^vol"}) {
		t.Errorf("in use: %v, %v", got, err)
	}
}

// TestInline: a volume of the pod itself, about which the driver wants to know all; its tokens are published again and
// again.
func TestInline(t *testing.T) {
	t.Parallel()
	h := newHouse(t, spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
	s := h.restarted()
	r := h.request("a", volume.Spec{
		Volume: &corev1.Volume{Name: "v",
			VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", ReadOnly: new(true),
				VolumeAttributes:     map[string]string{"k": "v"},
				NodePublishSecretRef: &corev1.LocalObjectReference{Name: "own"}}}}})
	h.notAttached(nil)
	if _, err := publish(t, s,
		r); err == nil || err.Error() !=
		`volume mode "Ephemeral" not supported by driver d (only supports ["Persistent"])` {
		t.Errorf("error %v", err)
	}
	h.notAttached(func(d *storagev1.CSIDriverSpec) {
		d.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral}
		d.PodInfoOnMount, d.RequiresRepublish = new(true), new(true)
		d.TokenRequests = []storagev1.TokenRequest{{Audience: "vault"}}
	})
	for range 2 {
		if got, err := publish(t, s, r); err != nil || !got.ReadOnly {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	p := h.driver.LastPublished()
	for key, want := range map[string]string{"k": "v", "csi.storage.k8s.io/pod.name": "p",
		"csi.storage.k8s.io/pod.namespace": "ns", "csi.storage.k8s.io/pod.uid": "a",
		"csi.storage.k8s.io/serviceAccount.name": "sa", "csi.storage.k8s.io/ephemeral": "true",
		"csi.storage.k8s.io/serviceAccount.tokens": `{"vault":{"token":"sa for vault","expirationTimestamp":null}}`} {
		if p.VolumeContext[key] != want {
			t.Errorf("%s is %q, want %q", key, p.VolumeContext[key], want)
		}
	}
	if !p.Readonly || p.Secrets["from"] != "ns/own" || p.StagingTargetPath != "" {
		t.Errorf("published with %v", p)
	}
	if err := h.restarted().TakeDown(t.Context(), r.Place); err != nil {
		t.Error(err)
	}
	h.expect("it is never staged", "publish "+p.VolumeId, "publish "+p.VolumeId, "unpublish "+p.VolumeId)
}

// TestGroups: who gives a volume to the pod's group, and whether anybody does.
func TestGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		can    []spec.NodeServiceCapability_RPC_Type
		policy storagev1.FSGroupPolicy
		fsType string
		kubelet,
		driver bool
	}{
		"by default, with a file system": {nil, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, "ext4", true, false},
		"by default, without":            {nil, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy, "", false, false},
		"always":                         {nil, storagev1.FileFSGroupPolicy, "", true, false},
		"never":                          {nil, storagev1.NoneFSGroupPolicy, "ext4", false, false},
		"the driver does": {
			[]spec.NodeServiceCapability_RPC_Type{spec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP},
			storagev1.FileFSGroupPolicy, "ext4", false, true},
	} {
		h := newHouse(t, c.can...)
		h.notAttached(func(d *storagev1.CSIDriverSpec) { d.FSGroupPolicy = &c.policy })
		v := persistent()
		v.PV.Spec.CSI.FSType = c.fsType
		r := h.request("a", v)
		r.Pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(4000))}
		got, err := publish(t, h.restarted(), r)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(got.HostPath)
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Mode()&os.ModeSetgid != 0; is != c.kubelet {
			t.Errorf("%s: the kubelet gave it to the group: %v", name, is)
		}
		if is := h.driver.LastPublished().VolumeCapability.GetMount().VolumeMountGroup == "4000"; is != c.driver {
			t.Errorf("%s: the driver was told of the group: %v", name, is)
		}
	}
}

// TestUnknownDriver: a volume waits for a driver that has not registered, and so does its end.
func TestUnknownDriver(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.notAttached(nil)
	s := h.restarted()
	r := h.request("a", persistent())
	if _, err := publish(t, s, r); err != nil {
		t.Fatal(err)
	}
	h.list.Deregister(t.Context(), "d", h.driver.Endpoint)
	const want = "driver name d not found in the list of registered CSI drivers"
	if err := s.TakeDown(t.Context(), r.Place); err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if _, err := publish(t, s, h.request("b", persistent())); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v", err)
	}
	if err := h.list.Register(t.Context(), "d", h.driver.Endpoint, []string{"1.0.0"}); err != nil {
		t.Fatal(err)
	}
	if err := s.TakeDown(t.Context(), r.Place); err != nil {
		t.Error(err)
	}
}

// TestRegister: what the driver says of the node is told; a driver of another version is refused.
func TestRegister(t *testing.T) {
	t.Parallel()
	d := csitest.Start(t, &csitest.Driver{
		Info: &spec.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: 7,
			AccessibleTopology: &spec.Topology{Segments: map[string]string{"zone": "a"}}}})
	told := announced{}
	list := csi.NewDrivers(told, &server{}, slog.New(slog.DiscardHandler))
	if err := list.Register(t.Context(), "d", d.Endpoint, []string{"0.2.0"}); err == nil || len(told) > 0 {
		t.Errorf("version 0.2.0: %v, told %v", err, told)
	}
	if err := list.Register(t.Context(), "d", d.Endpoint, []string{"1.0.0"}); err != nil {
		t.Fatal(err)
	}
	if got := told["d"]; got.ID != "id" || got.MaxVolumes != 7 || got.Topology["zone"] != "a" {
		t.Errorf("told %+v", got)
	}
	list.Deregister(t.Context(), "d", d.Endpoint)
	if len(told) > 0 {
		t.Errorf("still told: %v", told)
	}
}

// TestLimitExceeded: a volume that cannot be attached because the node has enough of them is told as such, and the node
// says at once how many it can have now.
func TestLimitExceeded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := h.request("a", persistent())
	failed := &storagev1.VolumeError{Message: "no slot is left", ErrorCode: new(int32(codes.Internal))}
	h.api.attachments = map[string]*storagev1.VolumeAttachment{
		csi.AttachmentName("vol", "d", "n1"): {Status: storagev1.VolumeAttachmentStatus{AttachError: failed}}}
	h.driver.SetInfo(&spec.NodeGetInfoResponse{NodeId: "node-id", MaxVolumesPerNode: 3})
	s := h.restarted()
	if _, err := publish(t, s, r); err == nil || err.Error() != "no slot is left" || h.told["d"].MaxVolumes != 0 {
		t.Errorf("another error: %v, the node says %+v", err, h.told)
	}
	failed.ErrorCode = new(int32(codes.ResourceExhausted))
	_, err := publish(t, s, r)
	if _, is := errors.AsType[*volume.LimitError](err); !is || err.Error() != "no slot is left" ||
		h.told["d"].MaxVolumes != 3 {
		t.Errorf("beyond the limit: %v, the node says %+v", err, h.told)
	}
}

// TestMeasure: how full a volume is says its driver, and nobody if it cannot.
func TestMeasure(t *testing.T) {
	t.Parallel()
	for can, want := range map[spec.NodeServiceCapability_RPC_Type]bool{
		spec.NodeServiceCapability_RPC_GET_VOLUME_STATS: true, spec.NodeServiceCapability_RPC_EXPAND_VOLUME: false} {
		h := newHouse(t, can)
		h.notAttached(nil)
		s, r := h.restarted(), h.request("a", persistent())
		if _, known := s.Measure(t.Context(), r.Place, r.Spec); known {
			t.Error("a volume that is not published is measured")
		}
		if _, err := publish(t, s, r); err != nil {
			t.Fatal(err)
		}
		h.expect("published", "publish vol")
		got, known := s.Measure(t.Context(), r.Place, r.Spec)
		if known != want || want &&
			got != (volume.Usage{Capacity: 100, Available: 60, Used: 40, Inodes: 10, InodesFree: 7, InodesUsed: 3}) {
			t.Errorf("with %v: %+v, %v", can, got, known)
		}
		if want {
			h.expect("measured", "measure vol at "+filepath.Join(r.Dir, "mount"))
		}
	}
}
