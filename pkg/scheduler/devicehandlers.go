package scheduler

import (
	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/scheduler/clusterevent"
)

// ResourceClaimChanged handles an added (old is nil), changed, or deleted (now is nil) ResourceClaim.
func (s *Scheduler) ResourceClaimChanged(old, now *resourcev1.ResourceClaim) {
	nodes, pods := s.Devices.ClaimChanged(old, now)
	s.touch(nodes)
	for _, uid := range pods {
		s.Queue.Ungate(uid)
	}
	s.Queue.Moved(objectEvent(clusterevent.ResourceClaim, old, now))
}

// DeviceClassChanged handles an added, changed or deleted DeviceClass.
func (s *Scheduler) DeviceClassChanged(old, now *resourcev1.DeviceClass) {
	s.Devices.ClassChanged(old, now)
	s.Queue.Moved(objectEvent(clusterevent.DeviceClass, old, now))
}

// ResourceSliceChanged handles an added, changed or deleted ResourceSlice.
func (s *Scheduler) ResourceSliceChanged(old, now *resourcev1.ResourceSlice) {
	s.touch(s.Devices.SliceChanged(old, now))
	s.Queue.Moved(objectEvent(clusterevent.ResourceSlice, old, now))
}

// DeviceTaintRuleChanged handles an added, changed or deleted DeviceTaintRule.
func (s *Scheduler) DeviceTaintRuleChanged(old, now *resourcev1.DeviceTaintRule) {
	s.touch(s.Devices.RuleChanged(old, now))
	s.Queue.Moved(objectEvent(clusterevent.ResourceSlice, old, now))
}

func (s *Scheduler) touch(nodes []string) {
	for _, name := range nodes {
		s.Cache.Touch(name)
	}
}
