package main

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/storage"
	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/volumes"
)

// storageMirrors are the objects that decide where a pod's volumes can be used.
type storageMirrors struct {
	claims      *apiclient.Mirror[*corev1.PersistentVolumeClaim]
	volumes     *apiclient.Mirror[*corev1.PersistentVolume]
	classes     *apiclient.Mirror[*storagev1.StorageClass]
	drivers     *apiclient.Mirror[*storagev1.CSIDriver]
	csiNodes    *apiclient.Mirror[*storagev1.CSINode]
	capacities  *apiclient.Mirror[*storagev1.CSIStorageCapacity]
	attachments *apiclient.Mirror[*storagev1.VolumeAttachment]
}

func newStorageMirrors(c *apiclient.Client, log *slog.Logger) *storageMirrors {
	m := &storageMirrors{
		claims:      apiclient.NewMirror(core.PersistentVolumeClaims(c), all(), log),
		volumes:     apiclient.NewMirror(core.PersistentVolumes(c), all(), log),
		classes:     apiclient.NewMirror(storage.StorageClasses(c), all(), log),
		drivers:     apiclient.NewMirror(storage.CSIDrivers(c), all(), log),
		csiNodes:    apiclient.NewMirror(storage.CSINodes(c), all(), log),
		capacities:  apiclient.NewMirror(storage.CSIStorageCapacities(c), all(), log),
		attachments: apiclient.NewMirror(storage.VolumeAttachments(c), all(), log),
	}
	m.claims.Slim, m.volumes.Slim, m.classes.Slim = volumes.SlimClaim, volumes.SlimVolume, volumes.SlimClass
	m.attachments.Slim = volumes.SlimAttachment
	return m
}

func (m *storageMirrors) feed(s *scheduler.Scheduler) {
	m.claims.Changed, m.volumes.Changed, m.classes.Changed = s.ClaimChanged, s.VolumeChanged, s.ClassChanged
	m.drivers.Changed, m.csiNodes.Changed, m.capacities.Changed = s.DriverChanged, s.CSINodeChanged, s.CapacityChanged
	m.attachments.Changed = s.AttachmentChanged
}

func (m *storageMirrors) all() []mirror {
	return []mirror{m.claims, m.volumes, m.classes, m.drivers, m.csiNodes, m.capacities, m.attachments}
}
