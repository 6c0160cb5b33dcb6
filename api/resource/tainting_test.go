package resource

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTainted(t *testing.T) {
	t.Parallel()
	rule := func(name string, s *resourcev1.DeviceTaintSelector) *resourcev1.DeviceTaintRule {
		return &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: s, Taint: resourcev1.DeviceTaint{Key: name}}}
	}
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: "d",
		Pool: resourcev1.ResourcePool{Name: "p"}, Devices: []resourcev1.Device{{Name: "a",
			Taints: []resourcev1.DeviceTaint{{Key: "own"}}}, {Name: "b"}}}}
	for name, c := range map[string]struct {
		rules []*resourcev1.DeviceTaintRule
		want  string // the taints of each device
	}{
		"no rules":    {want: "own|"},
		"no selector": {rules: []*resourcev1.DeviceTaintRule{rule("r", nil)}, want: "own|"},
		"all": {rules: []*resourcev1.DeviceTaintRule{rule("r", &resourcev1.DeviceTaintSelector{})},
			want: "own r|r"},
		"driver": {rules: []*resourcev1.DeviceTaintRule{rule("r", &resourcev1.DeviceTaintSelector{Driver: new("d")}),
			rule("s", &resourcev1.DeviceTaintSelector{Driver: new("e")})}, want: "own r|r"},
		"pool": {rules: []*resourcev1.DeviceTaintRule{rule("r", &resourcev1.DeviceTaintSelector{Pool: new("q")})},
			want: "own|"},
		"device": {rules: []*resourcev1.DeviceTaintRule{rule("r", &resourcev1.DeviceTaintSelector{Device: new("b")}),
			rule("s", &resourcev1.DeviceTaintSelector{Pool: new("p"), Device: new("a")})}, want: "own s|r"},
	} {
		var got []string
		tainted := Tainted(slice, c.rules)
		for _, d := range tainted.Spec.Devices {
			var keys []string
			for _, taint := range d.Taints {
				keys = append(keys, taint.Key)
			}
			got = append(got, strings.Join(keys, " "))
		}
		if text := strings.Join(got, "|"); text != c.want || (c.want == "own|") != (tainted == slice) {
			t.Errorf("%s: %q, want %q; the slice itself: %v", name, text, c.want, tainted == slice)
		}
		if len(slice.Spec.Devices[0].Taints) != 1 || slice.Spec.Devices[1].Taints != nil {
			t.Fatalf("%s: the slice was changed", name)
		}
	}
}
