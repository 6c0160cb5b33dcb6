package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The directories in a pod's directory that belong to volumes; prefix comes before a source's name below the first two.
const (
	volumes  = "volumes"
	notes    = "plugins"
	subPaths = "volume-subpaths"
	prefix   = "kubernetes.io~"
	// The same as the first two, for volumes that are devices.
	devices     = "volumeDevices"
	deviceNotes = "pluginDevices"
)

// Dir returns the directory of the volume called name that the source makes for a pod with the directory podDir.
func Dir(podDir, source, name string) string {
	return filepath.Join(podDir, volumes, prefix+source, name)
}

func (m *Manager) place(uid types.UID, podDir string, s Source, name string, device bool) Place {
	at := Place{PodUID: uid, Name: name, Dir: Dir(podDir, s.Name(), name),
		Notes: filepath.Join(podDir, notes, prefix+s.Name(), name)}
	if device {
		at.Device = true
		at.Dir, at.Notes = filepath.Join(podDir, devices, prefix+s.Name(), name),
			filepath.Join(podDir, deviceNotes, prefix+s.Name(), name)
	}
	return at
}

// takeDown takes down all volumes of a pod: those in its spec, if that is known, and those on the disk, which an
// earlier kubelet may have made. The volume behind a claim is found on the disk if anything was made for it. It goes on
// after an error, so that one broken volume does not keep the others mounted.
func (m *Manager) takeDown(ctx context.Context, uid types.UID, podDir string, pod *corev1.Pod) error {
	var errs []error
	for _, s := range m.cfg.Sources {
		mapped, err := m.reconstruct(podDir, s, devices, deviceNotes)
		errs = append(errs, err)
		for _, name := range mapped {
			errs = append(errs, m.takeDownOne(ctx, s, m.place(uid, podDir, s, name, true)))
		}
		names, err := m.reconstruct(podDir, s, volumes, notes)
		errs = append(errs, err)
		if pod != nil {
			for i := range pod.Spec.Volumes {
				v := &pod.Spec.Volumes[i]
				if of := m.source(Spec{Volume: v}); of != nil && of.Name() == s.Name() && fileName(v.Name) {
					names = append(names, v.Name)
				}
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			errs = append(errs, m.takeDownOne(ctx, s, m.place(uid, podDir, s, name, false)))
		}
	}
	return errors.Join(errs...)
}

// takeDownOne takes down one volume. The work counts for every source, as upstream's does, whether or not there was
// anything to remove.
func (m *Manager) takeDownOne(ctx context.Context, s Source, at Place) error {
	begun, operation := time.Now(), "volume_unmount"
	if at.Device {
		operation = "unmap_volume"
	}
	var err error
	if r, ok := s.(Remover); ok {
		err = r.TakeDown(ctx, at)
	}
	m.cfg.Metrics.VolumeWork(s.Name(), operation, time.Since(begun), err)
	if err != nil {
		return fmt.Errorf("take down volume %q: %w", at.Name, err)
	}
	return nil
}

// reconstruct returns the names of a source's volumes that have something in the given parts of the pod's directory,
// each once.
func (m *Manager) reconstruct(podDir string, s Source, parts ...string) ([]string, error) {
	var names []string
	for _, part := range parts {
		entries, err := os.ReadDir(filepath.Join(podDir, part, prefix+s.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return names, fmt.Errorf("list the pod's volumes: %w", err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") { // a directory that was being made, no volume
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// fileName reports whether a volume's name can be that of a file.
func fileName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}
