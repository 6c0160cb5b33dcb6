// Package emptydir makes volumes that begin empty and live as long as their pod: directories on the node's disk, or in its memory.
package emptydir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"bonsai/pkg/kubelet/volume"
)

const name = "empty-dir"

// Source makes emptyDirs.
type Source struct{}

var _ volume.Source = Source{}

// New returns the source of emptyDirs.
func New() Source { return Source{} }

// Name implements volume.Source.
func (Source) Name() string { return name }

// Supports implements volume.Source.
func (Source) Supports(s volume.Spec) bool { return s.Volume.EmptyDir != nil }

// Path is where the emptyDir called volumeName of a pod is, whose own directory is podDir (volume.Manager.PodDir).
func Path(podDir, volumeName string) string { return volume.Dir(podDir, name, volumeName) }

// Prepare implements volume.Source.
func (Source) Prepare(_ context.Context, r volume.Request) (volume.Publish, error) {
	memory := false
	switch m := r.Volume.EmptyDir.Medium; m {
	case corev1.StorageMediumDefault:
	case corev1.StorageMediumMemory:
		memory = true
	default:
		return nil, fmt.Errorf("unknown storage medium %q", m)
	}
	return func() (volume.Mounted, error) {
		return volume.Mounted{HostPath: r.Dir}, publish(r, memory)
	}, nil
}

// complete is the file which notes that an emptyDir is complete.
func complete(at volume.Place) string { return filepath.Join(at.Notes, "ready") }

// publish makes an emptyDir open to every user of the pod. One that is complete stays as it is, as the pod's containers may have changed it;
// a note says so, outside of what they see. One that was left half-made is completed.
func publish(r volume.Request, memory bool) error {
	if _, err := os.Lstat(complete(r.Place)); err == nil && volume.Ready(r.Dir, memory) {
		return nil
	}
	if err := volume.MakeDir(r.Dir, memory, memorySize(r.Pod, r.Volume.EmptyDir)); err != nil {
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

// TakeDown implements volume.Source. The note goes first: it must not outlive its volume.
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

// memorySize is the size of an emptyDir in memory: its limit, but no more than what the pod may use. 0 leaves it to the kernel
// (half of the machine's memory).
func memorySize(pod *corev1.Pod, v *corev1.EmptyDirVolumeSource) int64 {
	var size int64
	if v.SizeLimit != nil {
		size = v.SizeLimit.Value()
	}
	for i := range pod.Spec.Containers {
		if l := pod.Spec.Containers[i].Resources.Limits; l.Memory().IsZero() {
			return size
		}
	}
	limits := resource.PodLimits(pod, resource.PodResourcesOptions{})
	limit := limits.Memory().Value()
	if limit > 0 && (size == 0 || limit < size) {
		return limit
	}
	return size
}
