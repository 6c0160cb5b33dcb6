// Package local gives pods directories and block devices of their node that PersistentVolumes stand for. Unlike a
// hostPath one is bound to its place among the pod's volumes, belongs to the pod's fsGroup, and is tied to its node by
// the volume's affinity. A device is given as it is, or formatted and mounted.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/mount-utils"

	"bonsai/pkg/kubelet/volume"
)

// Config is what a Source needs; everything is required.
type Config struct {
	// Dir is where devices are mounted for all their pods, <root>/plugins/kubernetes.io/local-volume/mounts; PodsDir
	// that of all pods' directories.
	Dir, PodsDir string
	// Mounts is the system's mount command, with which disks are formatted, too.
	Mounts *mount.SafeFormatAndMount
}

// Source gives local volumes.
type Source struct {
	cfg Config
	// locks are those of volumes by name, held while a device is mounted or unmounted, for one pod may begin with it as
	// another ends, and of devices by path, for two volumes may be one. To format a disk, or to ask one that does not
	// answer, takes long, and is nothing to the others.
	locks volume.Locks[string]
}

var (
	_ volume.MountOptioner = (*Source)(nil)
	_ volume.Mapper        = (*Source)(nil)
	_ volume.Remover       = (*Source)(nil)
)

const name = "local-volume"

// New returns the source of local volumes.
func New(cfg Config) *Source { return &Source{cfg: cfg} }

// Name implements volume.Source.
func (*Source) Name() string { return name }

// Supports implements volume.Source.
func (*Source) Supports(s volume.Spec) bool { return s.PV != nil && s.PV.Spec.Local != nil }

// TakesMountOptions implements volume.MountOptioner.
func (*Source) TakesMountOptions() {}

// MapsDevices implements volume.Mapper.
func (*Source) MapsDevices() {}

// Prepare implements volume.Source.
func (s *Source) Prepare(ctx context.Context, r volume.Request) (volume.Publish, error) {
	path := r.PV.Spec.Local.Path
	if r.Block() {
		return prepareDevice(r, path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &volume.StepError{Step: "MountVolume.NewMounter initialization failed",
			Err: fmt.Errorf("path %q does not exist", path)}
	case err != nil:
		return nil, fmt.Errorf("look at the volume: %w", err)
	case info.IsDir():
		return func() (volume.Mounted, error) { return volume.Mounted{HostPath: r.Dir}, s.publish(ctx, r, path) }, nil
	}
	if device, err := volume.IsBlockDevice(path); err != nil || !device {
		return nil, &volume.StepError{Step: "MountVolume.MountDevice failed",
			Err: errors.Join(err, errors.New("only directory and block device are supported"))}
	}
	return func() (volume.Mounted, error) { return volume.Mounted{HostPath: r.Dir}, s.publishDevice(ctx, r, path) }, nil
}

// prepareDevice is for a volume that containers get as a device.
func prepareDevice(r volume.Request, path string) (volume.Publish, error) {
	if device, err := volume.IsBlockDevice(path); err != nil || !device {
		return nil, &volume.StepError{Step: "MapVolume.MapPodDevice failed",
			Err: errors.Join(err, fmt.Errorf("path %q is no block device", path))}
	}
	return func() (volume.Mounted, error) {
		if err := volume.MapDevice(r.Place, path); err != nil {
			return volume.Mounted{}, &volume.StepError{Step: "MapVolume.MapBlockVolume failed", Err: err}
		}
		return volume.Mounted{HostPath: r.Dir, Device: true}, nil
	}, nil
}

// publishDevice mounts the file system of a device for all its pods, then binds that. A device without one is
// formatted.
func (s *Source) publishDevice(ctx context.Context, r volume.Request, path string) error {
	defer s.locks.Hold(r.Name)()
	defer s.locks.Hold(path)()
	if mounted, err := volume.MountedAt(r.Dir); err != nil || mounted {
		return err
	}
	global := filepath.Join(s.cfg.Dir, r.Name)
	mounted, err := volume.MountedAt(global)
	if err == nil && !mounted {
		err = s.mountDevice(r, path, global)
	}
	if err != nil {
		return &volume.StepError{Step: "MountVolume.MountDevice failed", Err: err}
	}
	return s.publish(ctx, r, global)
}

// mountDevice mounts a device. The volume may name its file system's type; otherwise the type is what is on the device,
// or ext4 on an empty one.
func (s *Source) mountDevice(r volume.Request, path, at string) error {
	var fsType string
	if t := r.PV.Spec.Local.FSType; t != nil {
		fsType = *t
	}
	if fsType == "" {
		var err error
		if fsType, err = s.cfg.Mounts.GetDiskFormat(path); err != nil {
			return err
		}
		if fsType == "" {
			fsType = "ext4"
		}
	}
	if err := os.MkdirAll(at, 0o750); err != nil {
		return fmt.Errorf("make where the device is mounted: %w", err)
	}
	if err := s.cfg.Mounts.FormatAndMount(path, at, fsType, r.MountOptions()); err != nil {
		return errors.Join(err, volume.RemoveMount(at))
	}
	return nil
}

// publish gives the directory to the pod's group, then binds it: what is bound is complete.
func (s *Source) publish(ctx context.Context, r volume.Request, path string) error {
	if mounted, err := volume.MountedAt(r.Dir); err != nil || mounted {
		return err
	}
	if !r.ReadOnly {
		if err := volume.SetOwnership(ctx, path, r.Pod); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.Dir, 0o750); err != nil {
		return fmt.Errorf("make the volume's directory: %w", err)
	}
	options := slices.Concat([]string{"bind"}, r.MountOptions())
	if r.ReadOnly && !slices.Contains(options, "ro") {
		options = append(options, "ro")
	}
	if err := s.cfg.Mounts.Mount(path, r.Dir, "", options); err != nil {
		return errors.Join(err, volume.RemoveMount(r.Dir))
	}
	return nil
}

// TakeDown implements volume.Remover. What was bound stays where it is, but a device that no other pod has is
// unmounted. That comes first: a kubelet that is killed in between finds the pod's part again, and with it the rest.
func (s *Source) TakeDown(_ context.Context, at volume.Place) error {
	if at.Device {
		return volume.UnmapDevice(at)
	}
	defer s.locks.Hold(at.Name)()
	users, err := filepath.Glob(filepath.Join(s.cfg.PodsDir, "*", "volumes", "kubernetes.io~"+name, at.Name))
	if err != nil {
		return fmt.Errorf("list the volume's pods: %w", err)
	}
	if !slices.ContainsFunc(users, func(dir string) bool { return dir != at.Dir }) {
		if err := volume.RemoveMount(filepath.Join(s.cfg.Dir, at.Name)); err != nil {
			return err
		}
	}
	return volume.RemoveMount(at.Dir)
}
