package csi

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Records are the volumes that this kubelet, or one before it, has published or staged, as they are noted on the disk.
// They need neither drivers nor the API server: the Node's status shows them before either is there.
type Records struct {
	// Dir is the directory of all drivers' volumes, <root>/plugins/kubernetes.io/csi; PodsDir that of all pods'
	// directories.
	Dir, PodsDir string
}

// InUse returns the names of the attached volumes that are mounted on the node or are about to be, as the Node's status
// shows them: kubernetes.io/csi/<driver>^<handle>. A staged volume is among them until its driver has unstaged it, even
// when its last pod is gone. With an error it returns those that it could read.
func (r Records) InUse() ([]corev1.UniqueVolumeName, error) {
	places, err := r.published()
	if err != nil {
		return nil, err
	}
	staged, err := r.staging()
	if err != nil {
		return nil, err
	}
	var out []corev1.UniqueVolumeName
	var errs []error
	for _, p := range slices.Concat(places, staged) {
		rec, err := readRecord(filepath.Dir(p))
		if err != nil {
			errs = append(errs, err)
		} else if rec != nil && rec.Attachment != "" {
			out = append(out, volumeID{rec.Driver, rec.Handle}.unique())
		}
	}
	slices.Sort(out)
	return slices.Compact(out), errors.Join(errs...)
}

// published returns the paths of the records of all pods' volumes.
func (r Records) published() ([]string, error) {
	var out []string
	for _, part := range []string{"volumes", "pluginDevices"} {
		places, err := filepath.Glob(filepath.Join(r.PodsDir, "*", part, "kubernetes.io~"+name, "*", recordName))
		if err != nil {
			return nil, fmt.Errorf("list the volumes of pods: %w", err)
		}
		out = append(out, places...)
	}
	return out, nil
}

// staging returns the paths of the records of staged volumes.
func (r Records) staging() ([]string, error) {
	out, err := filepath.Glob(filepath.Join(r.Dir, "*", "*", recordName))
	if err != nil {
		return nil, fmt.Errorf("list the staged volumes: %w", err)
	}
	return out, nil
}

// used reports whether a pod on the node has the volume.
func (r Records) used(id volumeID) (bool, error) {
	places, err := r.published()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(places, func(p string) bool {
		rec, err := readRecord(filepath.Dir(p))
		return err != nil || rec != nil && volumeID{rec.Driver, rec.Handle} == id // one that cannot be read may be it
	}), nil
}

// stagedVolumes returns the volumes that are staged on the node.
func (r Records) stagedVolumes() ([]volumeID, error) {
	dirs, err := r.staging()
	if err != nil {
		return nil, err
	}
	var out []volumeID
	var errs []error
	for _, p := range dirs {
		rec, err := readRecord(filepath.Dir(p))
		if err != nil {
			errs = append(errs, err)
		} else if rec != nil {
			out = append(out, volumeID{rec.Driver, rec.Handle})
		}
	}
	return out, errors.Join(errs...)
}

// unique is the volume's name in a Node's status.
func (id volumeID) unique() corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + id.driver + "^" + id.handle)
}
