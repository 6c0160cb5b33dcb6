package csi

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"bonsai/pkg/kubelet/volume"
)

var _ volume.Measurer = (*Source)(nil)

// Measure implements volume.Measurer. Only a driver that can measure (GET_VOLUME_STATS) is asked, and nothing else: the
// figures of a remote or shared file system are not those of the volume.
func (s *Source) Measure(ctx context.Context, at volume.Place, v volume.Spec) (volume.Usage, bool) {
	if v.PV == nil {
		return volume.Usage{}, false
	}
	d, err := s.cfg.Drivers.get(v.PV.Spec.CSI.Driver)
	if err != nil || !d.measures {
		return volume.Usage{}, false
	}
	rec, err := readRecord(recordDir(at))
	if err != nil || rec == nil { // taken down meanwhile
		return volume.Usage{}, false
	}
	req := &csi.NodeGetVolumeStatsRequest{VolumeId: rec.Handle, VolumePath: s.target(at)}
	if d.stages {
		req.StagingTargetPath = s.stagingTarget(rec)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := d.NodeGetVolumeStats(ctx, req)
	if err != nil {
		return volume.Usage{}, false
	}
	var out volume.Usage
	for _, u := range got.Usage {
		total, available, used := amount(u.GetTotal()), amount(u.GetAvailable()), amount(u.GetUsed())
		switch u.GetUnit() {
		case csi.VolumeUsage_BYTES:
			out.Capacity, out.Available, out.Used = total, available, used
		case csi.VolumeUsage_INODES:
			out.Inodes, out.InodesFree, out.InodesUsed = total, available, used
		}
	}
	return out, len(got.Usage) > 0
}

// amount returns a driver's figure, with negative ones as 0.
func amount(n int64) uint64 { return uint64(max(n, 0)) }
