// Package emptydir makes volumes that begin empty and live as long as their pod: directories on the node's disk, in
// its memory or in its huge pages.
package emptydir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/volume"
)

const name = "empty-dir"

// Source makes emptyDirs.
type Source struct {
	// allocatable is the node's memory for pods, in bytes.
	allocatable func() int64
}

var _ volume.Remover = Source{}

// New returns the source of emptyDirs. allocatable is what all pods together may have of the node's memory, in bytes.
func New(allocatable func() int64) Source { return Source{allocatable: allocatable} }

// Name implements volume.Source.
func (Source) Name() string { return name }

// Supports implements volume.Source.
func (Source) Supports(s volume.Spec) bool { return s.Volume.EmptyDir != nil }

// Path returns the directory of the emptyDir called volumeName of a pod with the directory podDir
// (volume.Manager.PodDir).
func Path(podDir, volumeName string) string { return volume.Dir(podDir, name, volumeName) }

// Prepare implements volume.Source.
func (s Source) Prepare(_ context.Context, r volume.Request) (volume.Publish, error) {
	on, err := s.fileSystem(r.Pod, r.Volume.EmptyDir)
	if err != nil {
		return nil, err
	}
	return func() (volume.Mounted, error) {
		return volume.Mounted{HostPath: r.Dir}, publish(r, on)
	}, nil
}

// fileSystem is what an emptyDir is made on; nil: the node's disk.
func (s Source) fileSystem(pod *corev1.Pod, v *corev1.EmptyDirVolumeSource) (*volume.FileSystem, error) {
	switch {
	case v.Medium == corev1.StorageMediumDefault:
		return nil, nil
	case v.Medium == corev1.StorageMediumMemory:
		return volume.Tmpfs(volume.MemorySize(pod, v.SizeLimit, s.allocatable())), nil
	case v.Medium == corev1.StorageMediumHugePages,
		strings.HasPrefix(string(v.Medium), string(corev1.StorageMediumHugePagesPrefix)):
		return hugePages(pod, v.Medium)
	}
	return nil, fmt.Errorf("unknown storage medium %q", v.Medium)
}

// complete is the file which notes that an emptyDir is complete.
func complete(at volume.Place) string { return filepath.Join(at.Notes, "ready") }

// publish makes an emptyDir open to every user of the pod. One that is complete stays as it is, as the pod's containers
// may have changed it; a note says so, outside of what they see. One that was left half-made is completed.
func publish(r volume.Request, on *volume.FileSystem) error {
	if _, err := os.Lstat(complete(r.Place)); err == nil && volume.Ready(r.Dir, on) {
		return nil
	}
	if err := volume.MakeDir(r.Dir, on); err != nil {
		return err
	}
	own := volume.OwnerOf(r.Pod)
	own.Writable = true
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return fmt.Errorf("open the volume: %w", err)
	}
	defer root.Close()
	if err := own.Apply(root, "."); err != nil {
		return err
	}
	if err := os.MkdirAll(r.Notes, 0o750); err != nil {
		return fmt.Errorf("make the volume's record: %w", err)
	}
	if err := os.WriteFile(complete(r.Place), nil, 0o640); err != nil {
		return fmt.Errorf("note that the volume is complete: %w", err)
	}
	return nil
}

// TakeDown implements volume.Remover. The note goes first: it must not outlive its volume.
func (Source) TakeDown(ctx context.Context, at volume.Place) error {
	if err := os.Remove(complete(at)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the volume's record: %w", err)
	}
	for _, dir := range []string{at.Notes, at.Dir} {
		if err := volume.RemoveTree(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// Free gives back the memory of a pod's emptyDirs that are in memory. It is for a pod whose processes have been killed
// for want of memory: what they wrote would stay until the runtime has removed the containers, which takes memory. Of a
// volume that a container had a part of (subPath), the kernel keeps the content until that part is unmounted, too.
func Free(ctx context.Context, podDir string, pod *corev1.Pod) error {
	var errs []error
	for _, v := range pod.Spec.Volumes {
		if v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			errs = append(errs, volume.RemoveTree(ctx, Path(podDir, v.Name)))
		}
	}
	return errors.Join(errs...)
}
