package structural

import (
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestUnknownFormats: a real kube-apiserver v1.36.3 warns about the same formats.
func TestUnknownFormats(t *testing.T) {
	t.Parallel()
	choice := func(formats ...string) (out []apiextensionsv1.JSONSchemaProps) {
		for _, f := range formats {
			out = append(out, apiextensionsv1.JSONSchemaProps{Format: f})
		}
		return out
	}
	for name, c := range map[string]struct {
		schema apiextensionsv1.JSONSchemaProps
		want   []string
	}{
		"a string's": {apiextensionsv1.JSONSchemaProps{Type: "string", Format: "ipv4"}, nil},
		"a number's in a string": {apiextensionsv1.JSONSchemaProps{Type: "string", Format: "int64"},
			[]string{"int64"}},
		"a string's in an integer": {apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "uuid"},
			[]string{"uuid"}},
		"an object's": {apiextensionsv1.JSONSchemaProps{Type: "object", Format: "uuid"},
			[]string{"uuid"}},
		"without a type": {apiextensionsv1.JSONSchemaProps{AnyOf: choice("ipv4", "ipv6", "nonsense")},
			[]string{"nonsense"}},
		"without a type, a number's": {apiextensionsv1.JSONSchemaProps{Type: "integer", AnyOf: choice("int32", "uuid")},
			[]string{"int32"}},
	} {
		got := map[string]bool{}
		UnknownFormats(&c.schema, got)
		if got := slices.Sorted(maps.Keys(got)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
