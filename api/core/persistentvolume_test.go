package core

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestPhaseTransition: a change of the phase gets its time from the clock, unless the writer gives one.
func TestPhaseTransition(t *testing.T) {
	t.Parallel()
	before, given, clock := metav1.Unix(100, 0), metav1.Unix(200, 0), metav1.Unix(300, 0)
	for name, c := range map[string]struct {
		phase corev1.PersistentVolumePhase
		sent  *metav1.Time
		want  metav1.Time
	}{
		"no change":              {corev1.VolumeAvailable, nil, before},
		"no change, but a time":  {corev1.VolumeAvailable, &given, given},
		"change":                 {corev1.VolumeBound, nil, clock},
		"change, time as before": {corev1.VolumeBound, &before, clock},
		"change with its time":   {corev1.VolumeBound, &given, given},
	} {
		old := &corev1.PersistentVolume{
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable,
				LastPhaseTransitionTime: ptr.To(before)}}
		obj := &corev1.PersistentVolume{
			Status: corev1.PersistentVolumeStatus{Phase: c.phase, LastPhaseTransitionTime: c.sent}}
		persistentVolumeStatusStrategy(func() time.Time { return clock.Time }).PrepareUpdate(obj, old)
		if got := obj.Status.LastPhaseTransitionTime; got == nil || !got.Equal(&c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
