package memoryqos

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestHigh: the examples of KEP-2570, and what it says of classes and of limits that are missing.
func TestHigh(t *testing.T) {
	t.Parallel()
	const mi = 1 << 20
	for _, c := range []struct {
		q              QoS
		class          corev1.PodQOSClass
		request, limit int64
		want           int64
	}{
		{QoS{Factor: 0.6}, corev1.PodQOSBurstable, 500 * mi, 1000 * mi, 800 * mi},
		{QoS{Factor: 0.6}, corev1.PodQOSBurstable, 800 * mi, 1000 * mi, 920 * mi},
		{QoS{Factor: 0.6}, corev1.PodQOSBurstable, 1000 * mi, 1000 * mi, Unlimited},
		{QoS{Factor: 0.8}, corev1.PodQOSBurstable, 0, 1000 * mi, 800 * mi},
		{QoS{Factor: 0.5, Allocatable: 100 * mi}, corev1.PodQOSBurstable, 50 * mi, 0, 75 * mi},
		{QoS{Factor: 0.5, Allocatable: 100*mi + 4097}, corev1.PodQOSBestEffort, 0, 0, 50 * mi},
		{QoS{Factor: 0.5}, corev1.PodQOSGuaranteed, 50 * mi, 50 * mi, 0},
		{QoS{}, corev1.PodQOSBurstable, 50 * mi, 100 * mi, 0},
		{QoS{Off: true}, corev1.PodQOSBurstable, 50 * mi, 100 * mi, Unlimited},
	} {
		if got := c.q.High(c.class, c.request, c.limit); got != c.want {
			t.Errorf("%+v %s from %d to %d: %d, want %d", c.q, c.class, c.request, c.limit, got, c.want)
		}
	}
}

func TestProtection(t *testing.T) {
	t.Parallel()
	for class, want := range map[corev1.PodQOSClass]Protection{corev1.PodQOSGuaranteed: {Min: 7},
		corev1.PodQOSBurstable: {Low: 7}, corev1.PodQOSBestEffort: {}} {
		if got := (QoS{Protect: true}).Protection(class, 7); got != want {
			t.Errorf("%s: %+v, want %+v", class, got, want)
		}
		if got := (QoS{}).Protection(class, 7); got != (Protection{}) {
			t.Errorf("%s without a policy: %+v", class, got)
		}
	}
}
