package taint

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzParse: what is accepted is what the API server would accept.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"k=v:NoSchedule", "k:NoExecute", "k:PreferNoSchedule-", "k-", "k=v:NoSchedule-", "", "-",
		":", "=:NoSchedule", "a/b/c:NoSchedule", "k=v=w:NoSchedule", "k:Never", "k"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parse([]string{s})
		if err != nil {
			return
		}
		if len(c.add)+len(c.remove) != 1 || strings.HasSuffix(s, "-") != (len(c.remove) == 1) {
			t.Fatalf("%q: %+v", s, c)
		}
		for _, x := range append(c.add, c.remove...) {
			if len(validation.IsQualifiedName(x.Key)) > 0 || len(validation.IsValidLabelValue(x.Value)) > 0 {
				t.Fatalf("%q: %+v", s, x)
			}
			switch x.Effect {
			case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
			case "":
				if len(c.add) > 0 {
					t.Fatalf("%q adds a taint without effect", s)
				}
			default:
				t.Fatalf("%q: effect %q", s, x.Effect)
			}
		}
		for _, x := range c.add {
			spec := x.Key + "=" + x.Value + ":" + string(x.Effect)
			if again, err := parse([]string{spec}); err != nil || !same(again.add[0], x) ||
				again.add[0].Value != x.Value {
				t.Fatalf("%q is %q, which is %+v, %v", s, spec, again, err)
			}
		}
	})
}
