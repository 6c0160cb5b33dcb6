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

// storageInformers are the objects that decide where a pod's volumes can be used.
type storageInformers struct {
	claims      *apiclient.Informer[*corev1.PersistentVolumeClaim]
	volumes     *apiclient.Informer[*corev1.PersistentVolume]
	classes     *apiclient.Informer[*storagev1.StorageClass]
	drivers     *apiclient.Informer[*storagev1.CSIDriver]
	csiNodes    *apiclient.Informer[*storagev1.CSINode]
	capacities  *apiclient.Informer[*storagev1.CSIStorageCapacity]
	attachments *apiclient.Informer[*storagev1.VolumeAttachment]
}

func newStorageInformers(c *apiclient.Client, log *slog.Logger) *storageInformers {
	m := &storageInformers{
		claims:      apiclient.NewInformer(core.PersistentVolumeClaims(c), all(), log),
		volumes:     apiclient.NewInformer(core.PersistentVolumes(c), all(), log),
		classes:     apiclient.NewInformer(storage.StorageClasses(c), all(), log),
		drivers:     apiclient.NewInformer(storage.CSIDrivers(c), all(), log),
		csiNodes:    apiclient.NewInformer(storage.CSINodes(c), all(), log),
		capacities:  apiclient.NewInformer(storage.CSIStorageCapacities(c), all(), log),
		attachments: apiclient.NewInformer(storage.VolumeAttachments(c), all(), log),
	}
	m.claims.Slim, m.volumes.Slim, m.classes.Slim = volumes.SlimClaim, volumes.SlimVolume, volumes.SlimClass
	m.attachments.Slim = volumes.SlimAttachment
	return m
}

// feed makes the changes reach the scheduler; it is called before the informers run.
func (m *storageInformers) feed(s *scheduler.Scheduler) {
	m.claims.Changed, m.volumes.Changed, m.classes.Changed = s.ClaimChanged, s.VolumeChanged, s.ClassChanged
	m.drivers.Changed, m.csiNodes.Changed, m.capacities.Changed = s.DriverChanged, s.CSINodeChanged, s.CapacityChanged
	m.attachments.Changed = s.AttachmentChanged
}

func (m *storageInformers) all() []informer {
	return []informer{m.claims, m.volumes, m.classes, m.drivers, m.csiNodes, m.capacities, m.attachments}
}
