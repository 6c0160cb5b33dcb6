package taint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
)

// changes are the taints to add, and those to remove: of one effect, or of all where the effect is "".
type changes struct{ add, remove []corev1.Taint }

// parse reads "key=value:Effect", "key:Effect", "key:Effect-" and "key-".
func parse(specs []string) (changes, error) {
	var c changes
	for _, s := range specs {
		if text, removed := strings.CutSuffix(s, "-"); removed {
			t, err := parseOne(text)
			if err != nil {
				return c, err
			}
			t.Value = ""
			c.remove = append(c.remove, t)
			continue
		}
		t, err := parseOne(s)
		if err != nil {
			return c, err
		}
		if t.Effect == "" {
			return c, fmt.Errorf("invalid taint effect: %v, unsupported taint effect", t.Effect)
		}
		if slices.ContainsFunc(c.add, func(o corev1.Taint) bool { return same(o, t) }) {
			return c, fmt.Errorf("duplicated taints with the same key and effect: {%s %s %s <nil>}", t.Key, t.Value,
				t.Effect)
		}
		c.add = append(c.add, t)
	}
	return c, nil
}

func parseOne(text string) (corev1.Taint, error) {
	var t corev1.Taint
	parts := strings.Split(text, ":")
	switch len(parts) {
	case 1:
		t.Key = parts[0]
	case 2:
		t.Effect = corev1.TaintEffect(parts[1])
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			return t, fmt.Errorf("invalid taint effect: %v, unsupported taint effect", parts[1])
		}
		pair := strings.Split(parts[0], "=")
		if len(pair) > 2 {
			return t, fmt.Errorf("invalid taint spec: %v", text)
		}
		if t.Key = pair[0]; len(pair) == 2 {
			t.Value = pair[1]
			if errs := validation.IsValidLabelValue(t.Value); len(errs) > 0 {
				return t, fmt.Errorf("invalid taint spec: %v, %s", text, strings.Join(errs, "; "))
			}
		}
	default:
		return t, fmt.Errorf("invalid taint spec: %v", text)
	}
	if errs := validation.IsQualifiedName(t.Key); len(errs) > 0 {
		return t, fmt.Errorf("invalid taint spec: %v, %s", text, strings.Join(errs, "; "))
	}
	return t, nil
}

func same(a, b corev1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }

// conflict is an error if a taint is to be added and removed.
func (c changes) conflict() error {
	var both []string
	for _, a := range c.add {
		for _, r := range c.remove {
			if a.Key == r.Key && (r.Effect == "" || a.Effect == r.Effect) {
				both = append(both, fmt.Sprintf("%s=%s", a.Key, r.Effect))
			}
		}
	}
	if len(both) == 0 {
		return nil
	}
	return fmt.Errorf("can not both modify and remove the following taint(s) in the same command: %s",
		strings.Join(both, ", "))
}

// taken are the keys of taints to add that are there already, with any value.
func (c changes) taken(have []corev1.Taint) []string {
	var out []string
	for _, a := range c.add {
		if slices.ContainsFunc(have, func(h corev1.Taint) bool { return same(a, h) }) {
			out = append(out, a.Key)
		}
	}
	return out
}

// apply returns the new taints, added ones first, and what became of the node: "tainted", "untainted" or "modified".
func (c changes) apply(have []corev1.Taint) ([]corev1.Taint, string, error) {
	out := slices.Clone(c.add)
	for _, h := range have {
		if !slices.ContainsFunc(c.add, func(a corev1.Taint) bool { return same(a, h) }) {
			out = append(out, h)
		}
	}
	var errs []error
	removed := false
	for _, r := range c.remove {
		before := len(out)
		out = slices.DeleteFunc(out, func(t corev1.Taint) bool {
			return t.Key == r.Key && (r.Effect == "" || t.Effect == r.Effect)
		})
		if len(out) < before {
			removed = true
			continue
		}
		name := r.Key
		if r.Effect != "" {
			name += ":" + string(r.Effect)
		}
		errs = append(errs, fmt.Errorf("taint %q not found", name))
	}
	switch {
	case len(errs) == 1:
		return nil, "", errs[0]
	case len(errs) > 1:
		return nil, "", utilerrors.NewAggregate(errs)
	case len(c.add) > 0 && removed:
		return out, "modified", nil
	case len(c.add) > 0:
		return out, "tainted", nil
	case removed:
		return out, "untainted", nil
	}
	return nil, "", errors.New("at least one taint update is required")
}
