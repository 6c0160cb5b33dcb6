package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/scheduler/clusterevent"
)

// objectEvent is what became of an object that volumes or devices depend on: added (old is nil), changed, or gone (now
// is nil).
func objectEvent[T any](kind clusterevent.Kind, old, now *T) clusterevent.Event {
	e := clusterevent.Event{Kind: kind, Action: clusterevent.Update}
	switch {
	case now == nil:
		e.Action, e.Old = clusterevent.Delete, old
		e.Label = string(kind) + "Delete"
	case old == nil:
		e.Action, e.New = clusterevent.Add, now
		e.Label = string(kind) + "Add"
	default:
		e.Old, e.New = old, now
		e.Label = string(kind) + "Update"
	}
	return e
}

// ClaimChanged handles an added (old is nil), changed, or deleted (now is nil) claim.
func (s *Scheduler) ClaimChanged(old, now *corev1.PersistentVolumeClaim) {
	s.Volumes.ClaimChanged(old, now)
	s.Queue.Moved(objectEvent(clusterevent.Claim, old, now))
}

// VolumeChanged handles an added, changed or deleted persistent volume.
func (s *Scheduler) VolumeChanged(old, now *corev1.PersistentVolume) {
	s.Volumes.VolumeChanged(old, now)
	s.Queue.Moved(objectEvent(clusterevent.Volume, old, now))
}

// ClassChanged handles an added, changed or deleted storage class.
func (s *Scheduler) ClassChanged(old, now *storagev1.StorageClass) {
	s.Volumes.ClassChanged(old, now)
	s.Queue.Moved(objectEvent(clusterevent.Class, old, now))
}

// DriverChanged handles an added, changed or deleted CSIDriver.
func (s *Scheduler) DriverChanged(old, now *storagev1.CSIDriver) {
	s.Volumes.DriverChanged(old, now)
	s.Queue.Moved(objectEvent(clusterevent.Driver, old, now))
}

// CapacityChanged handles an added, changed or deleted CSIStorageCapacity.
func (s *Scheduler) CapacityChanged(old, now *storagev1.CSIStorageCapacity) {
	s.Volumes.CapacityChanged(old, now)
	s.Queue.Moved(objectEvent(clusterevent.Capacity, old, now))
}

// AttachmentChanged handles an added, changed or deleted VolumeAttachment.
func (s *Scheduler) AttachmentChanged(old, now *storagev1.VolumeAttachment) {
	for _, node := range s.Volumes.AttachmentChanged(old, now) {
		s.Cache.Touch(node)
	}
	s.Queue.Moved(objectEvent(clusterevent.Attachment, old, now))
}

// CSINodeChanged handles an added, changed or deleted CSINode.
func (s *Scheduler) CSINodeChanged(old, now *storagev1.CSINode) {
	name := ""
	if now != nil {
		name = now.Name
	} else {
		name = old.Name
	}
	s.Cache.SetVolumeLimits(name, s.Volumes.NodeChanged(old, now))
	s.Queue.Moved(objectEvent(clusterevent.CSINode, old, now))
}
