package core

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The messages are those of kube-apiserver v1.36.3.
func TestDeclaredFeatures(t *testing.T) {
	t.Parallel()
	form := `must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes`
	for names, want := range map[string]string{
		"A B/c":   "",
		"A/b/c/D": "",
		"ABC D1":  "",
		"B A":     `f[1]: Invalid value: "A": list must be sorted alphabetically`,
		"A A":     `f[1]: Duplicate value: "A"`,
		"/A":      `f[0]: Invalid value: "/A": invalid feature name "/A": ` + form,
		"A/":      `f[0]: Invalid value: "A/": invalid feature name "A/": ` + form,
		"A A_b":   `f[1]: Invalid value: "A_b": invalid feature name "A_b": ` + form,
		"aB":      `f[0]: Invalid value: "aB": invalid feature name "aB": ` + form,
		"A,B":     `f[0]: Invalid value: "A,B": invalid feature name "A,B": ` + form,
		longFeature: `f[0]: Invalid value: "` + longFeature + `": invalid feature name "` + longFeature +
			`": must be no more than 253 characters`,
	} {
		got := ""
		if err := validateDeclaredFeatures(strings.Fields(names), field.NewPath("f")).ToAggregate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s", names, got)
		}
	}
}

var longFeature = strings.Repeat("A", 254)
