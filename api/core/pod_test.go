package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestPodGrace(t *testing.T) {
	t.Parallel()
	running := corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: ptr.To[int64](30)}
	for name, c := range map[string]struct {
		pod  corev1.Pod
		opts *metav1.DeleteOptions
		want *int64
	}{
		"the pod's own": {pod: corev1.Pod{Spec: running}, want: ptr.To[int64](30)},
		"the deletion's": {pod: corev1.Pod{Spec: running},
			opts: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)}, want: ptr.To[int64](5)},
		"at once": {pod: corev1.Pod{Spec: running},
			opts: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}},
		"negative": {pod: corev1.Pod{
			Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: ptr.To[int64](-3)}},
			want: ptr.To[int64](1)},
		"on no node":      {pod: corev1.Pod{}, opts: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)}},
		"already ended":   {pod: corev1.Pod{Spec: running, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}},
		"already failed":  {pod: corev1.Pod{Spec: running, Status: corev1.PodStatus{Phase: corev1.PodFailed}}},
		"options, no say": {pod: corev1.Pod{Spec: running}, opts: &metav1.DeleteOptions{}, want: ptr.To[int64](30)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, podGrace(&c.pod, c.opts)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMatchLabelKeys: the pod's own label values are written into the selectors once, at creation.
func TestMatchLabelKeys(t *testing.T) {
	t.Parallel()
	selector := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "hash": "1", "tenant": "x"}},
		Spec: corev1.PodSpec{
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
				{LabelSelector: selector(), MatchLabelKeys: []string{"hash", "missing"}}},
			Affinity: &corev1.Affinity{
				PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
						{LabelSelector: selector(), MatchLabelKeys: []string{"hash"}}}},
				PodAntiAffinity: &corev1.PodAntiAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
						{PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: selector(),
							MismatchLabelKeys: []string{"tenant"}}}}},
			},
		},
	}
	preparePodCreate(p)
	a := p.Spec.Affinity
	for _, c := range []struct {
		got  *metav1.LabelSelector
		want string
	}{
		{p.Spec.TopologySpreadConstraints[0].LabelSelector, "app=web,hash in (1)"},
		{a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector, "app=web,hash in (1)"},
		{a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector,
			"app=web,tenant notin (x)"},
	} {
		if got := metav1.FormatLabelSelector(c.got); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestAddressesOfStatusAgree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want corev1.PodStatus }{
		"one alone": {corev1.PodStatus{PodIP: "1.1.1.1"},
			corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}}}},
		"list alone": {corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}, {IP: "::1"}}},
			corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}, {IP: "::1"}}}},
		"different": {corev1.PodStatus{PodIP: "2.2.2.2", PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}}},
			corev1.PodStatus{PodIP: "2.2.2.2", PodIPs: []corev1.PodIP{{IP: "2.2.2.2"}}}},
		"none": {},
	} {
		setPodIPs(&c.in)
		if diff := cmp.Diff(c.want, c.in); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
