package podspec

import corev1 "k8s.io/api/core/v1"

// disabled are the fields of features that are off by default: each reports whether a pod has some, and drops them.
var disabled = []func(s *corev1.PodSpec, drop bool) bool{schedulingGroup, stopSignals, fileOwners, emptyDirModes,
	bindOptions, probeProtocols, evictionResponders}

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

// fileOwners are the users of files in volumes (AtomicWriteVolumeUserFields).
func fileOwners(s *corev1.PodSpec, drop bool) (had bool) {
	of := func(user **int64) { had = clear(user, drop) || had }
	items := func(all []corev1.KeyToPath) {
		for i := range all {
			of(&all[i].User)
		}
	}
	fields := func(all []corev1.DownwardAPIVolumeFile) {
		for i := range all {
			of(&all[i].User)
		}
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.Secret != nil {
			of(&v.Secret.DefaultUser)
			items(v.Secret.Items)
		}
		if v.ConfigMap != nil {
			of(&v.ConfigMap.DefaultUser)
			items(v.ConfigMap.Items)
		}
		if v.DownwardAPI != nil {
			of(&v.DownwardAPI.DefaultUser)
			fields(v.DownwardAPI.Items)
		}
		if v.Projected != nil {
			of(&v.Projected.DefaultUser)
		}
	}
	projections(s, func(p *corev1.VolumeProjection) {
		if p.Secret != nil {
			items(p.Secret.Items)
		}
		if p.ConfigMap != nil {
			items(p.ConfigMap.Items)
		}
		if p.DownwardAPI != nil {
			fields(p.DownwardAPI.Items)
		}
		if p.ServiceAccountToken != nil {
			of(&p.ServiceAccountToken.User)
		}
		if p.ClusterTrustBundle != nil {
			of(&p.ClusterTrustBundle.User)
		}
		if p.PodCertificate != nil {
			of(&p.PodCertificate.User)
		}
	})
	return had
}

// emptyDirModes are the modes of emptyDirs (EmptyDirVolumeMode).
func emptyDirModes(s *corev1.PodSpec, drop bool) (had bool) {
	for i := range s.Volumes {
		if d := s.Volumes[i].EmptyDir; d != nil {
			had = clear(&d.Mode, drop) || had
		}
	}
	return had
}

// bindOptions are the options of mounts (VolumeBindMountOptions).
func bindOptions(s *corev1.PodSpec, drop bool) (had bool) {
	containers(s, func(c *corev1.EphemeralContainerCommon) {
		for i := range c.VolumeMounts {
			m := &c.VolumeMounts[i]
			had = had || len(m.BindMountOptions) > 0
			if drop {
				m.BindMountOptions = nil
			}
		}
	})
	return had
}

// probeProtocols are HTTP/2 without TLS (H2CContainerProbe) and gRPC with TLS (GRPCContainerProbeTLS) of probes and
// hooks.
func probeProtocols(s *corev1.PodSpec, drop bool) (had bool) {
	containers(s, func(c *corev1.EphemeralContainerCommon) {
		for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if p == nil {
				continue
			}
			if p.HTTPGet != nil {
				had = clear(&p.HTTPGet.Protocol, drop) || had
			}
			if p.GRPC != nil {
				had = clear(&p.GRPC.Mode, drop) || had
			}
		}
		if c.Lifecycle == nil {
			return
		}
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil && h.HTTPGet != nil {
				had = clear(&h.HTTPGet.Protocol, drop) || had
			}
		}
	})
	return had
}

// evictionResponders are who is asked before a pod is evicted (EvictionRequestAPI).
func evictionResponders(s *corev1.PodSpec, drop bool) bool {
	had := len(s.EvictionResponders) > 0
	if drop {
		s.EvictionResponders = nil
	}
	return had
}

// clear reports whether a field is set, and drops it if asked to.
func clear[T any](at **T, drop bool) bool {
	had := *at != nil
	if drop {
		*at = nil
	}
	return had
}

// containers calls f for all containers.
func containers(s *corev1.PodSpec, f func(*corev1.EphemeralContainerCommon)) {
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			f((*corev1.EphemeralContainerCommon)(&list[i]))
		}
	}
	for i := range s.EphemeralContainers {
		f(&s.EphemeralContainers[i].EphemeralContainerCommon)
	}
}

// projections calls f for all sources of projected volumes.
func projections(s *corev1.PodSpec, f func(*corev1.VolumeProjection)) {
	for i := range s.Volumes {
		if p := s.Volumes[i].Projected; p != nil {
			for j := range p.Sources {
				f(&p.Sources[j])
			}
		}
	}
}
