package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestQOSClass(t *testing.T) {
	t.Parallel()
	both := corev1.ResourceRequirements{Limits: list("cpu", "1", "memory", "1Gi"), Requests: list("cpu", "1", "memory", "1Gi")}
	for name, c := range map[string]struct {
		containers, init []corev1.ResourceRequirements
		pod              *corev1.ResourceRequirements
		want             corev1.PodQOSClass
	}{
		"nothing asked":            {containers: []corev1.ResourceRequirements{{}}, want: corev1.PodQOSBestEffort},
		"all limits":               {containers: []corev1.ResourceRequirements{both}, want: corev1.PodQOSGuaranteed},
		"one container without":    {containers: []corev1.ResourceRequirements{both, {}}, want: corev1.PodQOSBurstable},
		"init container without":   {containers: []corev1.ResourceRequirements{both}, init: []corev1.ResourceRequirements{{}}, want: corev1.PodQOSBurstable},
		"cpu only":                 {containers: []corev1.ResourceRequirements{{Limits: list("cpu", "1"), Requests: list("cpu", "1")}}, want: corev1.PodQOSBurstable},
		"requests below limits":    {containers: []corev1.ResourceRequirements{{Limits: both.Limits, Requests: list("cpu", "1", "memory", "1Mi")}}, want: corev1.PodQOSBurstable},
		"other resources":          {containers: []corev1.ResourceRequirements{{Limits: list("example.com/gpu", "1")}}, want: corev1.PodQOSBestEffort},
		"zeros":                    {containers: []corev1.ResourceRequirements{{Requests: list("cpu", "0")}}, want: corev1.PodQOSBestEffort},
		"the pod speaks for all":   {containers: []corev1.ResourceRequirements{{}}, pod: &both, want: corev1.PodQOSGuaranteed},
		"limits without requests":  {containers: []corev1.ResourceRequirements{{Limits: both.Limits}}, want: corev1.PodQOSBurstable},
		"the pod names nothing":    {containers: []corev1.ResourceRequirements{both}, pod: &corev1.ResourceRequirements{}, want: corev1.PodQOSGuaranteed},
		"the pod asks for nothing": {containers: []corev1.ResourceRequirements{{}}, pod: &corev1.ResourceRequirements{}, want: corev1.PodQOSBestEffort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{Spec: corev1.PodSpec{Resources: c.pod}}
			for _, r := range c.containers {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: r})
			}
			for _, r := range c.init {
				p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Resources: r})
			}
			if got := QOSClass(p); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestPodGrace(t *testing.T) {
	t.Parallel()
	running := corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: ptr.To[int64](30)}
	for name, c := range map[string]struct {
		pod  corev1.Pod
		opts *metav1.DeleteOptions
		want *int64
	}{
		"the pod's own":   {pod: corev1.Pod{Spec: running}, want: ptr.To[int64](30)},
		"the deletion's":  {pod: corev1.Pod{Spec: running}, opts: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)}, want: ptr.To[int64](5)},
		"at once":         {pod: corev1.Pod{Spec: running}, opts: &metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}},
		"negative":        {pod: corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", TerminationGracePeriodSeconds: ptr.To[int64](-3)}}, want: ptr.To[int64](1)},
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

func TestPullPolicy(t *testing.T) {
	t.Parallel()
	digest := "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for image, want := range map[string]corev1.PullPolicy{
		"nginx":                        corev1.PullAlways,
		"nginx:latest":                 corev1.PullAlways,
		"nginx:1":                      corev1.PullIfNotPresent,
		"registry:5000/nginx":          corev1.PullAlways,
		"nginx" + digest:               corev1.PullIfNotPresent,
		"nginx:latest" + digest:        corev1.PullAlways,
		"Not An Image":                 corev1.PullIfNotPresent,
		"registry.example/a/b/c:v1.36": corev1.PullIfNotPresent,
	} {
		if got := pullPolicyOf(image); got != want {
			t.Errorf("%q: got %s, want %s", image, got, want)
		}
	}
}

func TestSplitSubscript(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"metadata.labels['app']":   {"metadata.labels", "app"},
		"metadata.labels['a/b.c']": {"metadata.labels", "a/b.c"},
		"metadata.labels['']":      {"metadata.labels", ""},
		"metadata.labels":          {},
		"metadata.labels['app'":    {},
		"['app']":                  {},
	} {
		base, key, ok := SplitSubscript(path)
		if ok != (want[0] != "") || ok && [2]string{base, key} != want {
			t.Errorf("%s: got %q %q %t", path, base, key, ok)
		}
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
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{LabelSelector: selector(), MatchLabelKeys: []string{"hash", "missing"}}},
			Affinity: &corev1.Affinity{
				PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector(), MatchLabelKeys: []string{"hash"}}}},
				PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: selector(), MismatchLabelKeys: []string{"tenant"}}}}},
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
		{a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.LabelSelector, "app=web,tenant notin (x)"},
	} {
		if got := metav1.FormatLabelSelector(c.got); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestAddressesOfStatusAgree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want corev1.PodStatus }{
		"one alone":  {corev1.PodStatus{PodIP: "1.1.1.1"}, corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}}}},
		"list alone": {corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}, {IP: "::1"}}}, corev1.PodStatus{PodIP: "1.1.1.1", PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}, {IP: "::1"}}}},
		"different":  {corev1.PodStatus{PodIP: "2.2.2.2", PodIPs: []corev1.PodIP{{IP: "1.1.1.1"}}}, corev1.PodStatus{PodIP: "2.2.2.2", PodIPs: []corev1.PodIP{{IP: "2.2.2.2"}}}},
		"none":       {},
	} {
		setPodIPs(&c.in)
		if diff := cmp.Diff(c.want, c.in); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
