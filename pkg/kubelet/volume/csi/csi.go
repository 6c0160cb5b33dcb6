// Package csi gives pods volumes that drivers of the Container Storage Interface mount: PersistentVolumes, staged once
// on the node and published for each pod, and volumes that live as long as their pod. The record that is needed to take
// a volume down is on the disk next to it, so that a kubelet that was restarted, or has never seen the pod, can do it.
//
// The contract: https://github.com/container-storage-interface/spec/blob/master/spec.md and
// https://kubernetes-csi.github.io/docs/.
package csi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/kubelet/volume"
)

// Client is the API server as volumes of drivers need it.
type Client interface {
	CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error)
	VolumeAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	CreateToken(ctx context.Context, namespace, account string, req *authnv1.TokenRequest) (*authnv1.TokenRequest,
		error)
}

// Config is what a Source needs; everything is required.
type Config struct {
	// Records are the volumes on the disk.
	Records Records
	Node    string
	Client  Client
	Drivers *Drivers
	// ShowInUse returns when the Node's status shows a volume that Records.InUse names.
	ShowInUse func(ctx context.Context, volume corev1.UniqueVolumeName) error
}

// Source gives volumes of drivers. Its memory (published, staged) only saves calls: what must survive a restart is in
// Records, and drivers' calls are idempotent.
type Source struct {
	cfg Config

	// locks are those of volumes, held while a driver works on one: a volume that one pod publishes must not be
	// unstaged because another pod ends.
	locks volume.Locks[volumeID]

	mu sync.Mutex // guards what follows
	// published has the places that this kubelet has published, with whether each is to be published again and again;
	// staged has the volumes that it has staged.
	published map[string]bool
	staged    map[volumeID]bool
}

// volumeID is a volume of a driver.
type volumeID struct{ driver, handle string }

var (
	_ volume.MountOptioner = (*Source)(nil)
	_ volume.Mapper        = (*Source)(nil)
)

const name = "csi"

// New returns a source that has published nothing.
func New(cfg Config) *Source {
	return &Source{cfg: cfg, published: map[string]bool{}, staged: map[volumeID]bool{}}
}

// Name implements volume.Source.
func (*Source) Name() string { return name }

// Supports implements volume.Source.
func (*Source) Supports(s volume.Spec) bool {
	if s.PV != nil {
		return s.PV.Spec.CSI != nil
	}
	return s.Volume.CSI != nil
}

// TakesMountOptions implements volume.MountOptioner.
func (*Source) TakesMountOptions() {}

// MapsDevices implements volume.Mapper.
func (*Source) MapsDevices() {}

// target returns where the driver publishes a volume of a pod: the directory that containers see, or the file of a
// device that is mapped from there.
func (s *Source) target(at volume.Place) string {
	if at.Device {
		return filepath.Join(s.cfg.Records.Dir, volumeDevices, "publish", at.Name, string(at.PodUID))
	}
	return filepath.Join(at.Dir, "mount")
}

// volumeDevices is the directory of block devices, next to those of drivers.
const volumeDevices = "volumeDevices"

// recordDir returns where the record of a pod's volume is. It cannot be in the place of a device, which is a link.
func recordDir(at volume.Place) string {
	if at.Device {
		return at.Notes
	}
	return at.Dir
}

// stagingTarget returns where the driver stages the volume that the record describes.
func (s *Source) stagingTarget(rec *record) string {
	if rec.Device {
		return filepath.Join(s.cfg.Records.Dir, volumeDevices, "staging", rec.SpecName)
	}
	return filepath.Join(s.stagingDir(volumeID{rec.Driver, rec.Handle}), "globalmount")
}

// stagingDir returns the directory of a staged volume, with its record and, for file systems, globalmount. The handle
// is hashed, because drivers choose it.
func (s *Source) stagingDir(id volumeID) string {
	sum := sha256.Sum256([]byte(id.handle))
	return filepath.Join(s.cfg.Records.Dir, id.driver, hex.EncodeToString(sum[:]))
}

// publish stages the volume, if its driver does that and it is not staged yet, and publishes it for the pod. The record
// comes first: whatever happens after it, TakeDown knows which driver to ask.
func (s *Source) publish(ctx context.Context, r volume.Request, w *work) error {
	defer s.locks.Hold(w.id)()
	at := s.target(r.Place)
	done, err := s.done(r.Place)
	if err != nil {
		return err
	}
	if done && !w.republish {
		s.note(at, false)
		return nil
	}
	rec := &record{SpecName: r.VolumeName(), Handle: w.id.handle, Driver: w.id.driver, Node: s.cfg.Node,
		Attachment: w.attachment, Lifecycle: w.lifecycle, Device: r.Device}
	if err := rec.write(recordDir(r.Place)); err != nil {
		return err
	}
	if err := s.showInUse(ctx, w); err != nil {
		return step(r, "MountVolume.WaitForAttach failed", "MapVolume.WaitForAttach failed", err)
	}
	staging := ""
	if w.lifecycle == persistent && w.driver.stages {
		staging = s.stagingTarget(rec)
		if err := s.stage(ctx, w, rec, staging); err != nil {
			return step(r, "MountVolume.MountDevice failed", "MapVolume.SetUpDevice failed", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
		return fmt.Errorf("make the volume's directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = w.driver.NodePublishVolume(ctx,
		&csi.NodePublishVolumeRequest{VolumeId: w.id.handle, PublishContext: w.publishContext,
			StagingTargetPath: staging,
			TargetPath:        at, VolumeCapability: w.capability, Readonly: w.readOnly, Secrets: w.publishSecrets,
			VolumeContext: w.context})
	if err != nil {
		return step(r, "MountVolume.SetUp failed", "MapVolume.MapPodDevice failed", err)
	}
	if r.Device {
		if err := volume.MapDevice(r.Place, at); err != nil {
			return &volume.StepError{Step: "MapVolume.MapBlockVolume failed", Err: err}
		}
	}
	if w.ownership && !done {
		if err := volume.SetOwnership(ctx, at, r.Pod); err != nil {
			return err
		}
	}
	s.note(at, w.republish)
	return nil
}

// showInUse waits until the Node shows an attached volume, whose record is written, before the driver touches it. The
// controller detaches volumes that no pod needs and no Node shows. Without this, a pod that soon disappears would have
// its volume detached while it is still mounted.
func (s *Source) showInUse(ctx context.Context, w *work) error {
	if w.attachment == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return s.cfg.ShowInUse(ctx, w.id.unique())
}

// step returns the error of a step, whose name is another one for devices.
func step(r volume.Request, mount, mapped string, err error) error {
	if r.Block() {
		mount = mapped
	}
	return &volume.StepError{Step: mount, Err: err}
}

// done reports whether a place is complete.
func (s *Source) done(at volume.Place) (bool, error) {
	if at.Device {
		return volume.DeviceMapped(at)
	}
	return volume.MountedAt(s.target(at))
}

// stage stages the volume that rec describes. The caller holds its lock.
func (s *Source) stage(ctx context.Context, w *work, rec *record, at string) error {
	s.mu.Lock()
	done := s.staged[w.id]
	s.mu.Unlock()
	if done {
		return nil
	}
	staged := &record{Handle: w.id.handle, Driver: w.id.driver, Attachment: w.attachment}
	if rec.Device {
		staged.SpecName, staged.Device = rec.SpecName, true
	}
	if err := staged.write(s.stagingDir(w.id)); err != nil {
		return err
	}
	if err := os.MkdirAll(at, 0o750); err != nil {
		return fmt.Errorf("make the staging directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := w.driver.NodeStageVolume(ctx,
		&csi.NodeStageVolumeRequest{VolumeId: w.id.handle, PublishContext: w.publishContext, StagingTargetPath: at,
			VolumeCapability: w.capability, Secrets: w.stageSecrets, VolumeContext: w.attributes})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.staged[w.id] = true
	s.mu.Unlock()
	return nil
}

// settled reports whether a place is published and needs no further call.
func (s *Source) settled(at string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	republish, published := s.published[at]
	return published && !republish
}

// note records that a place is published.
func (s *Source) note(at string, republish bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published[at] = republish
}

// TakeDown implements volume.Remover. The record stays until the driver has released the volume, so that a failure is
// repeated. The staged volume goes with its last pod.
func (s *Source) TakeDown(ctx context.Context, at volume.Place) error {
	if at.Device {
		if err := volume.UnmapDevice(at); err != nil {
			return err
		}
	}
	rec, err := readRecord(recordDir(at))
	if err != nil {
		return err
	}
	if rec == nil { // nothing was asked of the driver yet
		return forget(recordDir(at))
	}
	id := volumeID{rec.Driver, rec.Handle}
	defer s.locks.Hold(id)()
	d, err := s.cfg.Drivers.get(rec.Driver)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := d.NodeUnpublishVolume(call,
		&csi.NodeUnpublishVolumeRequest{VolumeId: rec.Handle, TargetPath: s.target(at)}); err != nil {
		return fmt.Errorf("UnmountVolume.TearDown failed: %w", err)
	}
	s.mu.Lock()
	delete(s.published, s.target(at))
	s.mu.Unlock()
	if err := volume.RemoveMount(s.target(at)); err != nil {
		return err
	}
	if at.Device { // the directory of the volume's devices goes with its last pod
		if err := os.Remove(filepath.Dir(s.target(at))); err != nil && !errors.Is(err, fs.ErrNotExist) &&
			!errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("remove the volume's directory: %w", err)
		}
	}
	if err := forget(recordDir(at)); err != nil {
		return err
	}
	return s.unstage(ctx, id)
}

// unstage takes down a staged volume that no pod uses any more. The caller holds its lock. The records on the disk say
// who uses it.
func (s *Source) unstage(ctx context.Context, id volumeID) error {
	dir := s.stagingDir(id)
	rec, err := readRecord(dir)
	if err != nil || rec == nil {
		return err
	}
	used, err := s.cfg.Records.used(id)
	if err != nil || used {
		return err
	}
	d, err := s.cfg.Drivers.get(id.driver)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := d.NodeUnstageVolume(call,
		&csi.NodeUnstageVolumeRequest{VolumeId: id.handle, StagingTargetPath: s.stagingTarget(rec)}); err != nil {
		return fmt.Errorf("UnmountDevice failed: %w", err)
	}
	s.mu.Lock()
	delete(s.staged, id)
	s.mu.Unlock()
	if err := volume.RemoveMount(s.stagingTarget(rec)); err != nil {
		return err
	}
	return forget(dir)
}

// Clean takes down the staged volumes that no pod uses. They are left over if the kubelet was killed after it had
// unpublished a volume from the last pod and before it had unstaged it. A driver that has not registered yet is asked
// the next time.
func (s *Source) Clean(ctx context.Context) error {
	list, err := s.cfg.Records.stagedVolumes()
	errs := []error{err}
	for _, id := range list {
		if _, err := s.cfg.Drivers.get(id.driver); err != nil {
			continue
		}
		release := s.locks.Hold(id)
		errs = append(errs, s.unstage(ctx, id))
		release()
	}
	return errors.Join(errs...)
}
