package csi

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/volume"
)

var (
	_ volume.Expander = (*Source)(nil)
	_ volume.Remover  = (*Source)(nil)
)

// Expands implements volume.Expander. A driver that does not has no part of it on the node.
func (s *Source) Expands(v volume.Spec) bool {
	d, err := s.cfg.Drivers.get(v.PV.Spec.CSI.Driver)
	return err == nil && d.expands
}

// Expand implements volume.Expander. It holds the volume's lock, so the volume is neither taken down nor published
// meanwhile. Without a record nothing is mounted, and the result is zero.
func (s *Source) Expand(ctx context.Context, r volume.Request, to resource.Quantity) (resource.Quantity, error) {
	c := r.PV.Spec.CSI
	w := &work{id: volumeID{c.Driver, c.VolumeHandle}, lifecycle: persistent}
	defer s.locks.Hold(w.id)()
	rec, err := readRecord(recordDir(r.Place))
	if err != nil || rec == nil { // taken down meanwhile
		return resource.Quantity{}, err
	}
	if w.driver, err = s.cfg.Drivers.get(c.Driver); err != nil {
		return resource.Quantity{}, err
	}
	req := &csi.NodeExpandVolumeRequest{VolumeId: c.VolumeHandle, VolumePath: s.target(r.Place),
		CapacityRange:    &csi.CapacityRange{RequiredBytes: to.Value()},
		VolumeCapability: capability(r, w, c.FSType)}
	if w.driver.stages {
		req.StagingTargetPath = s.stagingTarget(rec)
	}
	if ref := c.NodeExpandSecretRef; ref != nil {
		if req.Secrets, err = s.secret(ctx, ref.Namespace, ref.Name); err != nil {
			return resource.Quantity{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := w.driver.NodeExpandVolume(ctx, req)
	if err != nil {
		return resource.Quantity{}, expandError(err)
	}
	if got.CapacityBytes < to.Value() { // it need not say
		return to, nil
	}
	return *resource.NewQuantity(got.CapacityBytes, resource.BinarySI), nil
}

// expandError tells what the driver has decided from what may yet come of the call. After one of the codes listed here
// the driver may still be at work, so nobody may conclude that the volume has its old size.
func expandError(err error) error {
	code := status.Code(err)
	if slices.Contains([]codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Aborted,
		codes.Unknown}, code) {
		return err
	}
	return &volume.ExpandError{Err: err,
		Infeasible: slices.Contains([]codes.Code{codes.InvalidArgument, codes.OutOfRange, codes.NotFound}, code)}
}
