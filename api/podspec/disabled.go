package podspec

import corev1 "k8s.io/api/core/v1"

// disabled are the fields of features that are off by default: each reports whether a pod has some, and drops them.
var disabled = []func(s *corev1.PodSpec, drop bool) bool{schedulingGroup, stopSignals, podCertificates, trustBundles}

// DropDisabled drops fields of features that are off by default, except those that old has, too; old may be nil. It is
// no default: who writes such a field manages it.
func DropDisabled(s, old *corev1.PodSpec) {
	for _, fields := range disabled {
		if fields(s, false) && (old == nil || !fields(old, false)) {
			fields(s, true)
		}
	}
}

func schedulingGroup(s *corev1.PodSpec, drop bool) bool {
	had := s.SchedulingGroup != nil
	if drop {
		s.SchedulingGroup = nil
	}
	return had
}

func stopSignals(s *corev1.PodSpec, drop bool) (had bool) {
	of := func(at **corev1.Lifecycle) {
		l := *at
		if l == nil || l.StopSignal == nil {
			return
		}
		had = true
		if !drop {
			return
		}
		l.StopSignal = nil
		if l.PostStart == nil && l.PreStop == nil {
			*at = nil
		}
	}
	for i := range s.InitContainers {
		of(&s.InitContainers[i].Lifecycle)
	}
	for i := range s.Containers {
		of(&s.Containers[i].Lifecycle)
	}
	for i := range s.EphemeralContainers {
		of(&s.EphemeralContainers[i].Lifecycle)
	}
	return had
}

func podCertificates(s *corev1.PodSpec, drop bool) bool {
	return projections(s, func(p *corev1.VolumeProjection) bool {
		had := p.PodCertificate != nil
		if drop {
			p.PodCertificate = nil
		}
		return had
	})
}

func trustBundles(s *corev1.PodSpec, drop bool) bool {
	return projections(s, func(p *corev1.VolumeProjection) bool {
		had := p.ClusterTrustBundle != nil
		if drop {
			p.ClusterTrustBundle = nil
		}
		return had
	})
}

// projections reports whether of is true of a source of a projected volume, and asks it about all.
func projections(s *corev1.PodSpec, of func(*corev1.VolumeProjection) bool) (any bool) {
	for i := range s.Volumes {
		if p := s.Volumes[i].Projected; p != nil {
			for j := range p.Sources {
				any = of(&p.Sources[j]) || any
			}
		}
	}
	return any
}
