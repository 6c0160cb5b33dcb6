// Package local gives pods directories of their node that PersistentVolumes stand for. Unlike a hostPath one is bound to its place among the pod's
// volumes, belongs to the pod's fsGroup, and is tied to its node by the volume's affinity.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"k8s.io/mount-utils"

	"bonsai/pkg/kubelet/volume"
)

// Source gives local volumes.
type Source struct{ mounts mount.Interface }

var _ volume.MountOptioner = (*Source)(nil)

// New returns the source of local volumes, which uses the system's mount command.
func New(mounts mount.Interface) *Source { return &Source{mounts} }

// Name implements volume.Source.
func (*Source) Name() string { return "local-volume" }

// Supports implements volume.Source.
func (*Source) Supports(s volume.Spec) bool { return s.PV != nil && s.PV.Spec.Local != nil }

// TakesMountOptions implements volume.MountOptioner.
func (*Source) TakesMountOptions() {}

// Prepare implements volume.Source.
func (s *Source) Prepare(_ context.Context, r volume.Request) (volume.Publish, error) {
	path := r.PV.Spec.Local.Path
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &volume.StepError{Step: "MountVolume.NewMounter initialization failed", Err: fmt.Errorf("path %q does not exist", path)}
	case err != nil:
		return nil, fmt.Errorf("look at the volume: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("path %q is no directory: local volumes on devices are not supported", path)
	}
	return func() (volume.Mounted, error) { return volume.Mounted{HostPath: r.Dir}, s.publish(r, path) }, nil
}

// publish gives the directory to the pod's group, then binds it: what is bound is complete.
func (s *Source) publish(r volume.Request, path string) error {
	if mounted, err := volume.MountedAt(r.Dir); err != nil || mounted {
		return err
	}
	if !r.ReadOnly {
		if err := volume.SetOwnership(path, r.Pod); err != nil {
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
	if err := s.mounts.Mount(path, r.Dir, "", options); err != nil {
		return errors.Join(err, volume.RemoveMount(r.Dir))
	}
	return nil
}

// TakeDown implements volume.Source: what was bound stays where it is.
func (*Source) TakeDown(_ context.Context, at volume.Place) error { return volume.RemoveMount(at.Dir) }
