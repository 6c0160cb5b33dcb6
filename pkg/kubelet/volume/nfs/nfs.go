// Package nfs gives pods directories that a server exports by NFS. They are mounted by the node's mount command and its
// helper mount.nfs.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/mount-utils"

	"bonsai/pkg/kubelet/volume"
)

// Source gives exported directories.
type Source struct{ mounts mount.Interface }

var (
	_ volume.MountOptioner = (*Source)(nil)
	_ volume.Remover       = (*Source)(nil)
)

// New returns the source of NFS volumes, which uses the system's mount command.
func New(mounts mount.Interface) *Source { return &Source{mounts} }

// Name implements volume.Source.
func (*Source) Name() string { return "nfs" }

// Supports implements volume.Source.
func (*Source) Supports(s volume.Spec) bool { return of(s) != nil }

// of is the export that a volume is, nil if it is of another kind.
func of(s volume.Spec) *corev1.NFSVolumeSource {
	if s.PV != nil {
		return s.PV.Spec.NFS
	}
	return s.Volume.NFS
}

// TakesMountOptions implements volume.MountOptioner.
func (*Source) TakesMountOptions() {}

// Prepare implements volume.Source.
func (s *Source) Prepare(_ context.Context, r volume.Request) (volume.Publish, error) {
	export := of(r.Spec)
	// The command would take it for an option of its own, and whoever may make pods chooses it: an option names another
	// fstab, from which root mounts anything. Validation takes any text, as Kubernetes' does.
	if strings.HasPrefix(export.Server, "-") {
		return nil, fmt.Errorf("the NFS server %q is neither a name nor an address", export.Server)
	}
	readOnly := r.ReadOnly || export.ReadOnly
	return func() (volume.Mounted, error) {
		return volume.Mounted{HostPath: r.Dir, ReadOnly: readOnly}, s.publish(r, export, readOnly)
	}, nil
}

func (s *Source) publish(r volume.Request, export *corev1.NFSVolumeSource, readOnly bool) error {
	if mounted, err := volume.MountedAt(r.Dir); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o750); err != nil {
		return fmt.Errorf("make the volume's directory: %w", err)
	}
	options := slices.Clone(r.MountOptions())
	if readOnly && !slices.Contains(options, "ro") {
		options = append(options, "ro")
	}
	if err := s.mounts.Mount(host(export.Server)+":"+export.Path, r.Dir, "nfs", options); err != nil {
		return errors.Join(err, volume.RemoveMount(r.Dir))
	}
	return nil
}

// host is the server as the mount command takes it: an IPv6 address in brackets.
func host(server string) string {
	if strings.Contains(server, ":") && !strings.HasPrefix(server, "[") {
		return "[" + server + "]"
	}
	return server
}

// TakeDown implements volume.Remover.
func (*Source) TakeDown(_ context.Context, at volume.Place) error { return volume.RemoveMount(at.Dir) }
