package referencetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// YAML is v as it is recorded.
func YAML(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Difference returns the lines that only one of two recorded texts has: with "-" those of want, with "+" those of got.
// If they have the same lines in another order, it returns both texts.
func Difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	only := func(sign string, lines, others []string) {
		for _, line := range lines {
			if !slices.Contains(others, line) {
				fmt.Fprintf(&b, "%s %s\n", sign, line)
			}
		}
	}
	only("-", w, g)
	only("+", g, w)
	if b.Len() == 0 {
		return "want\n" + want + "got\n" + got
	}
	return b.String()
}
