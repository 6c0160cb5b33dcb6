// Package hostpath gives pods files and directories of their node. Nothing of them is the kubelet's: it checks them,
// makes what is missing if the volume's type says so, and leaves all of it where it is.
package hostpath

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/volume"
)

// Source gives paths of the node. It is no volume.Remover: the paths are the node's and stay.
type Source struct{}

var _ volume.Source = Source{}

// New returns the source of hostPaths.
func New() Source { return Source{} }

// Name implements volume.Source.
func (Source) Name() string { return "host-path" }

// Supports implements volume.Source.
func (Source) Supports(s volume.Spec) bool { return of(s) != nil }

// of is the path that a volume is, nil if it is of another kind.
func of(s volume.Spec) *corev1.HostPathVolumeSource {
	if s.PV != nil {
		return s.PV.Spec.HostPath
	}
	return s.Volume.HostPath
}

// Prepare implements volume.Source.
func (Source) Prepare(_ context.Context, r volume.Request) (volume.Publish, error) {
	path := of(r.Spec)
	if err := check(path); err != nil {
		return nil, err
	}
	return func() (volume.Mounted, error) { return volume.Mounted{HostPath: path.Path}, nil }, nil
}

// check makes or checks the path on the host as the volume's type says.
func check(v *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if v.Type != nil {
		kind = *v.Type
	}
	switch kind {
	case corev1.HostPathUnset:
		return nil
	case corev1.HostPathDirectoryOrCreate:
		if err := os.MkdirAll(v.Path, 0o755); err != nil && !isKind(v.Path, fs.ModeDir, fs.ModeDir) {
			return fmt.Errorf("hostPath type check failed: %s is not a directory", v.Path)
		}
		kind = corev1.HostPathDirectory
	case corev1.HostPathFileOrCreate:
		f, err := os.OpenFile(v.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err == nil {
			f.Close()
		} else if os.IsNotExist(err) {
			return err
		}
		kind = corev1.HostPathFile
	}
	want := map[corev1.HostPathType]struct {
		name       string
		mask, mode fs.FileMode
	}{
		corev1.HostPathDirectory: {"a directory", fs.ModeDir, fs.ModeDir},
		corev1.HostPathFile:      {"a file", fs.ModeType, 0},
		corev1.HostPathSocket:    {"a socket file", fs.ModeSocket, fs.ModeSocket},
		corev1.HostPathCharDev:   {"a character device", fs.ModeCharDevice, fs.ModeCharDevice},
		corev1.HostPathBlockDev:  {"a block device", fs.ModeDevice | fs.ModeCharDevice, fs.ModeDevice},
	}
	w, ok := want[kind]
	if !ok {
		return fmt.Errorf("%s is an invalid volume type", kind)
	}
	if !isKind(v.Path, w.mask, w.mode) {
		return fmt.Errorf("hostPath type check failed: %s is not %s", v.Path, w.name)
	}
	return nil
}

func isKind(path string, mask, mode fs.FileMode) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&mask == mode
}
