package apps

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestStatefulSetRefuses(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		change func(*appsv1.StatefulSet)
		want   []string
	}{
		"plain": {func(*appsv1.StatefulSet) {}, nil},
		"a service name that is none": {func(s *appsv1.StatefulSet) { s.Spec.ServiceName = "A b" },
			[]string{`spec.serviceName: Invalid value: "A b": a lowercase RFC 1123 label must`}},
		"a claim of nothing": {func(s *appsv1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}
		}, []string{"spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1",
			"spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"}},
	} {
		s := &appsv1.StatefulSet{
			Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "s",
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
		c.change(s)
		defaultStatefulSet(s)
		errs := validateNewStatefulSet(s)
		if len(errs) != len(c.want) {
			t.Errorf("%s: %v", name, errs)
			continue
		}
		for i, e := range errs {
			if !strings.HasPrefix(e.Error(), c.want[i]) {
				t.Errorf("%s: %v, want %s", name, e, c.want[i])
			}
		}
	}
	if msgs := statefulSetStrategy().ValidateName("a.b",
		false); !slices.Equal(msgs, []string{"must not contain dots"}) {
		t.Errorf("a name with a dot: %q", msgs)
	}
	s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{RevisionHistoryLimit: new(int32(-1))}}
	if w := statefulSetWarnings(s, nil); len(w) != 1 ||
		!strings.HasPrefix(w[0], "spec.revisionHistoryLimit: a negative value") {
		t.Errorf("warnings: %q", w)
	}
}

// TestRollingValues: numbers that are none count as no pods, and zero is shown as the number it is.
func TestRollingValues(t *testing.T) {
	t.Parallel()
	zero := intstr.FromInt32(0)
	errs := validateRolling(&zero, &zero, nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "Invalid value: 0: may not be 0 when `maxSurge` is 0") {
		t.Errorf("deployment: %v", errs)
	}
	word := intstr.FromString("x")
	u := &appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &word, MaxSurge: &zero}}
	if errs := validateDaemonUpdates(u, nil); len(errs) != 2 ||
		!strings.Contains(errs[1].Error(), "cannot be 0 when maxSurge is 0") {
		t.Errorf("daemon set: %v", errs)
	}
}

func TestRevisionData(t *testing.T) {
	t.Parallel()
	for data, ok := range map[string]bool{`{"a":1}`: true, ` {}`: true, `"x"`: false, `5`: false, ``: false} {
		r := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(data)}}
		if errs := validateRevision(r); (len(errs) == 0) != ok {
			t.Errorf("%s: %v", data, errs)
		}
	}
}

// TestStatefulSetUpdateStrategy: what a real kube-apiserver v1.37.2 makes of what is given; a partition and a number of
// unavailable pods are only added to what has none where the type is left out, or the rest is there.
func TestStatefulSetUpdateStrategy(t *testing.T) {
	t.Parallel()
	rolling := func(partition ...int32) *appsv1.RollingUpdateStatefulSetStrategy {
		r := &appsv1.RollingUpdateStatefulSetStrategy{}
		for _, p := range partition {
			r.Partition, r.MaxUnavailable = &p, new(intstr.FromInt32(1))
		}
		return r
	}
	for name, c := range map[string]struct {
		given, want appsv1.StatefulSetUpdateStrategy
	}{
		"nothing": {appsv1.StatefulSetUpdateStrategy{},
			appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: rolling(0)}},
		"the type": {appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate"},
			appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate"}},
		"the type, rest": {appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: rolling()},
			appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: rolling(0)}},
		"the rest": {appsv1.StatefulSetUpdateStrategy{RollingUpdate: rolling()},
			appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: rolling(0)}},
		"a partition": {appsv1.StatefulSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
			Partition: new(int32(2))}},
			appsv1.StatefulSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: rolling(2)}},
		"the other type": {appsv1.StatefulSetUpdateStrategy{Type: "OnDelete"},
			appsv1.StatefulSetUpdateStrategy{Type: "OnDelete"}},
		"another's values": {appsv1.StatefulSetUpdateStrategy{Type: "OnDelete", RollingUpdate: rolling()},
			appsv1.StatefulSetUpdateStrategy{Type: "OnDelete", RollingUpdate: rolling()}},
	} {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{UpdateStrategy: c.given}}
		defaultStatefulSet(s)
		if diff := cmp.Diff(c.want, s.Spec.UpdateStrategy); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestStatefulSetMaxUnavailable compares the errors for each value with those of a real kube-apiserver v1.37.2.
func TestStatefulSetMaxUnavailable(t *testing.T) {
	t.Parallel()
	path := "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "
	percent := ": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', " +
		"regex used for validation is '[0-9]+%')"
	for v, want := range map[string][]string{
		"1": nil, "500": nil, "50%": nil, "100%": nil,
		"0":    {path + "0: cannot be 0"},
		"-1":   {path + "-1: must be greater than or equal to 0"},
		"0%":   {path + `"0%": cannot be 0`},
		"101%": {path + `"101%": must not be greater than 100%`},
		"x":    {path + `"x"` + percent, path + `"x": cannot be 0`},
		"-5%":  {path + `"-5%"` + percent, path + `"-5%": cannot be 0`},
		`"5"`:  {path + `"5"` + percent},
	} {
		most := intstr.Parse(v)
		if v == `"5"` {
			most = intstr.FromString("5")
		}
		r := &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: &most}
		var got []string
		for _, err := range validateStatefulRolling(r, field.NewPath("spec", "updateStrategy", "rollingUpdate")) {
			got = append(got, err.Error())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", v, diff)
		}
	}
}
